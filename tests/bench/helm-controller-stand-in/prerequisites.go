package main

import (
	"context"
	"fmt"
	"time"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/opencontainers/go-digest"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// desired is what a pass wants to see released.
type desired struct {
	chart        *chart.Chart
	values       common.Values
	configDigest string
	// ociDigest is the digest of an OCIRepository's artifact, else empty.
	ociDigest string
}

// notReady says which prerequisite is missing. It is tried again after a
// fixed pause, or through the rate limiter when there is none, or (terminal)
// not before the spec changes.
type notReady struct {
	reason   string
	message  string
	again    time.Duration
	terminal bool
}

func (e *notReady) Error() string { return e.reason + ": " + e.message }

// prerequisites goes in the recorded order: the HelmChart object is written
// before dependencies are looked at, the source is read after them.
func (p *pass) prerequisites(ctx context.Context) (*desired, error) {
	if p.hr.GetTest().Enable || p.hr.Spec.KubeConfig != nil {
		return nil, &notReady{reason: "NotInStandIn", message: "spec.test and spec.kubeConfig are not played", terminal: true}
	}
	if err := p.ensureChartObject(ctx); err != nil {
		return nil, err
	}
	if err := p.checkDependencies(ctx); err != nil {
		return nil, err
	}
	source, err := p.source(ctx)
	if err != nil {
		return nil, err
	}
	values, err := chartutil.ChartValuesFromReferences(ctx, ctrl.LoggerFrom(ctx), p.direct,
		p.hr.Namespace, p.hr.GetValues(), p.hr.Spec.ValuesFrom...)
	if err != nil {
		return nil, &notReady{reason: "ValuesError", message: err.Error()}
	}
	want := &desired{values: values, configDigest: chartutil.DigestValues(digest.Canonical, values).String()}
	if want.chart, err = p.loadChart(ctx, source); err != nil {
		return nil, err
	}
	want.ociDigest = source.ociDigest
	return want, nil
}

func (p *pass) checkDependencies(ctx context.Context) error {
	for _, ref := range p.hr.Spec.DependsOn {
		key := types.NamespacedName{Namespace: orElse(ref.Namespace, p.hr.Namespace), Name: ref.Name}
		if err := p.checkDependency(ctx, key, ref.ReadyExpr); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) checkDependency(ctx context.Context, key types.NamespacedName, readyExpr string) error {
	waiting := func(format string, args ...any) error {
		return &notReady{
			reason:  v2.DependencyNotReadyReason,
			message: fmt.Sprintf(format, args...),
			again:   p.requeueDependency,
		}
	}
	dependency := &v2.HelmRelease{}
	if err := p.direct.Get(ctx, key, dependency); err != nil {
		return waiting("unable to get '%s' dependency: %s", key, err)
	}
	if readyExpr == "" {
		if dependency.Generation != dependency.Status.ObservedGeneration || !conditions.IsTrue(dependency, meta.ReadyCondition) {
			return waiting("dependency '%s' is not ready", key)
		}
		return nil
	}
	expression, err := cel.NewExpression(readyExpr, cel.WithCompile(), cel.WithStructVariables("self", "dep"))
	if err != nil {
		return &notReady{reason: meta.InvalidCELExpressionReason, message: err.Error(), terminal: true}
	}
	variables, err := celVariables(map[string]*v2.HelmRelease{"self": p.hr, "dep": dependency})
	if err != nil {
		return err
	}
	ready, err := expression.EvaluateBoolean(ctx, variables)
	if err != nil {
		return waiting("failed to evaluate readyExpr of dependency '%s': %s", key, err)
	}
	if !ready {
		return waiting("dependency '%s' is not ready according to readyExpr eval", key)
	}
	return nil
}

func celVariables(objects map[string]*v2.HelmRelease) (map[string]any, error) {
	variables := make(map[string]any, len(objects))
	for name, object := range objects {
		value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}
		variables[name] = value
	}
	return variables, nil
}
