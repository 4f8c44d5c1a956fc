//! The kinds that the controller watches for all Packages.

use kube::api::ApiResource;

use crate::api::Engine;

/// A kind that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Our Packages.
    Package,
    /// Our PackageRevisions.
    PackageRevision,
    /// Flux: releases.
    HelmRelease,
    /// Flux: repositories.
    HelmRepository,
    /// Flux: charts.
    HelmChart,
    /// Flux: charts in OCI registries.
    OciRepository,
    /// Flux: commits that charts are taken from.
    GitRepository,
    /// Argo CD: releases.
    Application,
}

/// Where DaemonSets are served.
pub fn daemon_set_resource() -> ApiResource {
    resource("apps", "v1", "DaemonSet", "daemonsets")
}

/// Where the objects of a kind are served; the core group is empty.
pub fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource { group: group.into(), version: version.into(), api_version, kind: kind.into(), plural: plural.into() }
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Package,
        Self::PackageRevision,
        Self::HelmRelease,
        Self::HelmRepository,
        Self::HelmChart,
        Self::OciRepository,
        Self::GitRepository,
        Self::Application,
    ];

    /// The engine that brings the kind; `None` for ours.
    pub const fn engine(self) -> Option<Engine> {
        match self {
            Self::Package | Self::PackageRevision => None,
            Self::HelmRelease | Self::HelmRepository | Self::HelmChart | Self::OciRepository | Self::GitRepository => {
                Some(Engine::Flux)
            }
            Self::Application => Some(Engine::Argo),
        }
    }

    /// Whether only objects with our managed-by label are watched.
    pub const fn is_labelled(self) -> bool {
        self.engine().is_some()
    }

    /// The name of the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Package => "Package",
            Self::PackageRevision => "PackageRevision",
            Self::HelmRelease => "HelmRelease",
            Self::HelmRepository => "HelmRepository",
            Self::HelmChart => "HelmChart",
            Self::OciRepository => "OCIRepository",
            Self::GitRepository => "GitRepository",
            Self::Application => "Application",
        }
    }

    /// The kind of a name.
    pub fn of(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == kind)
    }

    /// Name of the CustomResourceDefinition.
    pub fn definition(self) -> String {
        let resource = self.resource();
        format!("{}.{}", resource.plural, resource.group)
    }

    /// Where its objects are served.
    pub fn resource(self) -> ApiResource {
        let (group, version, plural) = match self {
            Self::Package => ("windlass.dev", "v1alpha1", "packages"),
            Self::PackageRevision => ("windlass.dev", "v1alpha1", "packagerevisions"),
            Self::HelmRelease => ("helm.toolkit.fluxcd.io", "v2", "helmreleases"),
            Self::HelmRepository => ("source.toolkit.fluxcd.io", "v1", "helmrepositories"),
            Self::HelmChart => ("source.toolkit.fluxcd.io", "v1", "helmcharts"),
            Self::OciRepository => ("source.toolkit.fluxcd.io", "v1", "ocirepositories"),
            Self::GitRepository => ("source.toolkit.fluxcd.io", "v1", "gitrepositories"),
            Self::Application => ("argoproj.io", "v1alpha1", "applications"),
        };
        resource(group, version, self.as_str(), plural)
    }
}
