package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/opencontainers/go-digest"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// artifactSource is a source with the artifact the chart comes from.
type artifactSource struct {
	name      string
	artifact  *meta.Artifact
	ociDigest string
}

// sourceNotReady is not in the API package; recorded runs show it.
const sourceNotReady = "SourceNotReady"

// ensureChartObject makes the HelmChart of a chart template and names it in
// the status; a HelmChart that is no longer the wanted one is removed.
func (p *pass) ensureChartObject(ctx context.Context) error {
	wanted := ""
	var key types.NamespacedName
	if p.hr.HasChartTemplate() {
		key = types.NamespacedName{
			Namespace: orElse(p.hr.Spec.Chart.Spec.SourceRef.Namespace, p.hr.Namespace),
			Name:      p.hr.GetHelmChartName(),
		}
		wanted = key.String()
	}
	if was := p.hr.Status.HelmChart; was != "" && was != wanted {
		if err := p.removeChartObject(ctx); err != nil {
			return err
		}
	}
	if wanted == "" {
		return nil
	}
	object := &sourcev1.HelmChart{}
	object.Namespace, object.Name = key.Namespace, key.Name
	done, err := controllerutil.CreateOrPatch(ctx, p.direct, object, func() error {
		p.fillChartObject(object)
		return nil
	})
	if err != nil {
		return err
	}
	if done != controllerutil.OperationResultNone {
		p.written = object
	}
	p.hr.Status.HelmChart = wanted
	return p.save(ctx)
}

func (p *pass) fillChartObject(object *sourcev1.HelmChart) {
	template := p.hr.Spec.Chart
	if template.ObjectMeta != nil {
		object.Annotations = merged(object.Annotations, template.ObjectMeta.Annotations)
		object.Labels = merged(object.Labels, template.ObjectMeta.Labels)
	}
	object.Labels = merged(object.Labels, originLabels(p.hr))
	object.Spec.Chart = template.Spec.Chart
	object.Spec.Version = orElse(template.Spec.Version, "*")
	object.Spec.SourceRef = sourcev1.LocalHelmChartSourceReference{
		Kind: template.Spec.SourceRef.Kind,
		Name: template.Spec.SourceRef.Name,
	}
	object.Spec.Interval = template.GetInterval(p.hr.Spec.Interval)
	object.Spec.ReconcileStrategy = orElse(template.Spec.ReconcileStrategy, sourcev1.ReconcileStrategyChartVersion)
	object.Spec.ValuesFiles = template.Spec.ValuesFiles
	object.Spec.IgnoreMissingValuesFiles = template.Spec.IgnoreMissingValuesFiles
}

func (p *pass) removeChartObject(ctx context.Context) error {
	namespace, name := p.hr.Status.GetHelmChart()
	if name == "" {
		return nil
	}
	object := &sourcev1.HelmChart{}
	object.Namespace, object.Name = namespace, name
	if err := p.direct.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return err
	}
	p.hr.Status.HelmChart = ""
	return nil
}

// source reads the source and refuses it unless its last spec is acted on.
func (p *pass) source(ctx context.Context) (artifactSource, error) {
	object, kind, key := p.sourceObject()
	if object == nil {
		return artifactSource{}, &notReady{reason: "UnsupportedSourceKind", message: "chartRef kind is not played", terminal: true}
	}
	name := fmt.Sprintf("%s '%s'", kind, key)
	if p.written != nil {
		// As it was when this pass wrote it: source-controller cannot have been
		// faster than the real controller's next look.
		object = p.written
	} else if err := p.direct.Get(ctx, key, object); err != nil {
		return artifactSource{}, &notReady{reason: v2.ArtifactFailedReason, message: fmt.Sprintf("could not get Source object: %s", err)}
	}
	waiting := func(why string) error {
		return &notReady{
			reason:  sourceNotReady,
			message: fmt.Sprintf("%s is not ready: %s", name, why),
			again:   p.requeueDependency,
		}
	}
	observed, artifact := observedOf(object)
	switch {
	case observed != object.GetGeneration():
		return artifactSource{}, waiting("latest generation of object has not been reconciled")
	case conditions.IsFalse(object, meta.ReadyCondition):
		return artifactSource{}, waiting(conditions.GetMessage(object, meta.ReadyCondition))
	case artifact == nil:
		return artifactSource{}, waiting("does not have an artifact")
	}
	found := artifactSource{name: name, artifact: artifact}
	if kind == sourcev1.OCIRepositoryKind {
		_, found.ociDigest, _ = strings.Cut(artifact.Revision, "@")
	}
	return found, nil
}

func (p *pass) sourceObject() (conditions.Setter, string, types.NamespacedName) {
	if !p.hr.HasChartRef() {
		namespace, name := p.hr.Status.GetHelmChart()
		return &sourcev1.HelmChart{}, sourcev1.HelmChartKind, types.NamespacedName{Namespace: namespace, Name: name}
	}
	ref := p.hr.Spec.ChartRef
	key := types.NamespacedName{Namespace: orElse(ref.Namespace, p.hr.Namespace), Name: ref.Name}
	switch ref.Kind {
	case sourcev1.HelmChartKind:
		return &sourcev1.HelmChart{}, ref.Kind, key
	case sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{}, ref.Kind, key
	default:
		return nil, ref.Kind, key
	}
}

func observedOf(object client.Object) (int64, *meta.Artifact) {
	switch source := object.(type) {
	case *sourcev1.HelmChart:
		return source.Status.ObservedGeneration, source.GetArtifact()
	case *sourcev1.OCIRepository:
		return source.Status.ObservedGeneration, source.GetArtifact()
	default:
		return -1, nil
	}
}

// loadChart downloads and opens the chart; one from an OCIRepository carries
// the first twelve digits of its digest in the version, as Flux makes it.
func (p *pass) loadChart(ctx context.Context, source artifactSource) (*chart.Chart, error) {
	failed := func(err error) error {
		return &notReady{
			reason:  v2.ArtifactFailedReason,
			message: fmt.Sprintf("could not load chart of %s: %s", source.name, err),
			again:   p.requeueDependency,
		}
	}
	archive, err := download(ctx, source.artifact)
	if err != nil {
		return nil, failed(err)
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, failed(err)
	}
	if source.ociDigest != "" {
		hex := digest.Digest(source.ociDigest).Encoded()
		loaded.Metadata.Version += "+" + hex[:min(12, len(hex))]
	}
	return loaded, nil
}

const largestChart = 64 << 20

var downloads = http.Client{Timeout: 30 * time.Second}

func download(ctx context.Context, artifact *meta.Artifact) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, artifact.URL, nil)
	if err != nil {
		return nil, err
	}
	response, err := downloads.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", artifact.URL, response.Status)
	}
	archive, err := io.ReadAll(io.LimitReader(response.Body, largestChart))
	if err != nil {
		return nil, err
	}
	if found := digest.FromBytes(archive).String(); found != artifact.Digest {
		return nil, fmt.Errorf("digest is %s, expected %s", found, artifact.Digest)
	}
	return archive, nil
}
