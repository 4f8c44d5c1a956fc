package main

import (
	"fmt"
	"io"
	"log/slog"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// discoveryCache is what the API server serves, shared by all releases.
type discoveryCache struct {
	client discovery.CachedDiscoveryInterface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newDiscoveryCache(config *rest.Config) (*discoveryCache, error) {
	plain, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(plain)
	return &discoveryCache{client: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}, nil
}

// clientGetter gives Helm its clients: as the release's account, in the
// release's namespace.
type clientGetter struct {
	config    *rest.Config
	discovery *discoveryCache
	namespace string
}

func (g *clientGetter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g *clientGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery.client, nil
}

func (g *clientGetter) ToRESTMapper() (apimeta.RESTMapper, error) { return g.discovery.mapper, nil }

func (g *clientGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, overrides)
}

// place is where a release lives.
type place struct {
	storageNamespace string
	namespace        string
	name             string
}

func wantedPlace(hr *v2.HelmRelease) place {
	return place{
		storageNamespace: hr.GetStorageNamespace(),
		namespace:        hr.GetReleaseNamespace(),
		name:             releaseName(hr),
	}
}

// helm is Helm set up for one release.
type helm struct {
	place
	*action.Configuration
	recorder *recorder
	client   client.Client
	waiting  *waiting
}

func (r *reconciler) accountConfig(hr *v2.HelmRelease) *rest.Config {
	config := rest.CopyConfig(r.config)
	if account := hr.Spec.ServiceAccountName; account != "" {
		config.Impersonate = rest.ImpersonationConfig{
			UserName: fmt.Sprintf("system:serviceaccount:%s:%s", hr.Namespace, account),
		}
	}
	return config
}

func (r *reconciler) helmAt(hr *v2.HelmRelease, at place) (*helm, error) {
	config := r.accountConfig(hr)
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := client.New(config, client.Options{Scheme: r.direct.Scheme(), Mapper: r.discovery.mapper})
	if err != nil {
		return nil, err
	}
	getter := &clientGetter{config: config, discovery: r.discovery, namespace: at.namespace}
	silent := slog.DiscardHandler
	kubeClient := kube.New(getter)
	kubeClient.Namespace = at.namespace
	kubeClient.SetLogger(silent)
	secrets := driver.NewSecrets(clientset.CoreV1().Secrets(at.storageNamespace))
	secrets.SetLogger(silent)

	made := &helm{
		place:         at,
		Configuration: action.NewConfiguration(action.ConfigurationSetLogger(silent)),
		recorder:      &recorder{Driver: secrets},
		client:        objects,
	}
	made.waiting = &waiting{
		Client:   kubeClient,
		objects:  objects,
		mapper:   r.discovery.mapper,
		interval: r.pollInterval,
		checks:   hr.Spec.HealthCheckExprs,
	}
	made.RESTClientGetter = getter
	made.KubeClient = made.waiting
	made.Releases = storage.Init(made.recorder)
	made.HookOutputFunc = func(_, _, _ string) io.Writer { return io.Discard }
	return made, nil
}

// recorder notes every release that Helm writes to its storage.
type recorder struct {
	driver.Driver
	written []*v2.Snapshot
}

func (r *recorder) Create(key string, made release.Releaser) error {
	if err := r.Driver.Create(key, made); err != nil {
		return err
	}
	return r.note(made)
}

func (r *recorder) Update(key string, changed release.Releaser) error {
	if err := r.Driver.Update(key, changed); err != nil {
		return err
	}
	return r.note(changed)
}

func (r *recorder) note(written release.Releaser) error {
	helmRelease, err := asRelease(written)
	if err != nil {
		return err
	}
	r.written = append(r.written, snapshotOf(helmRelease))
	return nil
}

func asRelease(any release.Releaser) (*rspb.Release, error) {
	switch typed := any.(type) {
	case *rspb.Release:
		return typed, nil
	case rspb.Release:
		return &typed, nil
	default:
		return nil, fmt.Errorf("release of an unknown type %T", any)
	}
}
