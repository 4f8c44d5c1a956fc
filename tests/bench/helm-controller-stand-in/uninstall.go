package main

import (
	"context"
	"errors"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// remove handles a HelmRelease that is being deleted. The release is left in
// place when the HelmRelease is suspended or its account no longer exists.
func (p *pass) remove(ctx context.Context) outcome {
	if !controllerutil.ContainsFinalizer(p.hr, v2.HelmReleaseFinalizer) {
		return outcome{}
	}
	if !p.hr.Spec.Suspend {
		able, err := p.accountExists(ctx)
		if err != nil {
			conditions.MarkFalse(p.hr, meta.ReadyCondition, v2.UninstallFailedReason, "failed to confirm ServiceAccount: %s", err)
			return outcome{err: err}
		}
		if able {
			if err := p.uninstallCurrent(); err != nil {
				return outcome{err: err}
			}
		}
	}
	if err := p.removeChartObject(ctx); err != nil {
		return outcome{err: err}
	}
	controllerutil.RemoveFinalizer(p.hr, v2.HelmReleaseFinalizer)
	return outcome{}
}

func (p *pass) accountExists(ctx context.Context) (bool, error) {
	if p.hr.Spec.ServiceAccountName == "" {
		return true, nil
	}
	key := client.ObjectKey{Namespace: p.hr.Namespace, Name: p.hr.Spec.ServiceAccountName}
	err := p.direct.Get(ctx, key, &corev1.ServiceAccount{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// uninstallCurrent uninstalls what the history says runs now.
func (p *pass) uninstallCurrent() error {
	latest := p.hr.Status.History.Latest()
	if latest == nil {
		return nil
	}
	at := place{
		storageNamespace: orElse(p.hr.Status.StorageNamespace, p.hr.GetStorageNamespace()),
		namespace:        latest.Namespace,
		name:             latest.Name,
	}
	h, err := p.helmAt(p.hr, at)
	if err != nil {
		return err
	}
	spec := p.hr.GetUninstall()
	uninstall := action.NewUninstall(h.Configuration)
	uninstall.Timeout = spec.GetTimeout(p.hr.GetTimeout()).Duration
	uninstall.DisableHooks = spec.DisableHooks
	uninstall.KeepHistory = spec.KeepHistory
	uninstall.DeletionPropagation = spec.GetDeletionPropagation()
	uninstall.WaitStrategy = p.waitStrategy(spec.DisableWait)
	_, err = uninstall.Run(at.name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		err = nil
	}
	about := []any{latest.FullReleaseName(), latest.VersionedChartName()}
	if err != nil {
		p.markBoth(v2.UninstallFailedReason, "Helm uninstall failed for release %s with chart %s: %s", append(about, err)...)
		return err
	}
	p.markBoth(v2.UninstallSucceededReason, "Helm uninstall succeeded for release %s with chart %s", about...)
	return nil
}

func (p *pass) markBoth(reason, format string, args ...any) {
	for _, condition := range []string{v2.ReleasedCondition, meta.ReadyCondition} {
		conditions.MarkFalse(p.hr, condition, reason, format, args...)
	}
}

// replaceChangedTarget uninstalls a release that moves to another identity
// (storage namespace, namespace, name) or, unless asked to keep it, another
// chart; the next pass installs anew. It says whether it did.
func (p *pass) replaceChangedTarget(ctx context.Context, want *desired) (bool, error) {
	status := &p.hr.Status
	latest := status.History.Latest()
	if latest == nil {
		return false, nil
	}
	at := wantedPlace(p.hr)
	moved := (status.StorageNamespace != "" && status.StorageNamespace != at.storageNamespace) ||
		latest.Namespace != at.namespace || latest.Name != at.name
	otherChart := latest.ChartName != want.chart.Metadata.Name &&
		p.hr.GetUpgrade().GetChartNameChangeStrategy() != v2.ChartNameChangeStrategyInPlaceUpdate
	if !moved && !otherChart {
		return false, nil
	}
	ctrl.LoggerFrom(ctx).Info("release target changed: uninstalling", "release", latest.FullReleaseName())
	if err := p.uninstallCurrent(); err != nil {
		return false, err
	}
	status.ClearHistory()
	status.ClearFailures()
	status.StorageNamespace = ""
	return true, nil
}

// remediate undoes a failed action: an install by uninstalling, an upgrade by
// rolling back. It returns an outcome when the pass cannot go on.
func (p *pass) remediate(ctx context.Context, h *helm, remediation v2.Remediation) *outcome {
	if conditions.IsTrue(p.hr, v2.RemediatedCondition) {
		return nil
	}
	if remediation.GetStrategy() == v2.UninstallRemediationStrategy {
		latest := p.hr.Status.History.Latest()
		if err := p.uninstallCurrent(); err != nil {
			return &outcome{err: err}
		}
		p.hr.Status.ClearHistory()
		p.remediated(v2.UninstallSucceededReason, "uninstall remediation", latest)
	} else {
		target := p.hr.Status.History.Previous(true)
		if target == nil {
			conditions.MarkStalled(p.hr, reasonMissingTarget, "Failed to perform remediation: missing target release for rollback")
			return &outcome{observed: true}
		}
		if err := p.rollback(h, target); err != nil {
			conditions.MarkFalse(p.hr, v2.RemediatedCondition, v2.RollbackFailedReason, "Helm rollback failed: %s", err)
			return &outcome{err: err}
		}
		p.remediated(v2.RollbackSucceededReason, "rollback", target)
	}
	if err := p.save(ctx); err != nil {
		return &outcome{err: err}
	}
	return nil
}

func (p *pass) rollback(h *helm, target *v2.Snapshot) error {
	spec := p.hr.GetRollback()
	rollback := action.NewRollback(h.Configuration)
	rollback.Version = target.Version
	rollback.Timeout = spec.GetTimeout(p.hr.GetTimeout()).Duration
	rollback.WaitStrategy = p.waitStrategy(spec.DisableWait)
	rollback.WaitForJobs = !spec.DisableWaitForJobs
	rollback.DisableHooks = spec.DisableHooks
	rollback.CleanupOnFail = spec.CleanupOnFail
	rollback.ServerSideApply = "auto"
	rollback.ForceConflicts = true
	err := rollback.Run(h.name)
	if newest := remember(&p.hr.Status.History, h.recorder.written); newest != nil {
		newest.Action = v2.ReleaseActionRollback
	}
	return err
}

func (p *pass) remediated(reason, what string, about *v2.Snapshot) {
	const format = "Helm %s succeeded for release %s with chart %s"
	args := []any{what, about.FullReleaseName(), about.VersionedChartName()}
	conditions.MarkTrue(p.hr, v2.RemediatedCondition, reason, format, args...)
	conditions.MarkFalse(p.hr, meta.ReadyCondition, reason, format, args...)
}
