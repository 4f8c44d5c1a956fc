package main

import (
	"context"
	"encoding/json"
	"strings"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/chartutil"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"github.com/opencontainers/go-digest"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// snapshotOf is the history entry of a release as it is in Helm's storage.
func snapshotOf(helmRelease *rspb.Release) *v2.Snapshot {
	snapshot := &v2.Snapshot{
		APIVersion:   v2.CurrentSnapshotAPIVersion,
		Name:         helmRelease.Name,
		Namespace:    helmRelease.Namespace,
		Version:      helmRelease.Version,
		ConfigDigest: chartutil.DigestValues(digest.Canonical, helmRelease.Config).String(),
	}
	if helmRelease.Info != nil {
		snapshot.Status = helmRelease.Info.Status.String()
		snapshot.FirstDeployed = metav1.NewTime(helmRelease.Info.FirstDeployed)
		snapshot.LastDeployed = metav1.NewTime(helmRelease.Info.LastDeployed)
		snapshot.Deleted = metav1.NewTime(helmRelease.Info.Deleted)
	}
	if helmRelease.Chart != nil && helmRelease.Chart.Metadata != nil {
		snapshot.ChartName = helmRelease.Chart.Metadata.Name
		snapshot.ChartVersion = helmRelease.Chart.Metadata.Version
		snapshot.AppVersion = helmRelease.Chart.Metadata.AppVersion
	}
	snapshot.Digest = releaseDigest(snapshot, helmRelease)
	return snapshot
}

// releaseDigest changes with what identifies a stored release and survives its
// way through the storage.
func releaseDigest(snapshot *v2.Snapshot, helmRelease *rspb.Release) string {
	hooks := make([]string, 0, len(helmRelease.Hooks))
	for _, hook := range helmRelease.Hooks {
		hooks = append(hooks, hook.Manifest)
	}
	return digestOf([]any{
		snapshot.Name, snapshot.Namespace, snapshot.Version, snapshot.Status,
		snapshot.ChartName, snapshot.ChartVersion, snapshot.ConfigDigest,
		helmRelease.Manifest, hooks,
	})
}

// digestOf is the digest of a value's JSON and a newline, as recorded runs have it.
func digestOf(value any) string {
	digester := digest.Canonical.Digester()
	if err := json.NewEncoder(digester.Hash()).Encode(value); err != nil {
		return ""
	}
	return digester.Digest().String()
}

// remember puts what Helm wrote into the history: the newest form of each
// version. It returns the newest version written, or nil.
func remember(history *v2.Snapshots, written []*v2.Snapshot) *v2.Snapshot {
	var newest *v2.Snapshot
	for _, snapshot := range written {
		place := -1
		for i, known := range *history {
			if known.Targets(snapshot.Name, snapshot.Namespace, snapshot.Version) {
				place = i
			}
		}
		if place < 0 {
			*history = append(*history, snapshot)
		} else {
			snapshot.OCIDigest = (*history)[place].OCIDigest
			(*history)[place] = snapshot
		}
		if newest == nil || snapshot.Version >= newest.Version {
			newest = snapshot
		}
	}
	history.SortByVersion()
	return newest
}

// inventoryOf lists the objects of a release's manifest and its chart's CRDs.
func inventoryOf(helmRelease *rspb.Release, mapper apimeta.RESTMapper) (*v2.ResourceInventory, error) {
	objects, err := ssautil.ReadObjects(strings.NewReader(helmRelease.Manifest))
	if err != nil {
		return nil, err
	}
	if helmRelease.Chart != nil {
		for _, crd := range helmRelease.Chart.CRDObjects() {
			more, err := ssautil.ReadObjects(strings.NewReader(string(crd.File.Data)))
			if err != nil {
				return nil, err
			}
			objects = append(objects, more...)
		}
	}
	inventory := &v2.ResourceInventory{Entries: []v2.ResourceRef{}}
	for _, each := range objects {
		inventory.Entries = append(inventory.Entries, inventoryEntry(each, helmRelease.Namespace, mapper))
	}
	return inventory, nil
}

func inventoryEntry(each *unstructured.Unstructured, namespace string, mapper apimeta.RESTMapper) v2.ResourceRef {
	kind := each.GroupVersionKind()
	if own := each.GetNamespace(); own != "" {
		namespace = own
	} else if mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil &&
		mapping.Scope.Name() == apimeta.RESTScopeNameRoot {
		namespace = ""
	}
	return v2.ResourceRef{
		ID:      strings.Join([]string{namespace, each.GetName(), kind.Group, kind.Kind}, "_"),
		Version: kind.Version,
	}
}

// manifestObjects are the objects of a stored release, with their namespaces.
func (h *helm) manifestObjects(ctx context.Context, helmRelease *rspb.Release) ([]*unstructured.Unstructured, error) {
	objects, err := ssautil.ReadObjects(strings.NewReader(helmRelease.Manifest))
	if err != nil {
		return nil, err
	}
	for _, each := range objects {
		namespaced, err := h.client.IsObjectNamespaced(each)
		if err != nil {
			return nil, err
		}
		if namespaced && each.GetNamespace() == "" {
			each.SetNamespace(helmRelease.Namespace)
		}
	}
	return objects, ctx.Err()
}
