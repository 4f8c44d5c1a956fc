package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/opencontainers/go-digest"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/types"
)

func helmRelease(t *testing.T, text string) *v2.HelmRelease {
	t.Helper()
	hr := &v2.HelmRelease{}
	if err := json.Unmarshal([]byte(text), hr); err != nil {
		t.Fatal(err)
	}
	return hr
}

// The digests are those of the recordings.
func TestDigestsAreTheRecordedOnes(t *testing.T) {
	hr := helmRelease(t, `{"spec": {"postRenderers": [{"kustomize": {"patches": [{
		"target": {"kind": "Deployment"},
		"patch": "- op: add\n  path: /spec/template/spec/nodeSelector\n  value: {no: where}\n"}]}}]}}`)
	if found, want := postRenderersDigest(hr), "sha256:4ff9abe305a8b2cb57404b8612e4d20aaa6bdd0d6446c63551c2d7d76449014d"; found != want {
		t.Errorf("post-renderers: %s, want %s", found, want)
	}
	values := common.Values{"note": "x"}
	if found, want := chartutil.DigestValues(digest.Canonical, values).String(), "sha256:2b6ebb14454fc8edf52b23c522a4285475294673bfde52a1d618bcff65e66bd6"; found != want {
		t.Errorf("values: %s, want %s", found, want)
	}
}

func TestRenderingPatchesThenLabels(t *testing.T) {
	hr := helmRelease(t, `{"metadata": {"name": "a", "namespace": "ns"}, "spec": {
		"commonMetadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}},
		"postRenderers": [{"kustomize": {
			"images": [{"name": "one", "newName": "two", "newTag": "3"}],
			"patches": [{"target": {"kind": "Pod"}, "patch": "- {op: add, path: /spec/nodeSelector, value: {zone: nowhere}}"}]}}]}}`)
	in := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {own: z}}\nspec: {containers: [{name: c, image: one}]}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
	out, err := renderingOf(hr).Run(bytes.NewBufferString(in))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"image: two:3", "zone: nowhere", "own: z", "team: x", "note: \"y\"",
		"helm.toolkit.fluxcd.io/name: a", "helm.toolkit.fluxcd.io/namespace: ns",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if found := strings.Count(out.String(), "helm.toolkit.fluxcd.io/name: a"); found != 2 {
		t.Errorf("%d objects are labelled, want 2", found)
	}
}

func storedRelease(version int, status releasecommon.Status) *rspb.Release {
	return &rspb.Release{
		Name: "a", Namespace: "ns", Version: version, Manifest: "kind: X",
		Info:  &rspb.Info{Status: status, FirstDeployed: time.Now(), LastDeployed: time.Now()},
		Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "conf", Version: "1.0.0"}},
	}
}

func TestHistoryForgetsTheActionOfTheReleaseBefore(t *testing.T) {
	var history v2.Snapshots
	first := snapshotOf(storedRelease(1, releasecommon.StatusDeployed))
	if newest := remember(&history, []*v2.Snapshot{snapshotOf(storedRelease(1, releasecommon.StatusPendingInstall)), first}); newest != first {
		t.Fatalf("newest is %v", newest)
	}
	first.Action = v2.ReleaseActionInstall
	second := snapshotOf(storedRelease(2, releasecommon.StatusDeployed))
	superseded := snapshotOf(storedRelease(1, releasecommon.StatusSuperseded))
	remember(&history, []*v2.Snapshot{snapshotOf(storedRelease(2, releasecommon.StatusPendingUpgrade)), superseded, second})
	if len(history) != 2 || history[0] != second || history[1] != superseded {
		t.Fatalf("history is %v", history)
	}
	if history[1].Action != "" || history[1].Status != "superseded" || history[1].Digest == first.Digest {
		t.Errorf("the first release is kept as %+v", history[1])
	}
}

func TestSnapshotDigestSurvivesStorage(t *testing.T) {
	original := storedRelease(1, releasecommon.StatusDeployed)
	original.Config = map[string]any{"replicas": 3, "ratio": 0.5, "on": true}
	encoded, err := json.Marshal(original)
	if err != nil {
		t.Fatal(err)
	}
	stored := &rspb.Release{}
	if err := json.Unmarshal(encoded, stored); err != nil {
		t.Fatal(err)
	}
	if before, after := snapshotOf(original), snapshotOf(stored); before.Digest != after.Digest {
		t.Errorf("digest %s became %s", before.Digest, after.Digest)
	}
}

func TestReleaseNames(t *testing.T) {
	for name, want := range map[string]string{
		"short":                 "short",
		strings.Repeat("a", 53): strings.Repeat("a", 53),
		strings.Repeat("a", 54): strings.Repeat("a", 40) + "-f511ddf69f86",
	} {
		hr := &v2.HelmRelease{}
		hr.Name = name
		found := releaseName(hr)
		if len(found) > 53 || (len(name) <= 53 && found != want) || !strings.HasPrefix(found, want[:min(40, len(want))]) {
			t.Errorf("%s: %s", name, found)
		}
	}
}

func TestFaults(t *testing.T) {
	want := &desired{chart: &chart.Chart{Metadata: &chart.Metadata{Version: "1.1.0"}}}
	asked := func(failures int64, annotations map[string]string) *v2.HelmRelease {
		hr := &v2.HelmRelease{}
		hr.SetAnnotations(annotations)
		hr.Status.Failures = failures
		return hr
	}
	for name, test := range map[string]struct {
		hr     *v2.HelmRelease
		want   fault
		failed bool
	}{
		"none":              {hr: asked(0, nil)},
		"fail":              {hr: asked(0, map[string]string{faultFail: "applied"}), want: fault{fail: momentApplied}},
		"this version":      {hr: asked(0, map[string]string{faultHang: "before", faultChartVersion: "1.1.0"}), want: fault{hang: momentBefore}},
		"another version":   {hr: asked(0, map[string]string{faultHang: "before", faultChartVersion: "1.0.0"})},
		"times left":        {hr: asked(1, map[string]string{faultFail: "before", faultTimes: "2"}), want: fault{fail: momentBefore}},
		"times used up":     {hr: asked(2, map[string]string{faultFail: "before", faultTimes: "2"})},
		"slow":              {hr: asked(0, map[string]string{faultSlow: "3s"}), want: fault{slow: 3 * time.Second}},
		"crash":             {hr: asked(0, map[string]string{faultCrash: "x"}), want: fault{crash: momentApplied, token: "x"}},
		"crashed already":   {hr: asked(0, map[string]string{faultCrash: "x", faultCrashed: "x"})},
		"misspelt moment":   {hr: asked(0, map[string]string{faultFail: "aplied"}), failed: true},
		"misspelt duration": {hr: asked(0, map[string]string{faultSlow: "3"}), failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := faultOf(test.hr, want)
			if (err != nil) != test.failed || found != test.want {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}

func TestHangEndsWithTheCancelledWait(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	err := fault{hang: momentApplied}.after(cancelled, time.Hour, nil)
	if err != context.Canceled {
		t.Errorf("%v", err)
	}
}

func TestPauses(t *testing.T) {
	key, now := types.NamespacedName{Name: "a"}, time.Now()
	var kept pauses
	if left := kept.left(key, now); left > 0 {
		t.Errorf("a pause nobody asked for: %s", left)
	}
	kept.set(key, now.Add(time.Second))
	if left := kept.left(key, now); left != time.Second {
		t.Errorf("left: %s", left)
	}
	if left := kept.left(key, now.Add(time.Second)); left > 0 {
		t.Errorf("still left: %s", left)
	}
}
