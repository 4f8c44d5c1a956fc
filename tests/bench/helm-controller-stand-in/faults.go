package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations on a HelmRelease that ask for trouble in its next actions.
const (
	faultPrefix       = "stand-in.windlass.dev/"
	faultFail         = faultPrefix + "fail"
	faultHang         = faultPrefix + "hang"
	faultSlow         = faultPrefix + "slow"
	faultCrash        = faultPrefix + "crash"
	faultCrashed      = faultPrefix + "crashed"
	faultChartVersion = faultPrefix + "chart-version"
	faultTimes        = faultPrefix + "times"
)

// crashExit is the exit code of a crash that was asked for.
const crashExit = 86

// moment is when in an action a fault happens.
type moment string

const (
	// momentNone: no fault.
	momentNone moment = ""
	// momentBefore: before Helm does anything; no release is recorded.
	momentBefore moment = "before"
	// momentApplied: the objects are applied, the wait is about to begin.
	momentApplied moment = "applied"
)

// fault is the trouble asked for in one action.
type fault struct {
	fail, hang, crash moment
	token             string
	slow              time.Duration
}

// faultOf reads the annotations; none, when they do not concern this attempt.
func faultOf(hr *v2.HelmRelease, want *desired) (fault, error) {
	asked := hr.GetAnnotations()
	if version := asked[faultChartVersion]; version != "" && version != want.chart.Metadata.Version {
		return fault{}, nil
	}
	if limit := asked[faultTimes]; limit != "" {
		times, err := strconv.ParseInt(limit, 10, 64)
		if err != nil {
			return fault{}, fmt.Errorf("%s: %w", faultTimes, err)
		}
		if hr.Status.Failures >= times {
			return fault{}, nil
		}
	}
	made := fault{fail: moment(asked[faultFail]), hang: moment(asked[faultHang])}
	for name, at := range map[string]moment{faultFail: made.fail, faultHang: made.hang} {
		if at != momentNone && at != momentBefore && at != momentApplied {
			return fault{}, fmt.Errorf("%s: %q is neither %s nor %s", name, at, momentBefore, momentApplied)
		}
	}
	if slow := asked[faultSlow]; slow != "" {
		var err error
		if made.slow, err = time.ParseDuration(slow); err != nil {
			return fault{}, fmt.Errorf("%s: %w", faultSlow, err)
		}
	}
	if token := asked[faultCrash]; token != "" && token != asked[faultCrashed] {
		made.crash, made.token = momentApplied, token
	}
	return made, nil
}

var errAsked = errors.New("failure asked for by annotation")

func (f fault) before(timeout time.Duration) error {
	time.Sleep(f.slow)
	if f.hang == momentBefore {
		time.Sleep(timeout)
		return context.DeadlineExceeded
	}
	if f.fail == momentBefore {
		return errAsked
	}
	return nil
}

func (f fault) after(cancelled context.Context, timeout time.Duration, crash func(token string)) error {
	if f.crash == momentApplied {
		crash(f.token)
	}
	if f.hang == momentApplied {
		select {
		case <-cancelled.Done():
			return cancelled.Err()
		case <-time.After(timeout):
			return errors.New("timeout waiting for: [hang asked for by annotation]")
		}
	}
	if f.fail == momentApplied {
		return errAsked
	}
	return nil
}

// crash ends the process with the release pending and the status as it is.
// The annotation keeps the next process from crashing for the same token.
func (p *pass) crash(token string) {
	done := p.hr.DeepCopy()
	done.SetAnnotations(merged(done.GetAnnotations(), map[string]string{faultCrashed: token}))
	if err := p.direct.Patch(context.Background(), done, client.MergeFrom(p.hr)); err != nil {
		fmt.Fprintln(os.Stderr, "helm-controller-stand-in: crash could not be noted:", err)
	}
	os.Exit(crashExit)
}
