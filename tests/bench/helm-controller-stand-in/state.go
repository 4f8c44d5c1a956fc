package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"github.com/opencontainers/go-digest"
	"helm.sh/helm/v4/pkg/release/common"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// state is how a release compares with what is wanted of it.
type state int

const (
	// stateAbsent: nothing is in Helm's storage.
	stateAbsent state = iota
	// stateUnmanaged: the storage holds a release that the history does not know.
	stateUnmanaged
	// stateLocked: an action began and was never ended.
	stateLocked
	// stateFailed: the last action failed.
	stateFailed
	// stateOutOfSync: deployed, but not what is wanted now.
	stateOutOfSync
	// stateDrifted: as wanted, but the cluster's objects differ from it.
	stateDrifted
	// stateInSync: as wanted.
	stateInSync
)

// seen is one observation of a release.
type seen struct {
	state state
	last  *rspb.Release
	drift jsondiff.DiffSet
}

// observe compares Helm's storage, the history and the cluster with want.
func (p *pass) observe(ctx context.Context, h *helm, want *desired, force bool) (seen, error) {
	stored, err := h.Releases.Last(h.name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return seen{state: stateAbsent}, nil
	}
	if err != nil {
		return seen{}, err
	}
	last, err := asRelease(stored)
	if err != nil {
		return seen{}, err
	}
	found := seen{state: p.compare(last, want, force), last: last}
	if found.state == stateInSync && p.hr.GetDriftDetection().MustDetectChanges() {
		if found.drift, err = p.drift(ctx, h, last); err != nil {
			return seen{}, err
		}
		if found.drift.HasChanges() {
			found.state = stateDrifted
		}
	}
	return found, nil
}

func (p *pass) compare(last *rspb.Release, want *desired, force bool) state {
	known, stored := p.hr.Status.History.Latest(), snapshotOf(last)
	switch {
	case last.Info.Status.IsPending():
		return stateLocked
	case last.Info.Status == common.StatusUninstalled || last.Info.Status == common.StatusUninstalling:
		return stateAbsent
	case known == nil || known.Version != stored.Version || known.Digest != stored.Digest:
		return stateUnmanaged
	case last.Info.Status == common.StatusFailed:
		return stateFailed
	case force || !p.matches(last, want):
		return stateOutOfSync
	default:
		return stateInSync
	}
}

func (p *pass) matches(last *rspb.Release, want *desired) bool {
	status := &p.hr.Status
	return last.Chart.Metadata.Name == want.chart.Metadata.Name &&
		last.Chart.Metadata.Version == want.chart.Metadata.Version &&
		chartutil.DigestValues(digest.Canonical, last.Config).String() == want.configDigest &&
		status.ObservedPostRenderersDigest == postRenderersDigest(p.hr) &&
		status.ObservedCommonMetadataDigest == commonMetadataDigest(p.hr)
}

func postRenderersDigest(hr *v2.HelmRelease) string {
	if len(hr.Spec.PostRenderers) == 0 {
		return ""
	}
	return digestOf(hr.Spec.PostRenderers)
}

func commonMetadataDigest(hr *v2.HelmRelease) string {
	if hr.Spec.CommonMetadata == nil {
		return ""
	}
	return digestOf(hr.Spec.CommonMetadata)
}

// releaseName is the Helm release's name; one that is too long for Helm is cut
// and gets a part of its own hash.
func releaseName(hr *v2.HelmRelease) string {
	const longest, kept, hashed = 53, 40, 12
	name := hr.GetReleaseName()
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:kept] + "-" + hex.EncodeToString(sum[:])[:hashed]
}
