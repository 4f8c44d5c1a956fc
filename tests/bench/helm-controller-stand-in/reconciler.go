package main

import (
	"context"
	"errors"
	"sync"
	"time"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/patch"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// reconciler holds what all reconciles share.
type reconciler struct {
	options
	// cached lists HelmReleases for the watches; everything else is read and
	// written through direct, so that no decision rests on an old object.
	cached    client.Reader
	direct    client.Client
	config    *rest.Config
	discovery *discoveryCache
	pauses    pauses
}

func newReconciler(manager ctrl.Manager, opts options) (*reconciler, error) {
	config := manager.GetConfig()
	direct, err := uncachedClient(config, manager.GetScheme())
	if err != nil {
		return nil, err
	}
	discovery, err := newDiscoveryCache(config)
	if err != nil {
		return nil, err
	}
	return &reconciler{
		options:   opts,
		cached:    manager.GetClient(),
		direct:    direct,
		config:    config,
		discovery: discovery,
	}, nil
}

// pass is one reconcile of one HelmRelease. hr keeps the spec the pass began
// with, whatever is written to the API meanwhile.
type pass struct {
	*reconciler
	hr      *v2.HelmRelease
	patcher *patch.SerialPatcher
	began   time.Time
	// written is the HelmChart, when this pass changed it.
	written *sourcev1.HelmChart
}

// outcome is how a pass ended.
type outcome struct {
	result ctrl.Result
	err    error
	// observed lets status.observedGeneration move to the pass's generation.
	observed bool
}

// Reconcile brings one HelmRelease a step further.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if left := r.pauses.left(request.NamespacedName, time.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	hr := &v2.HelmRelease{}
	if err := r.direct.Get(ctx, request.NamespacedName, hr); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	p := &pass{reconciler: r, hr: hr, patcher: patch.NewSerialPatcher(hr, r.direct), began: time.Now()}
	end := p.run(ctx)
	if err := p.finish(ctx, end.observed); err != nil {
		return ctrl.Result{}, errors.Join(end.err, err)
	}
	return end.result, end.err
}

func (p *pass) run(ctx context.Context) outcome {
	switch {
	case !p.hr.DeletionTimestamp.IsZero():
		return p.remove(ctx)
	case controllerutil.AddFinalizer(p.hr, v2.HelmReleaseFinalizer):
		// Through the rate limiter: the real controller comes back after 750 ms.
		return outcome{result: ctrl.Result{Requeue: true}}
	case p.hr.Spec.Suspend:
		return outcome{observed: true}
	default:
		return p.reconcile(ctx)
	}
}

func (p *pass) reconcile(ctx context.Context) outcome {
	conditions.MarkReconciling(p.hr, meta.ProgressingReason, "Fulfilling prerequisites")
	if err := p.save(ctx); err != nil {
		return outcome{err: err}
	}
	want, err := p.prerequisites(ctx)
	if err != nil {
		return p.unmet(err)
	}
	changed, err := p.replaceChangedTarget(ctx, want)
	if err != nil {
		return outcome{err: err}
	}
	if changed {
		return outcome{result: ctrl.Result{Requeue: true}}
	}
	p.noteAttempt(want)
	return p.release(ctx, want)
}

// unmet turns a missing prerequisite into the condition that reports it.
func (p *pass) unmet(err error) outcome {
	var waiting *notReady
	if !errors.As(err, &waiting) {
		return outcome{err: err}
	}
	conditions.MarkFalse(p.hr, meta.ReadyCondition, waiting.reason, "%s", waiting.message)
	switch {
	case waiting.terminal:
		conditions.MarkStalled(p.hr, waiting.reason, "%s", waiting.message)
		return outcome{observed: true}
	case waiting.again > 0:
		return outcome{result: ctrl.Result{RequeueAfter: waiting.again}}
	default:
		return outcome{err: err}
	}
}

// noteAttempt records what is about to be compared or released; counters of
// failures start anew when any of it is new.
func (p *pass) noteAttempt(want *desired) {
	status := &p.hr.Status
	if v2.ShouldHandleResetRequest(p.hr) ||
		status.LastAttemptedGeneration != p.hr.Generation ||
		status.LastAttemptedRevision != want.chart.Metadata.Version ||
		status.LastAttemptedConfigDigest != want.configDigest {
		status.ClearFailures()
	}
	status.LastAttemptedGeneration = p.hr.Generation
	status.LastAttemptedRevision = want.chart.Metadata.Version
	status.LastAttemptedRevisionDigest = want.ociDigest
	status.LastAttemptedConfigDigest = want.configDigest
	status.StorageNamespace = p.hr.GetStorageNamespace()
}

var ownedConditions = patch.WithOwnedConditions{Conditions: []string{
	meta.ReadyCondition, meta.ReconcilingCondition, meta.StalledCondition,
	v2.ReleasedCondition, v2.RemediatedCondition, v2.TestSuccessCondition, v2.DriftedCondition,
}}

// save writes what changed since the last save: first the conditions, then the
// metadata, then the rest of the status, each only when it differs.
func (p *pass) save(ctx context.Context, opts ...patch.Option) error {
	return p.patcher.Patch(ctx, p.hr, append(opts, ownedConditions, patch.WithFieldOwner(fieldManager))...)
}

func (p *pass) finish(ctx context.Context, observed bool) error {
	if token, ok := meta.ReconcileAnnotationValue(p.hr.GetAnnotations()); ok {
		p.hr.Status.SetLastHandledReconcileRequest(token)
	}
	var opts []patch.Option
	if observed {
		opts = append(opts, patch.WithStatusObservedGeneration{})
	}
	err := p.save(ctx, opts...)
	if !p.hr.DeletionTimestamp.IsZero() {
		// The last finalizer goes with the metadata; there may be no status to write after it.
		err = kerrors.FilterOut(err, apierrors.IsNotFound)
	}
	return err
}

// pauses keeps releases from being taken up before a time.
type pauses struct {
	mutex sync.Mutex
	until map[types.NamespacedName]time.Time
}

func (p *pauses) set(key types.NamespacedName, until time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.until == nil {
		p.until = map[types.NamespacedName]time.Time{}
	}
	p.until[key] = until
}

func (p *pauses) left(key types.NamespacedName, now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	left := p.until[key].Sub(now)
	if left <= 0 {
		delete(p.until, key)
	}
	return left
}
