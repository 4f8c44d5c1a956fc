//! Names that Windlass writes into a cluster, one constant each.

/// API group of all our kinds.
pub const GROUP: &str = "windlass.dev";
/// Version of our API.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of all our kinds.
pub const API_VERSION: &str = "windlass.dev/v1alpha1";
/// Field manager of every server-side apply, and value of the managed-by label.
pub const FIELD_MANAGER: &str = "windlass";

/// Label on children: name of the Package that owns the child.
pub const LABEL_PACKAGE: &str = "windlass.dev/package";
/// Label on children: name of the component the child stands for.
pub const LABEL_COMPONENT: &str = "windlass.dev/component";
/// Standard label that names the tool in charge.
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label on a live DaemonSet; its value picks the canary guard's policy.
pub const LABEL_CANARY: &str = "windlass.dev/canary";
/// Label on the canary guard's policies: which value of [`LABEL_CANARY`] they are for.
pub const LABEL_GUARD: &str = "windlass.dev/guard";

/// Label of ClusterRoles that widen what the controller reads for Packages
/// without an account (`manifests/controller/rbac.yaml`).
pub const LABEL_AGGREGATE: &str = "windlass.dev/aggregate-to-reader";

/// Annotation on children: digest of the component the child was rendered from.
pub const ANNOTATION_DIGEST: &str = "windlass.dev/digest";
/// Annotation on children: position in the apply order, kept for uninstall.
pub const ANNOTATION_WAVE: &str = "windlass.dev/wave";
/// Annotation on children in native mode: fingerprint of everything above the component.
pub const ANNOTATION_UPSTREAM: &str = "windlass.dev/upstream";
/// Annotation on the child of a hook: number of the revision that runs it.
pub const ANNOTATION_HOOK: &str = "windlass.dev/hook";
/// Annotation on a foreign object: `<namespace>/<package>/<component>` that may take it over.
pub const ANNOTATION_ADOPT: &str = "windlass.dev/adopt";
/// Annotation on a Package: a new value asks for another attempt.
pub const ANNOTATION_RETRY: &str = "windlass.dev/retry";
/// Annotation on a Package: `<revision>@<token>` asks for a rollback.
pub const ANNOTATION_ROLLBACK_TO: &str = "windlass.dev/rollback-to";
/// Annotation on a Package: `true` lets a deletion go on in spite of requirers.
pub const ANNOTATION_FORCE_DELETE: &str = "windlass.dev/force-delete";
/// Annotation on a compiled Package: version of the compiled form.
pub const ANNOTATION_COMPILED_BY: &str = "windlass.dev/compiled-by";
/// Value of [`ANNOTATION_COMPILED_BY`].
pub const COMPILED_BY: &str = "v1";
/// Annotation on a Namespace: Argo CD project of the Applications made in it.
pub const ANNOTATION_ARGO_PROJECT: &str = "windlass.dev/argo-project";

/// Finalizer of a Package, held until its releases are gone or handed over.
pub const FINALIZER: &str = "windlass.dev/package";
/// Finalizer of a PackageRevision that is in use.
pub const FINALIZER_REVISION: &str = "windlass.dev/revision";

/// Flux leaves an object with this annotation out of its pruning when set to
/// [`FLUX_DISABLED`] (kustomize-controller, spec v1).
pub const FLUX_PRUNE: &str = "kustomize.toolkit.fluxcd.io/prune";
/// Flux leaves `${…}` in an object alone when this is [`FLUX_DISABLED`].
pub const FLUX_SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";
/// Value that switches a Flux behaviour off.
pub const FLUX_DISABLED: &str = "disabled";
/// Label Flux puts on what a Kustomization applied: the Kustomization's name.
pub const FLUX_OWNER_NAME: &str = "kustomize.toolkit.fluxcd.io/name";
/// Label Flux puts on what a Kustomization applied: the Kustomization's namespace.
pub const FLUX_OWNER_NAMESPACE: &str = "kustomize.toolkit.fluxcd.io/namespace";
/// Label helm-controller puts on every object of a release: the HelmRelease's name.
pub const FLUX_RELEASE_NAME: &str = "helm.toolkit.fluxcd.io/name";
/// Label helm-controller puts on every object of a release: the HelmRelease's namespace.
pub const FLUX_RELEASE_NAMESPACE: &str = "helm.toolkit.fluxcd.io/namespace";
/// Asks a Flux object for a reconciliation (`status.lastHandledReconcileAt` answers).
pub const FLUX_RECONCILE: &str = "reconcile.fluxcd.io/requestedAt";

/// Argo CD's name for the cluster it runs in.
pub const ARGO_IN_CLUSTER: &str = "https://kubernetes.default.svc";
/// Argo CD's tracking annotation (default tracking method since 3.0).
pub const ARGO_TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
/// Argo CD's tracking label (default tracking method before 3.0).
pub const ARGO_TRACKING_LABEL: &str = "app.kubernetes.io/instance";
/// Argo CD: options for the comparison of one object.
pub const ARGO_COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
/// Argo CD: options for the synchronisation of one object.
pub const ARGO_SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
/// Argo CD: wave of an object inside a synchronisation.
pub const ARGO_SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// Argo CD: asks for a comparison; removed by the controller when handled.
pub const ARGO_REFRESH: &str = "argocd.argoproj.io/refresh";
/// Argo CD: foreground cascading deletion of an Application's resources.
pub const ARGO_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// Helm leaves an object with this annotation set to `keep` when it uninstalls.
pub const HELM_RESOURCE_POLICY: &str = "helm.sh/resource-policy";
/// Label on a Namespace: which pods Kubernetes admits to it.
pub const POD_SECURITY_ENFORCE: &str = "pod-security.kubernetes.io/enforce";
