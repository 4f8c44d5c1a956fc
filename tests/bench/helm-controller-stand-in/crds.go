package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyCRDs applies the chart's crds/ by the action's policy and waits until
// they are served. Create and CreateReplace do the same: with server-side apply
// the version that is played replaces in both.
func (p *pass) applyCRDs(ctx context.Context, h *helm, want *desired, name v2.ReleaseAction) error {
	policy := p.hr.GetUpgrade().CRDs
	if name == v2.ReleaseActionInstall {
		policy = p.hr.GetInstall().CRDs
	}
	if policy == v2.Skip {
		return nil
	}
	var crds []*unstructured.Unstructured
	for _, file := range want.chart.CRDObjects() {
		objects, err := ssautil.ReadObjects(strings.NewReader(string(file.File.Data)))
		if err != nil {
			return fmt.Errorf("failed to parse %s: %w", file.Filename, err)
		}
		crds = append(crds, objects...)
	}
	if len(crds) == 0 {
		return nil
	}
	for _, crd := range crds {
		crd.SetLabels(merged(crd.GetLabels(), originLabels(p.hr)))
		if err := serverSideApply(ctx, h.client, crd); err != nil {
			return fmt.Errorf("failed to apply CustomResourceDefinition %s: %w", crd.GetName(), err)
		}
	}
	for _, crd := range crds {
		if err := awaitEstablished(ctx, h.client, crd.GetName()); err != nil {
			return err
		}
	}
	p.discovery.mapper.Reset()
	return nil
}

func serverSideApply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership)
}

func awaitEstablished(ctx context.Context, c client.Client, name string) error {
	const interval, longest = 100 * time.Millisecond, time.Minute
	err := wait.PollUntilContextTimeout(ctx, interval, longest, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("CustomResourceDefinition %s is not established: %w", name, err)
	}
	return nil
}
