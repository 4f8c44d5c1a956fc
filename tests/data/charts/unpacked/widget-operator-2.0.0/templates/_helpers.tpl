{{- define "account" -}}
{{- .Values.serviceAccount.name | default (printf "%s-robot" .Release.Name) -}}
{{- end }}
