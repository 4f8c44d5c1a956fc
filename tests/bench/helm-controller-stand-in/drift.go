package main

import (
	"context"
	"encoding/json"
	"fmt"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// driftAnnotation on an object of a release keeps it out of the comparison.
var driftAnnotation = v2.GroupVersion.Group + "/driftDetection"

// drift compares the release's manifest with the cluster by dry-run applies.
func (p *pass) drift(ctx context.Context, h *helm, last *rspb.Release) (jsondiff.DiffSet, error) {
	objects, err := h.manifestObjects(ctx, last)
	if err != nil {
		return nil, err
	}
	for _, each := range objects {
		// What Helm itself adds when it applies.
		each.SetLabels(merged(each.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
		each.SetAnnotations(merged(each.GetAnnotations(), map[string]string{
			"meta.helm.sh/release-name":      last.Name,
			"meta.helm.sh/release-namespace": last.Namespace,
		}))
	}
	var ignored jsondiff.IgnoreRules
	for _, rule := range p.hr.GetDriftDetection().Ignore {
		ignored = append(ignored, jsondiff.IgnoreRule{Paths: rule.Paths, Selector: driftSelector(rule)})
	}
	return jsondiff.UnstructuredList(ctx, h.client, objects,
		jsondiff.FieldOwner(fieldManager), jsondiff.Graceful(true), jsondiff.Rationalize(true), ignored,
		jsondiff.ExclusionSelector{driftAnnotation: "disabled"})
}

func driftSelector(rule v2.IgnoreRule) *jsondiff.Selector {
	if rule.Target == nil {
		return nil
	}
	return &jsondiff.Selector{
		Group: rule.Target.Group, Version: rule.Target.Version, Kind: rule.Target.Kind,
		Name: rule.Target.Name, Namespace: rule.Target.Namespace,
		AnnotationSelector: rule.Target.AnnotationSelector, LabelSelector: rule.Target.LabelSelector,
	}
}

// handleDrift reports what drifted and, where asked for, puts it back; Helm
// makes no new revision of it.
func (p *pass) handleDrift(ctx context.Context, h *helm, found seen) outcome {
	changed := 0
	for _, diff := range found.drift {
		if diff.Type == jsondiff.DiffTypeCreate || diff.Type == jsondiff.DiffTypeUpdate {
			changed++
		}
	}
	conditions.MarkTrue(p.hr, v2.DriftedCondition, v2.DriftDetectedReason,
		"Cluster state of release %s has drifted from the desired state: %d object(s)", p.hr.Status.History.Latest().FullReleaseName(), changed)
	if err := p.save(ctx); err != nil {
		return outcome{err: err}
	}
	if p.hr.GetDriftDetection().GetMode() != v2.DriftDetectionEnabled {
		return p.settle(true)
	}
	for _, diff := range found.drift {
		if err := correct(ctx, h.client, diff); err != nil {
			return outcome{err: fmt.Errorf("correcting drift: %w", err)}
		}
	}
	return p.settle(false)
}

func correct(ctx context.Context, c client.Client, diff *jsondiff.Diff) error {
	switch diff.Type {
	case jsondiff.DiffTypeCreate:
		desired, ok := diff.DesiredObject.DeepCopyObject().(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("object of an unknown type %T", diff.DesiredObject)
		}
		return serverSideApply(ctx, c, desired)
	case jsondiff.DiffTypeUpdate:
		patch, err := json.Marshal(diff.Patch)
		if err != nil {
			return err
		}
		return c.Patch(ctx, diff.ClusterObject, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(fieldManager))
	default:
		return nil
	}
}
