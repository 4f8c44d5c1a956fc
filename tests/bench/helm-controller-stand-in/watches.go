package main

import (
	"context"
	"fmt"
	"time"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/predicates"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v2.AddToScheme, sourcev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func newManager(config *rest.Config, opts options) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	cached := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&v2.HelmRelease{}: {Label: opts.selector},
	}}
	if opts.namespace != "" {
		cached.DefaultNamespaces = map[string]cache.Config{opts.namespace: {}}
	}
	// Told to end, it ends at once; a release in an action stays pending.
	atOnce := time.Duration(0)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		GracefulShutdownTimeout: &atOnce,
		Scheme:                  scheme,
		Cache:                   cached,
		Metrics:                 server.Options{BindAddress: "0"},
		HealthProbeBindAddress:  opts.healthAddress,
	})
	if err != nil {
		return nil, err
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := manager.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	reconciler, err := newReconciler(manager, opts)
	if err != nil {
		return nil, err
	}
	return manager, watch(manager, reconciler, opts)
}

// watch makes the events that start a reconcile, and that interrupt one that
// waits: a new generation or request, a new artifact, a labelled values object.
func watch(manager ctrl.Manager, r *reconciler, opts options) error {
	watched := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetLabels()[meta.LabelKeyWatch] == meta.LabelValueWatchEnabled
	})
	wrapped := runtimectrl.WrapReconciler(r)
	starts := func(kind string, of handler.MapFunc) handler.EventHandler {
		return newest{wrapped.EnqueueRequestsFromMapFunc(kind, of)}
	}
	return ctrl.NewControllerManagedBy(manager).
		Named("helmrelease").
		Watches(&v2.HelmRelease{}, starts(v2.HelmReleaseKind, itself), builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}))).
		Watches(&sourcev1.HelmChart{}, starts(sourcev1.HelmChartKind, r.usersOfChart),
			builder.WithPredicates(newArtifact{})).
		Watches(&sourcev1.OCIRepository{}, starts(sourcev1.OCIRepositoryKind, r.usersOfOCI),
			builder.WithPredicates(newArtifact{})).
		WatchesMetadata(&corev1.ConfigMap{}, starts("ConfigMap", r.usersOfValues("ConfigMap")),
			builder.WithPredicates(watched, predicate.ResourceVersionChangedPredicate{})).
		WatchesMetadata(&corev1.Secret{}, starts("Secret", r.usersOfValues("Secret")),
			builder.WithPredicates(watched, predicate.ResourceVersionChangedPredicate{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: opts.concurrent,
			RateLimiter:             runtimectrl.GetDefaultRateLimiter(),
		}).
		Complete(wrapped)
}

// newest maps only the new object of an update. The mapping handler takes the
// old and the new one; where it also interrupts, the second of the two can cut
// short the very pass that the first has started.
type newest struct{ handler.EventHandler }

func (n newest) Update(
	ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[ctrl.Request],
) {
	n.Create(ctx, event.CreateEvent{Object: e.ObjectNew}, queue)
}

func itself(_ context.Context, o client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

// newArtifact lets a source's event through when its artifact is another one.
type newArtifact struct{ predicate.Funcs }

func (newArtifact) Create(event.CreateEvent) bool   { return false }
func (newArtifact) Delete(event.DeleteEvent) bool   { return false }
func (newArtifact) Generic(event.GenericEvent) bool { return false }

func (newArtifact) Update(e event.UpdateEvent) bool {
	before, after := artifactOf(e.ObjectOld), artifactOf(e.ObjectNew)
	if after == nil {
		return false
	}
	return before == nil || !before.HasRevision(after.Revision) || !before.HasDigest(after.Digest)
}

func artifactOf(o client.Object) *meta.Artifact {
	if source, ok := o.(interface{ GetArtifact() *meta.Artifact }); ok {
		return source.GetArtifact()
	}
	return nil
}

func (r *reconciler) usersOfChart(ctx context.Context, chart client.Object) []ctrl.Request {
	made := fmt.Sprintf("%s/%s", chart.GetNamespace(), chart.GetName())
	return r.releasesWhere(ctx, func(hr *v2.HelmRelease) bool {
		return hr.Status.HelmChart == made || refersTo(hr, sourcev1.HelmChartKind, chart)
	})
}

func (r *reconciler) usersOfOCI(ctx context.Context, repository client.Object) []ctrl.Request {
	return r.releasesWhere(ctx, func(hr *v2.HelmRelease) bool {
		return refersTo(hr, sourcev1.OCIRepositoryKind, repository)
	})
}

func refersTo(hr *v2.HelmRelease, kind string, o client.Object) bool {
	ref := hr.Spec.ChartRef
	if ref == nil || ref.Kind != kind || ref.Name != o.GetName() {
		return false
	}
	return orElse(ref.Namespace, hr.Namespace) == o.GetNamespace()
}

func (r *reconciler) usersOfValues(kind string) func(context.Context, client.Object) []ctrl.Request {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		return r.releasesWhere(ctx, func(hr *v2.HelmRelease) bool {
			if hr.Namespace != o.GetNamespace() {
				return false
			}
			for _, ref := range hr.Spec.ValuesFrom {
				if ref.Kind == kind && ref.Name == o.GetName() {
					return true
				}
			}
			return false
		})
	}
}

func (r *reconciler) releasesWhere(ctx context.Context, holds func(*v2.HelmRelease) bool) []ctrl.Request {
	var all v2.HelmReleaseList
	if err := r.cached.List(ctx, &all); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing HelmReleases for a watched object")
		return nil
	}
	var requests []ctrl.Request
	for i := range all.Items {
		if holds(&all.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func uncachedClient(config *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	return client.New(config, client.Options{Scheme: scheme})
}
