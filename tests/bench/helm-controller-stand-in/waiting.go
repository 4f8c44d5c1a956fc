package main

import (
	"context"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/clusterreader"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/fluxcd/pkg/runtime/statusreaders"
	"github.com/fluxcd/pkg/ssa"
	"helm.sh/helm/v4/pkg/kube"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waiting is Helm's Kubernetes client with another way to wait: by polling.
type waiting struct {
	*kube.Client
	objects  client.Client
	mapper   apimeta.RESTMapper
	interval time.Duration
	checks   []kustomize.CustomHealthCheck
	// cancel ends a wait early; nil is never.
	cancel context.Context
	// applied runs when everything is applied and the wait is about to begin.
	applied func(ctx context.Context, timeout time.Duration) error
}

func (w *waiting) GetWaiter(strategy kube.WaitStrategy) (kube.Waiter, error) {
	return w.GetWaiterWithOptions(strategy)
}

func (w *waiting) GetWaiterWithOptions(strategy kube.WaitStrategy, opts ...kube.WaitOption) (kube.Waiter, error) {
	helms, err := w.Client.GetWaiterWithOptions(strategy, opts...)
	if err != nil {
		return nil, err
	}
	if strategy == kube.StatusWatcherStrategy {
		poller, err := w.poller()
		if err != nil {
			return nil, err
		}
		helms = &pollingWaiter{Waiter: helms, ctx: w.context(), manager: poller, interval: w.interval}
	}
	return &announcing{Waiter: helms, from: w}, nil
}

func (w *waiting) context() context.Context {
	if w.cancel == nil {
		return context.Background()
	}
	return w.cancel
}

func (w *waiting) poller() (*ssa.ResourceManager, error) {
	readers := []engine.StatusReader{statusreaders.NewCustomJobStatusReader(w.mapper)}
	if len(w.checks) > 0 {
		custom, err := cel.NewStatusReader(w.checks)
		if err != nil {
			return nil, err
		}
		readers = append([]engine.StatusReader{custom(w.mapper)}, readers...)
	}
	poller := polling.NewStatusPoller(w.objects, w.mapper, polling.Options{
		CustomStatusReaders:  readers,
		ClusterReaderFactory: engine.ClusterReaderFactoryFunc(clusterreader.NewDirectClusterReader),
	})
	return ssa.NewResourceManager(w.objects, poller, ssa.Owner{Field: fieldManager}), nil
}

// announcing says that everything is applied before it waits.
type announcing struct {
	kube.Waiter
	from *waiting
}

func (a *announcing) Wait(resources kube.ResourceList, timeout time.Duration) error {
	if err := a.announce(timeout); err != nil {
		return err
	}
	return a.Waiter.Wait(resources, timeout)
}

func (a *announcing) WaitWithJobs(resources kube.ResourceList, timeout time.Duration) error {
	if err := a.announce(timeout); err != nil {
		return err
	}
	return a.Waiter.WaitWithJobs(resources, timeout)
}

func (a *announcing) announce(timeout time.Duration) error {
	if a.from.applied == nil {
		return nil
	}
	return a.from.applied(a.from.context(), timeout)
}

// pollingWaiter looks at once, then every interval; hooks stay with Helm.
type pollingWaiter struct {
	kube.Waiter
	ctx      context.Context
	manager  *ssa.ResourceManager
	interval time.Duration
}

func (p *pollingWaiter) Wait(resources kube.ResourceList, timeout time.Duration) error {
	var others kube.ResourceList
	for _, info := range resources {
		if info.Mapping.GroupVersionKind.GroupKind().String() != "Job.batch" {
			others = append(others, info)
		}
	}
	return p.WaitWithJobs(others, timeout)
}

func (p *pollingWaiter) WaitWithJobs(resources kube.ResourceList, timeout time.Duration) error {
	set, expiring := identities(resources)
	return p.manager.WaitForSetWithContext(p.ctx, set, ssa.WaitOptions{
		Interval: p.interval, Timeout: timeout, FailFast: true, JobsWithTTL: expiring,
	})
}

func (p *pollingWaiter) WaitForDelete(resources kube.ResourceList, timeout time.Duration) error {
	var gone []*unstructured.Unstructured
	for _, info := range resources {
		each := &unstructured.Unstructured{}
		each.SetGroupVersionKind(info.Mapping.GroupVersionKind)
		each.SetNamespace(info.Namespace)
		each.SetName(info.Name)
		gone = append(gone, each)
	}
	return p.manager.WaitForTermination(gone, ssa.WaitOptions{Interval: p.interval, Timeout: timeout})
}

// identities names the resources, and apart those Jobs that remove themselves.
func identities(resources kube.ResourceList) (set, expiring object.ObjMetadataSet) {
	for _, info := range resources {
		id := object.ObjMetadata{
			Namespace: info.Namespace,
			Name:      info.Name,
			GroupKind: info.Mapping.GroupVersionKind.GroupKind(),
		}
		set = append(set, id)
		if id.GroupKind.String() == "Job.batch" && hasTTL(info.Object) {
			expiring = append(expiring, id)
		}
	}
	return set, expiring
}

func hasTTL(job runtime.Object) bool {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return false
	}
	_, found, err := unstructured.NestedFieldNoCopy(fields, "spec", "ttlSecondsAfterFinished")
	return found && err == nil
}
