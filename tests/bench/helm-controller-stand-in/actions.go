package main

import (
	"context"
	"errors"
	"time"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// attempt is one install or upgrade.
type attempt struct {
	action v2.ReleaseAction
	err    error
	// recorded: Helm's storage holds a release of this attempt.
	recorded bool
	// cancelledBy names what cut the wait short.
	cancelledBy error
	// unsaved: the status could not be written, so nothing was done.
	unsaved error
}

// act installs or upgrades, and puts the result into the status.
func (p *pass) act(ctx context.Context, h *helm, want *desired, from state) attempt {
	made := attempt{action: v2.ReleaseActionUpgrade}
	timeout := p.hr.GetUpgrade().GetTimeout(p.hr.GetTimeout())
	if from == stateAbsent {
		made.action = v2.ReleaseActionInstall
		timeout = p.hr.GetInstall().GetTimeout(p.hr.GetTimeout())
		p.hr.Status.ClearHistory()
	}
	const running = "Running '%s' action with timeout of %s"
	conditions.MarkReconciling(p.hr, meta.ProgressingReason, running, made.action, timeout.Duration)
	conditions.MarkUnknown(p.hr, meta.ReadyCondition, meta.ProgressingReason, running, made.action, timeout.Duration)
	if made.unsaved = p.save(ctx); made.unsaved != nil {
		return made
	}
	began := time.Now()
	made.err = p.runHelm(ctx, h, want, made.action, timeout.Duration)
	p.record(h, want, &made, time.Since(began))
	if cancelled, source := runtimectrl.IsObjectEnqueued(ctx); cancelled && errors.Is(made.err, context.Canceled) {
		made.cancelledBy = source
		ctrl.LoggerFrom(ctx).Info("wait cancelled", "by", source.Error(), "resourceVersion", source.ResourceVersion)
	}
	time.Sleep(time.Until(p.began.Add(p.shortestAction)))
	return made
}

func (p *pass) runHelm(ctx context.Context, h *helm, want *desired, name v2.ReleaseAction, timeout time.Duration) error {
	trouble, err := faultOf(p.hr, want)
	if err != nil {
		return err
	}
	if err := trouble.before(timeout); err != nil {
		return err
	}
	h.waiting.cancel = p.interruption(ctx)
	h.waiting.applied = func(cancelled context.Context, timeout time.Duration) error {
		return trouble.after(cancelled, timeout, p.crash)
	}
	if err := p.applyCRDs(ctx, h, want, name); err != nil {
		return err
	}
	if name == v2.ReleaseActionInstall {
		_, err = p.install(h, timeout).RunWithContext(ctx, want.chart, want.values)
	} else {
		_, err = p.upgrade(h, timeout).RunWithContext(ctx, h.name, want.chart, want.values)
	}
	return err
}

func (p *pass) install(h *helm, timeout time.Duration) *action.Install {
	spec := p.hr.GetInstall()
	install := action.NewInstall(h.Configuration)
	install.ReleaseName = h.name
	install.Namespace = h.namespace
	install.Timeout = timeout
	install.WaitStrategy = p.waitStrategy(spec.DisableWait)
	install.WaitForJobs = !spec.DisableWaitForJobs
	install.DisableHooks = spec.DisableHooks
	install.DisableOpenAPIValidation = spec.DisableOpenAPIValidation
	install.SkipSchemaValidation = spec.DisableSchemaValidation
	install.Replace = spec.Replace
	install.CreateNamespace = spec.CreateNamespace
	install.TakeOwnership = !spec.DisableTakeOwnership
	install.SkipCRDs = true
	install.ServerSideApply = spec.ServerSideApply == nil || *spec.ServerSideApply
	install.ForceConflicts = install.ServerSideApply
	install.PostRenderer = renderingOf(p.hr)
	install.PostRenderStrategy = p.postRenderStrategy()
	return install
}

func (p *pass) upgrade(h *helm, timeout time.Duration) *action.Upgrade {
	spec := p.hr.GetUpgrade()
	upgrade := action.NewUpgrade(h.Configuration)
	upgrade.Namespace = h.namespace
	upgrade.Timeout = timeout
	upgrade.ResetValues = !spec.PreserveValues
	upgrade.ReuseValues = spec.PreserveValues
	upgrade.MaxHistory = p.hr.GetMaxHistory()
	upgrade.WaitStrategy = p.waitStrategy(spec.DisableWait)
	upgrade.WaitForJobs = !spec.DisableWaitForJobs
	upgrade.DisableHooks = spec.DisableHooks
	upgrade.DisableOpenAPIValidation = spec.DisableOpenAPIValidation
	upgrade.SkipSchemaValidation = spec.DisableSchemaValidation
	upgrade.CleanupOnFail = spec.CleanupOnFail
	upgrade.TakeOwnership = !spec.DisableTakeOwnership
	upgrade.SkipCRDs = true
	upgrade.ForceReplace = spec.Force
	upgrade.ServerSideApply = serverSide(string(spec.ServerSideApply))
	upgrade.ForceConflicts = upgrade.ServerSideApply != "false" && !upgrade.ForceReplace
	upgrade.PostRenderer = renderingOf(p.hr)
	upgrade.PostRenderStrategy = p.postRenderStrategy()
	return upgrade
}

// serverSide is Helm's word for the HelmRelease's.
func serverSide(mode string) string {
	switch mode {
	case "enabled":
		return "true"
	case "disabled":
		return "false"
	default:
		return "auto"
	}
}

func (p *pass) waitStrategy(disabled bool) kube.WaitStrategy {
	switch {
	case disabled:
		return kube.HookOnlyStrategy
	case p.hr.GetWaitStrategy() == v2.WaitStrategyLegacy:
		return kube.LegacyStrategy
	default:
		return kube.StatusWatcherStrategy
	}
}

func (p *pass) postRenderStrategy() action.PostRenderStrategy {
	if strategy := p.hr.GetPostRenderStrategy(); strategy != "" {
		return action.PostRenderStrategy(strategy)
	}
	return action.PostRenderStrategyCombined
}

// record puts an attempt's result into history, counters and conditions.
func (p *pass) record(h *helm, want *desired, made *attempt, took time.Duration) {
	status := &p.hr.Status
	before := 0
	if latest := status.History.Latest(); latest != nil {
		before = latest.Version
	}
	status.LastAttemptedReleaseAction = made.action
	status.LastAttemptedReleaseActionDuration = &metav1.Duration{Duration: took}
	newest := remember(&status.History, h.recorder.written)
	if newest != nil && newest.Version > before {
		made.recorded = true
		newest.Action = made.action
		newest.OCIDigest = want.ociDigest
		status.ObservedPostRenderersDigest = postRenderersDigest(p.hr)
		status.ObservedCommonMetadataDigest = commonMetadataDigest(p.hr)
		p.recordInventory(h, newest.Version)
	}
	conditions.Delete(p.hr, v2.RemediatedCondition)
	if made.err != nil {
		p.recordFailure(h, want, made)
		return
	}
	message := []any{made.action, newest.FullReleaseName(), newest.VersionedChartName()}
	for _, condition := range []string{v2.ReleasedCondition, meta.ReadyCondition} {
		conditions.MarkTrue(p.hr, condition, succeeded(made.action), "Helm %s succeeded for release %s with chart %s", message...)
	}
	if p.hr.GetActiveRetry(false) != nil {
		status.History.TruncateIgnoringPreviousSnapshots()
	} else {
		status.History.Truncate(true)
	}
}

func (p *pass) recordFailure(h *helm, want *desired, made *attempt) {
	p.hr.Status.Failures++
	if made.recorded {
		if remediation := p.hr.GetActiveRemediation(); remediation != nil {
			remediation.IncrementFailureCount(p.hr)
		}
	}
	message := []any{made.action, h.fullName(), want.chart.Metadata.Name, want.chart.Metadata.Version, made.err}
	for _, condition := range []string{v2.ReleasedCondition, meta.ReadyCondition} {
		conditions.MarkFalse(p.hr, condition, failed(made.action), "Helm %s failed for release %s with chart %s@%s: %s", message...)
	}
}

func (p *pass) recordInventory(h *helm, version int) {
	stored, err := h.Releases.Get(h.name, version)
	if err != nil {
		return
	}
	helmRelease, err := asRelease(stored)
	if err != nil {
		return
	}
	if inventory, err := inventoryOf(helmRelease, p.discovery.mapper); err == nil {
		p.hr.Status.Inventory = inventory
	}
}

func succeeded(name v2.ReleaseAction) string {
	if name == v2.ReleaseActionInstall {
		return v2.InstallSucceededReason
	}
	return v2.UpgradeSucceededReason
}

func failed(name v2.ReleaseAction) string {
	if name == v2.ReleaseActionInstall {
		return v2.InstallFailedReason
	}
	return v2.UpgradeFailedReason
}
