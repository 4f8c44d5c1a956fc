//! Which cluster and namespace a command speaks of, and requests to it.

pub mod diff;
pub mod history;
mod output;
pub mod retry;
pub mod rollback;
pub mod status;
pub mod why;
mod workloads;

use std::error::Error as _;
use std::path::PathBuf;

use kube::api::{DynamicObject, TypeMeta};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::api::wellknown::FIELD_MANAGER;
use crate::api::{Package, PackageRevision};
use crate::controller::cluster::{RequestError, bounded};
use crate::controller::kinds::Kind;
use crate::package::names::{PackageName, revision_name};

/// The usual flags of commands that talk to a cluster.
#[derive(Debug, clap::Args)]
pub struct ClusterArguments {
    /// Namespace of the Package [default: the context's].
    #[arg(short = 'n', long)]
    namespace: Option<String>,
    /// Context of the kubeconfig.
    #[arg(long)]
    context: Option<String>,
    /// Path of the kubeconfig [default: $KUBECONFIG, then ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// A cluster, and the namespace that is meant.
pub struct Cluster {
    client: Client,
    namespace: String,
}

impl ClusterArguments {
    /// Connects; nothing is sent yet.
    ///
    /// # Errors
    /// When no kubeconfig, or nothing usable in it, is found.
    pub async fn connect(&self) -> anyhow::Result<Cluster> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match &self.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path).map_err(unusable)?;
                Config::from_custom_kubeconfig(file, &options).await.map_err(unusable)?
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options).await.map_err(unusable)?,
            None => infer().await?,
        };
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok(Cluster { client: Client::try_from(config).map_err(untrusted)?, namespace })
    }
}

/// Where neither the kubeconfig nor the system names anybody to trust, kube's
/// client does not come to be.
fn untrusted(error: kube::Error) -> anyhow::Error {
    if error.to_string().contains("No CA certificates were loaded") {
        return anyhow::anyhow!(
            "the cluster cannot be trusted: this system has no certificates, and the kubeconfig names no \
             certificate-authority-data for it: add it there"
        );
    }
    error.into()
}

fn unusable(error: KubeconfigError) -> anyhow::Error {
    anyhow::anyhow!("no cluster is configured: {}", told(&error))
}

/// What is wrong with a kubeconfig. The texts of these errors hold those of their
/// causes, and the path as a Rust value.
fn told(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(cause, path) => {
            format!("failed to read kubeconfig from `{}`: {cause}", path.display())
        }
        other => other.to_string(),
    }
}

/// The cluster around this process, else that of the kubeconfig.
///
/// # Errors
/// When there is neither.
pub async fn infer() -> anyhow::Result<Config> {
    let unconfigured = |error: InferConfigError| {
        let kubeconfig = error.source().and_then(|cause| cause.downcast_ref());
        let kubeconfig = kubeconfig.map_or_else(|| error.to_string(), told);
        anyhow::anyhow!(
            "no cluster is configured: this is not inside of one, and {kubeconfig}; name a file with --kubeconfig or \
             KUBECONFIG"
        )
    };
    Config::infer().await.map_err(unconfigured)
}

impl Cluster {
    /// Packages of a namespace; of all of them for `None`.
    pub fn packages(&self, namespace: Option<&str>) -> Api<Package> {
        match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// One Package.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn package(&self, name: &str) -> anyhow::Result<Package> {
        let found = bounded(self.packages(Some(&self.namespace)).get(name)).await;
        found.map_err(|error| self.explain(error, name))
    }

    /// Objects of a kind of ours as they are stored: one of them, or those of a namespace,
    /// or all.
    ///
    /// # Errors
    /// When they cannot be read.
    async fn stored(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> anyhow::Result<Vec<DynamicObject>> {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind.resource()),
            None => Api::all_with(self.client.clone(), &kind.resource()),
        };
        let mut found = match name {
            Some(name) => vec![bounded(api.get(name)).await.map_err(|error| self.explain(error, name))?],
            None => {
                let list = bounded(api.list(&kube::api::ListParams::default())).await;
                list.map_err(|error| {
                    listed(
                        error,
                        if kind == Kind::Package { "cannot list the Packages" } else { "cannot list the revisions" },
                    )
                })?
                .items
            }
        };
        let resource = kind.resource();
        let types = TypeMeta { api_version: resource.api_version, kind: resource.kind };
        found.iter_mut().for_each(|object| object.types = Some(types.clone()));
        Ok(found)
    }

    /// A Package as it is stored, fields that this program does not know
    /// included; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn package_as_written(&self, namespace: &str, name: &str) -> anyhow::Result<Option<Value>> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &Kind::Package.resource());
        match bounded(api.get(name)).await {
            Ok(found) => Ok(Some(found.data)),
            Err(error) if error.is_not_found() && !error.is_kind_unknown() => Ok(None),
            Err(error) => Err(self.explain(error, name)),
        }
    }

    /// The revisions of a Package, numbers rising.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn revisions(&self, package: &str) -> anyhow::Result<Vec<PackageRevision>> {
        let api: Api<PackageRevision> = Api::namespaced(self.client.clone(), &self.namespace);
        let list = bounded(api.list(&kube::api::ListParams::default())).await;
        let list = list.map_err(|error| listed(error, "cannot read the revisions"))?;
        let mut revisions: Vec<_> = list.items.into_iter().filter(|found| found.spec.package == package).collect();
        revisions.sort_by_key(|revision| revision.spec.number);
        Ok(revisions)
    }

    /// The revision that a Package is on the way to; `None` if what it runs is what it wants.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn revision_under_way(&self, package: &Package) -> Result<Option<PackageRevision>, RequestError> {
        let status = package.status.as_ref();
        let attempted =
            status.and_then(|status| status.attempted.as_ref().filter(|a| Some(a.revision) != status.revision));
        let name = package.metadata.name.as_deref().and_then(|name| PackageName::parse(name).ok());
        let (Some(attempted), Some(name)) = (attempted, name) else { return Ok(None) };
        let namespace = package.metadata.namespace.as_deref().unwrap_or(&self.namespace);
        let api: Api<PackageRevision> = Api::namespaced(self.client.clone(), namespace);
        match bounded(api.get(&revision_name(&name, attempted.revision))).await {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts an annotation on a Package.
    ///
    /// # Errors
    /// When there is no such Package, or it may not be written.
    pub async fn annotate(&self, package: &str, annotation: &str, value: &str) -> anyhow::Result<()> {
        let patch = json!({"metadata": {"annotations": {annotation: value}}});
        let parameters =
            kube::api::PatchParams { field_manager: Some(format!("{FIELD_MANAGER}-cli")), ..Default::default() };
        let api = self.packages(Some(&self.namespace));
        let written = bounded(api.patch_metadata(package, &parameters, &kube::api::Patch::Merge(patch))).await;
        written.map(drop).map_err(|error| self.explain(error, package))
    }

    fn explain(&self, error: RequestError, package: &str) -> anyhow::Error {
        if error.is_kind_unknown() {
            not_installed()
        } else if error.is_not_found() {
            anyhow::anyhow!("there is no Package {}/{package} (`windlass status -A` shows all)", self.namespace)
        } else {
            anyhow::Error::from(error).context(format!("cannot use Package {}/{package}", self.namespace))
        }
    }
}

fn listed(error: RequestError, what: &'static str) -> anyhow::Error {
    if error.is_kind_unknown() { not_installed() } else { anyhow::Error::from(error).context(what) }
}

/// The kinds of Windlass are missing.
fn not_installed() -> anyhow::Error {
    anyhow::anyhow!(
        "this cluster does not know Packages: install their kinds with `windlass crds | kubectl apply --server-side -f -`, \
         or choose another cluster with --context"
    )
}

/// A token that differs from every earlier one.
fn token() -> String {
    jiff::Timestamp::now().as_millisecond().to_string()
}

/// Runs a command that talks to a cluster.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
