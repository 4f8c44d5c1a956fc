//! Releases that belong together as a Package.

use std::collections::BTreeSet;

use super::chart::ChartFinder;
use super::needs::{Need, find};
use super::{Helmfile, Release, hooks, ignored, values};
use crate::api::{Component, Install, PackageSpec, Upgrade, UpgradeCrds};
use crate::import::group::{common_words, connected};
use crate::import::{DEFAULT_NAMESPACE, Imported, Options, Severity, bare, component_name, stated};
use crate::package::duration::GoDuration;

/// What all Packages of one import share.
pub(super) struct Context<'a, 'o> {
    pub options: &'a Options<'o>,
    pub helmfiles: &'a [Helmfile],
    pub releases: &'a [Release],
    pub version: &'a str,
}

/// A release on its way into a Package.
struct Member<'a> {
    release: &'a Release,
    helmfile: &'a Helmfile,
    component: String,
    subject: String,
}

impl<'a> Context<'a, '_> {
    /// Adds the Packages of all releases.
    pub fn packages(&self, imported: &mut Imported) {
        self.tell_of_all(imported);
        let mut edges = Vec::new();
        for (position, release) in self.releases.iter().enumerate().filter(|(_, release)| release.is_installed) {
            let needs = release.spec.needs.iter().map(|need| find(self.releases, release, need));
            edges.extend(
                needs.filter_map(|need| if let Need::Release(on) = need { Some((position, on)) } else { None }),
            );
        }
        let mut taken: Vec<String> = Vec::new();
        for set in connected(self.releases.len(), &edges) {
            let releases: Vec<&Release> = set.iter().filter_map(|position| self.releases.get(*position)).collect();
            let Some(first) = releases.iter().find(|release| release.is_installed) else { continue };
            let common = common_words(releases.iter().map(|release| release.spec.name.as_str()));
            let full = format!("{}-{}", first.id.namespace, first.spec.name);
            let candidates = [common, first.spec.name.clone(), full.clone()];
            let free = |name: &String| !name.is_empty() && !taken.contains(name);
            let name = candidates.into_iter().find(free).unwrap_or(full);
            self.package(imported, &name, &releases);
            taken.push(name);
        }
    }

    fn namespace(&self) -> &str {
        self.options.namespace.as_ref().map_or(DEFAULT_NAMESPACE, |namespace| namespace.as_str())
    }

    fn tell_of_all(&self, imported: &mut Imported) {
        let installed = || self.releases.iter().filter(|release| release.is_installed);
        if self.options.namespace.is_none() && installed().next().is_some() {
            let message = format!("the Packages are in namespace {DEFAULT_NAMESPACE}: give -n to say another one");
            imported.warn("helmfile", message);
        }
        let contexts: BTreeSet<&str> = installed().map(|release| release.id.context.as_str()).collect();
        let named: Vec<&str> = contexts.iter().copied().filter(|context| !context.is_empty()).collect();
        match (named.as_slice(), contexts.len()) {
            ([], _) => {}
            ([context], 1) => {
                let message = format!("kubeContext {context} is not carried over: apply the Packages in that cluster");
                imported.warn("helmfile", message);
            }
            _ => {
                let message = format!(
                    "releases go into several clusters ({}): Windlass installs into the cluster it runs in",
                    named.join(", ")
                );
                imported.error("helmfile", message);
            }
        }
        let files: BTreeSet<usize> = installed().map(|release| release.helmfile).collect();
        if files.len() > 1 {
            let message = "helmfile applies one helmfile after the other, which is not carried over: write `requires` \
                           into the Packages that come later";
            imported.warn("helmfile", message);
        }
        for release in self.releases.iter().filter(|release| !release.is_installed) {
            let origin = self.helmfiles.get(release.helmfile).map_or("helmfile", |file| file.origin.as_str());
            let name = &release.spec.name;
            imported.warn(
                origin,
                format!("release {name} is left out, since it is not installed; helmfile would remove it"),
            );
        }
    }

    fn package(&self, imported: &mut Imported, name: &str, releases: &[&'a Release]) {
        let members = self.members(name, releases);
        let mut components = Vec::new();
        for member in &members {
            components.push(self.component(imported, &members, member));
        }
        let timeouts = members.iter().filter_map(|member| member.release.spec.timeout.or(member.helmfile.timeout));
        let timeout = timeouts.max().map(|seconds| GoDuration::from_secs(seconds).to_string());
        let spec = PackageSpec {
            upgrade: timeout.map(|timeout| Upgrade { timeout: Some(timeout), ..Upgrade::default() }),
            ..bare(self.version, components)
        };
        if spec.components.iter().any(|component| component.path.is_some()) {
            let message = "its charts at a path are as seen from where this command runs, which must be the root of \
                           their repository: commit the Package there; on Flux write sourceRef, a GitRepository of it \
                           in the Package's namespace";
            imported.warn(name, message);
        }
        imported.push(name, self.namespace(), spec);
    }

    fn members(&self, package: &str, releases: &[&'a Release]) -> Vec<Member<'a>> {
        let mut members: Vec<Member<'a>> = Vec::new();
        for release in releases.iter().filter(|release| release.is_installed) {
            let Some(helmfile) = self.helmfiles.get(release.helmfile) else { continue };
            let name = &release.spec.name;
            let twins = releases.iter().filter(|other| other.spec.name == *name).count();
            let long = format!("{}-{name}", release.id.namespace);
            let component = component_name(if twins > 1 { &long } else { name });
            let subject = format!("{package}/{component}");
            members.push(Member { release, helmfile, component, subject });
        }
        members
    }

    fn component(&self, imported: &mut Imported, members: &[Member<'_>], member: &Member<'_>) -> Component {
        let Member { release, helmfile, component, subject } = member;
        let spec = &release.spec;
        ignored::report(imported, subject, &release.ignored);
        hooks(imported, subject, &spec.hooks);
        self.tell(imported, member);
        let to = release.id.namespace.as_str();
        let mut translated = Component {
            name: component.clone(),
            values: Some(values::values(imported, self.options, helmfile, spec, subject)).filter(|v| !v.is_empty()),
            install: stated(Install {
                namespace: Some(to.to_owned()).filter(|to| !to.is_empty() && to != self.namespace()),
                release_name: (spec.name != *component).then(|| spec.name.clone()),
                depends_on: self.edges(imported, members, member),
                upgrade_crds: Some(UpgradeCrds::Skip),
                ..Install::default()
            }),
            ..Component::default()
        };
        ChartFinder { imported: &mut *imported, helmfile, release: spec, subject }.find(&mut translated);
        imported.chart_version(subject, &mut translated, self.version, self.options);
        translated
    }

    fn tell(&self, imported: &mut Imported, member: &Member<'_>) {
        let Member { release, helmfile, subject, .. } = member;
        let spec = &release.spec;
        let message = "helm upgrade leaves CRDs as they are (upgradeCRDs: Skip); remove that to have them replaced, as \
                       Packages usually do";
        imported.warn(subject, message);
        if release.id.namespace.is_empty() {
            let namespace = self.namespace();
            let severity = if namespace == DEFAULT_NAMESPACE { Severity::Warning } else { Severity::Error };
            let message = format!(
                "it names no namespace, so for helmfile it is in that of the kubectl context, and here in {namespace}: \
                 say install.namespace"
            );
            imported.note(severity, subject, message);
        }
        let is_known = helmfile.is_built || ["", "true"].contains(&spec.condition.to_ascii_lowercase().as_str());
        if !is_known {
            let condition = &spec.condition;
            let message = format!(
                "condition {condition} is not evaluated, and the release is taken as installed: {}",
                super::BUILD
            );
            imported.error(subject, message);
        }
        if spec.wait == Some(false) {
            imported.warn(subject, "wait: false is not carried over: releases are always waited for");
        }
        if spec.create_namespace == Some(false) {
            imported.warn(subject, "createNamespace: false is not carried over: a namespace that is missing is made");
        }
    }

    fn edges(&self, imported: &mut Imported, members: &[Member<'_>], member: &Member<'_>) -> Vec<String> {
        let Member { release, subject, .. } = member;
        let mut edges = Vec::new();
        for need in &release.spec.needs {
            match find(self.releases, release, need) {
                Need::Release(on) => {
                    let on = self.releases.get(on).map(|release| &release.id);
                    let known = members.iter().find(|other| Some(&other.release.id) == on);
                    edges.extend(known.map(|other| other.component.clone()));
                }
                Need::LeftOut => imported.warn(subject, format!("needs {need} is left out with that release")),
                Need::Unknown => {
                    imported.error(subject, format!("needs {need} is lost, since the helmfile has no such release"));
                }
            }
        }
        edges
    }
}
