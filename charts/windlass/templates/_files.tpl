{{/* A file of the manifests, its namespace replaced by that of the release. */}}
{{- define "windlass.file" -}}
{{ .root.Files.Get (printf "files/%s" .name) | replace "windlass-system" .root.Release.Namespace }}
{{- end -}}
