package main

import (
	"bytes"
	"maps"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizeapi "github.com/fluxcd/pkg/apis/kustomize"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"helm.sh/helm/v4/pkg/postrenderer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"
)

// originLabels mark every object of a release with the HelmRelease it is from.
func originLabels(hr *v2.HelmRelease) map[string]string {
	return map[string]string{
		v2.GroupVersion.Group + "/name":      hr.Name,
		v2.GroupVersion.Group + "/namespace": hr.Namespace,
	}
}

// rendering applies the HelmRelease's post-renderers in their order, then its
// common metadata, then the origin labels.
type rendering struct {
	steps       []v2.PostRenderer
	labels      map[string]string
	annotations map[string]string
}

var _ postrenderer.PostRenderer = (*rendering)(nil)

func renderingOf(hr *v2.HelmRelease) *rendering {
	made := &rendering{steps: hr.Spec.PostRenderers}
	if common := hr.Spec.CommonMetadata; common != nil {
		made.labels, made.annotations = common.Labels, common.Annotations
	}
	made.labels = merged(made.labels, originLabels(hr))
	return made
}

func (r *rendering) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	for _, step := range r.steps {
		if step.Kustomize == nil {
			continue
		}
		var err error
		if manifests, err = kustomized(manifests.Bytes(), step.Kustomize); err != nil {
			return nil, err
		}
	}
	objects, err := ssautil.ReadObjects(manifests)
	if err != nil {
		return nil, err
	}
	return r.labelled(objects)
}

func (r *rendering) labelled(objects []*unstructured.Unstructured) (*bytes.Buffer, error) {
	var out bytes.Buffer
	for _, each := range objects {
		each.SetLabels(merged(each.GetLabels(), r.labels))
		if len(r.annotations) > 0 {
			each.SetAnnotations(merged(each.GetAnnotations(), r.annotations))
		}
		document, err := yaml.Marshal(each.Object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(document)
	}
	return &out, nil
}

// kustomized builds the manifests with the step's patches and images.
func kustomized(manifests []byte, step *v2.Kustomize) (*bytes.Buffer, error) {
	const directory, resource = "/release", "manifests.yaml"
	kustomization := types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{resource},
	}
	for _, patch := range step.Patches {
		kustomization.Patches = append(kustomization.Patches, types.Patch{Patch: patch.Patch, Target: selector(patch.Target)})
	}
	for _, image := range step.Images {
		kustomization.Images = append(kustomization.Images, types.Image{
			Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest,
		})
	}
	encoded, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, err
	}
	files := filesys.MakeFsInMemory()
	if err := files.WriteFile(directory+"/kustomization.yaml", encoded); err != nil {
		return nil, err
	}
	if err := files.WriteFile(directory+"/"+resource, manifests); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, directory)
	if err != nil {
		return nil, err
	}
	out, err := built.AsYaml()
	return bytes.NewBuffer(out), err
}

func selector(target *kustomizeapi.Selector) *types.Selector {
	if target == nil {
		return nil
	}
	return &types.Selector{
		ResId: resid.ResId{
			Gvk:       resid.Gvk{Group: target.Group, Version: target.Version, Kind: target.Kind},
			Name:      target.Name,
			Namespace: target.Namespace,
		},
		AnnotationSelector: target.AnnotationSelector,
		LabelSelector:      target.LabelSelector,
	}
}

// merged is base with more laid over it, as a new map.
func merged(base, more map[string]string) map[string]string {
	if len(base)+len(more) == 0 {
		return nil
	}
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}
