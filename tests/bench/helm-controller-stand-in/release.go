package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"
	"helm.sh/helm/v4/pkg/release/common"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reasons that the API package does not name.
const (
	reasonRetriesExceeded = "RetriesExceeded"
	reasonMissingTarget   = "MissingRollbackTarget"
	reasonStateError      = "StateError"
)

// release moves the release towards want: observe, act, write, observe again,
// until it is in sync or this pass can do no more.
func (p *pass) release(ctx context.Context, want *desired) outcome {
	force := v2.ShouldHandleForceRequest(p.hr)
	var tried *attempt
	for {
		h, err := p.helmAt(p.hr, wantedPlace(p.hr))
		if err != nil {
			return outcome{err: err}
		}
		found, err := p.observe(ctx, h, want, force && tried == nil)
		if err != nil {
			conditions.MarkFalse(p.hr, meta.ReadyCondition, reasonStateError, "Could not determine release state: %s", err)
			return outcome{err: err}
		}
		switch found.state {
		case stateInSync:
			return p.settle(false)
		case stateDrifted:
			return p.handleDrift(ctx, h, found)
		case stateLocked:
			if err := p.unlock(ctx, h, found); err != nil {
				return outcome{err: err}
			}
			continue
		case stateFailed:
			if end := p.mayRetry(ctx, h, tried); end != nil {
				return *end
			}
		case stateAbsent, stateUnmanaged, stateOutOfSync:
			if tried != nil {
				return outcome{err: errors.New("release is not as wanted after a successful action")}
			}
			if end := p.stalledByFailures(); end != nil {
				return *end
			}
		}
		made := p.act(ctx, h, want, found.state)
		if made.unsaved != nil {
			return outcome{err: made.unsaved}
		}
		if made.err != nil && !made.recorded {
			return p.afterUnrecorded(made)
		}
		if err := p.save(ctx); err != nil {
			return outcome{err: err}
		}
		tried = &made
	}
}

// settle reports a release that is as wanted. Ready repeats what Released says,
// so that a passing SourceNotReady does not stay.
func (p *pass) settle(drifted bool) outcome {
	p.hr.Status.ClearFailures()
	if !drifted && conditions.IsTrue(p.hr, v2.DriftedCondition) {
		conditions.MarkFalse(p.hr, v2.DriftedCondition, v2.NoDriftDetectedReason, "Cluster state is as desired")
	}
	conditions.Delete(p.hr, meta.ReconcilingCondition)
	conditions.Delete(p.hr, meta.StalledCondition)
	if released := conditions.Get(p.hr, v2.ReleasedCondition); released != nil {
		mirrored := *released
		mirrored.Type = meta.ReadyCondition
		conditions.Set(p.hr, &mirrored)
	}
	return outcome{observed: true, result: ctrl.Result{RequeueAfter: p.hr.GetRequeueAfter()}}
}

// mayRetry decides what a failed release means for this pass: nil lets it act.
func (p *pass) mayRetry(ctx context.Context, h *helm, tried *attempt) *outcome {
	if retry := p.hr.GetActiveRetry(false); retry != nil {
		if tried == nil {
			return nil
		}
		end := p.retryLater(*tried, retry.GetRetryInterval())
		return &end
	}
	if tried != nil && tried.cancelledBy != nil {
		end := p.retryLater(*tried, 0)
		return &end
	}
	remediation := p.hr.GetActiveRemediation()
	if remediation == nil || remediation.GetFailureCount(p.hr) == 0 {
		if tried != nil {
			return &outcome{err: tried.err}
		}
		return nil
	}
	exhausted := remediation.RetriesExhausted(p.hr)
	if exhausted && !remediation.MustRemediateLastFailure() {
		return p.stalledByFailures()
	}
	if end := p.remediate(ctx, h, remediation); end != nil {
		return end
	}
	if exhausted {
		return p.stalledByFailures()
	}
	return &outcome{result: ctrl.Result{Requeue: true}}
}

// stalledByFailures ends the pass when no attempt is left for this spec.
func (p *pass) stalledByFailures() *outcome {
	remediation := p.hr.GetActiveRemediation()
	if p.hr.GetActiveRetry(false) != nil || remediation == nil || !remediation.RetriesExhausted(p.hr) {
		return nil
	}
	failures := remediation.GetFailureCount(p.hr)
	if failures == 0 {
		return nil
	}
	conditions.MarkStalled(p.hr, reasonRetriesExceeded, "Failed to %s after %d attempt(s)",
		p.hr.Status.LastAttemptedReleaseAction, failures)
	return &outcome{observed: true}
}

// retryLater reports a failed attempt that is repeated without remediation. A
// wait that a newer revision cut short is no observation of this generation.
func (p *pass) retryLater(tried attempt, interval time.Duration) outcome {
	if interval > 0 {
		conditions.MarkReconciling(p.hr, meta.ProgressingWithRetryReason, "retrying after %s", interval)
	}
	if tried.cancelledBy == nil {
		return outcome{observed: true, result: ctrl.Result{RequeueAfter: interval}}
	}
	conditions.MarkFalse(p.hr, meta.ReadyCondition, meta.HealthCheckCanceledReason,
		"New reconciliation triggered by %s", tried.cancelledBy)
	p.pauses.set(client.ObjectKeyFromObject(p.hr), time.Now().Add(p.cancelledPause))
	return outcome{result: ctrl.Result{RequeueAfter: p.cancelledPause}}
}

// afterUnrecorded ends a pass whose action failed before Helm recorded a
// release: one write carries the failure and what follows from it.
func (p *pass) afterUnrecorded(tried attempt) outcome {
	if retry := p.hr.GetActiveRetry(false); retry != nil {
		return p.retryLater(tried, retry.GetRetryInterval())
	}
	return outcome{err: tried.err}
}

// unlock marks a release that a dead process left pending as failed.
func (p *pass) unlock(ctx context.Context, h *helm, found seen) error {
	was := found.last.Info.Status
	found.last.SetStatus(common.StatusFailed, fmt.Sprintf("Release unlocked from stale '%s' state", was))
	if err := h.Releases.Update(found.last); err != nil {
		return err
	}
	remember(&p.hr.Status.History, h.recorder.written)
	conditions.MarkFalse(p.hr, v2.ReleasedCondition, "PendingRelease",
		"Unlocked Helm release %s.v%d from stale '%s' state", h.fullName(), found.last.Version, was)
	return p.save(ctx)
}

// interruption is what would end a wait early, when the gate is on.
func (p *pass) interruption(ctx context.Context) context.Context {
	if !p.cancelOnNewer {
		return nil
	}
	return runtimectrl.GetInterruptContext(ctx)
}

func (at place) fullName() string { return at.namespace + "/" + at.name }
