//! One group of HelmReleases as a Package.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::chart::{ChartFinder, Sources};
use super::group::Group;
use super::wire::{DriftRule, ReleaseSpec};
use super::{Key, release_name, report_ignored};
use crate::api::{Component, DriftIgnore, Install, PackageSpec, SourceKind, SourceRef, Upgrade, UpgradeCrds};
use crate::import::wire::Ignored;
use crate::import::{Imported, Options, bare, component_name, stated};
use crate::package::duration::GoDuration;

/// A HelmRelease that was read.
pub(super) struct Release {
    pub name: String,
    pub spec: ReleaseSpec,
    pub ignored: Vec<Ignored>,
}

impl Release {
    /// What the HelmRelease of name `key` depends on.
    pub fn dependencies(&self, key: &Key) -> Vec<Key> {
        let dependencies = self.spec.depends_on.iter();
        dependencies.map(|on| Key::of(on.namespace.as_deref().unwrap_or(&key.namespace), &on.name)).collect()
    }
}

/// What all Packages of one import share.
pub(super) struct Context<'a, 'o> {
    pub options: &'a Options<'o>,
    pub sources: &'a Sources<'a>,
    pub releases: &'a BTreeMap<Key, Release>,
    pub version: &'a str,
}

/// A HelmRelease on its way into a Package.
struct Member<'a> {
    key: &'a Key,
    release: &'a Release,
    component: String,
    subject: String,
}

impl Context<'_, '_> {
    /// Adds the Package of a group.
    pub fn package(&self, imported: &mut Imported, group: &Group) {
        let members = self.members(group);
        let mut repositories = BTreeSet::new();
        let mut components = Vec::new();
        for member in &members {
            report_ignored(imported, &member.subject, &member.release.ignored);
            let mut component = self.component(imported, group, &members, member);
            let mut finder = ChartFinder {
                imported: &mut *imported,
                sources: self.sources,
                subject: &member.subject,
                at: &member.key.namespace,
                namespace: &group.namespace,
            };
            repositories.extend(finder.find(&member.release.spec, &mut component));
            imported.chart_version(&member.subject, &mut component, self.version, self.options);
            components.push(component);
        }
        if repositories.len() > 1 {
            let all = repositories.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            imported.error(
                &group.name,
                format!("charts come from several GitRepositories ({all}): a Package has one sourceRef"),
            );
        }
        let suspended = members.iter().filter(|member| member.release.spec.suspend == Some(true)).count();
        if suspended > 0 && suspended < members.len() {
            imported.error(&group.name, "some, but not all, of its HelmReleases are suspended: the Package is not");
        }
        let spec = PackageSpec {
            suspend: (suspended == members.len()).then_some(true),
            service_account_name: service_account(imported, group, &members),
            source_ref: repositories.into_iter().next().map(|name| SourceRef { kind: SourceKind::GitRepository, name }),
            upgrade: timeout(imported, &members)
                .map(|timeout| Upgrade { timeout: Some(timeout), ..Upgrade::default() }),
            ..bare(self.version, components)
        };
        imported.push(&group.name, &group.namespace, spec);
    }

    fn members<'m>(&'m self, group: &'m Group) -> Vec<Member<'m>> {
        let known = group.members.iter().filter_map(|key| Some((key, self.releases.get(key)?)));
        let known: Vec<_> = known.collect();
        let mut members = Vec::new();
        for (key, release) in &known {
            let twins = known.iter().filter(|(other, _)| other.name == key.name).count();
            let long = format!("{}-{}", key.namespace, key.name);
            let component = component_name(if twins > 1 { &long } else { &release.name });
            let subject = format!("{}/{component}", group.name);
            members.push(Member { key, release, component, subject });
        }
        members
    }

    fn component(
        &self,
        imported: &mut Imported,
        group: &Group,
        members: &[Member<'_>],
        member: &Member<'_>,
    ) -> Component {
        let Member { key, release, component, subject } = member;
        let spec = &release.spec;
        let namespace = spec.target_namespace.as_deref().unwrap_or(&key.namespace);
        let storage = spec.storage_namespace.as_deref().unwrap_or(&key.namespace);
        if storage != namespace {
            let message = "the Package keeps it in the release's namespace unless the release is taken over";
            imported.warn(subject, format!("Helm's record of the release is in namespace {storage}: {message}"));
        }
        let runs_as =
            spec.release_name.clone().unwrap_or_else(|| release_name(&key.name, spec.target_namespace.as_deref()));
        let crds = spec.upgrade.as_ref().and_then(|upgrade| upgrade.crds);
        if crds.is_none() {
            imported.warn(
                subject,
                "upgrade.crds is not set, so upgrades leave CRDs as they are (upgradeCRDs: Skip); remove that to have them replaced, as Packages usually do",
            );
        }
        if key.namespace == group.namespace {
            let adopt = "annotate it with windlass.dev/adopt: <namespace>/<package>/<component>";
            imported.warn(subject, format!("to have the Package take over the HelmRelease that runs, {adopt}"));
        }
        self.values_from(imported, group, member);
        Component {
            name: component.clone(),
            values: spec.values.clone(),
            values_from: spec.values_from.clone(),
            install: stated(Install {
                namespace: (namespace != group.namespace).then(|| namespace.to_owned()),
                release_name: (runs_as != *component).then_some(runs_as),
                depends_on: self.edges(imported, members, member),
                upgrade_crds: crds.or(Some(UpgradeCrds::Skip)),
                health_check_exprs: spec.health_check_exprs.clone(),
                ignore: drift_ignores(imported, member),
                ..Install::default()
            }),
            ..Component::default()
        }
    }

    fn values_from(&self, imported: &mut Imported, group: &Group, member: &Member<'_>) {
        let spec = &member.release.spec;
        if !spec.values_from.is_empty() {
            imported.warn(&member.subject, "valuesFrom is refused on engine argo");
        }
        if member.key.namespace != group.namespace {
            for from in &spec.values_from {
                let (at, name, to) = (&member.key.namespace, &from.name, &group.namespace);
                imported.error(
                    &member.subject,
                    format!("valuesFrom: {:?} {at}/{name} must be in namespace {to} too: copy it", from.kind),
                );
            }
        }
    }

    fn edges(&self, imported: &mut Imported, members: &[Member<'_>], member: &Member<'_>) -> Vec<String> {
        let mut edges = Vec::new();
        for dependency in member.release.dependencies(member.key) {
            if let Some(other) = members.iter().find(|other| *other.key == dependency) {
                edges.push(other.component.clone());
            } else if self.releases.contains_key(&dependency) {
                let message = "is lost, since it is in another namespace: give -n to gather all in one";
                imported.error(&member.subject, format!("dependsOn {dependency} {message}"));
            } else {
                imported
                    .error(&member.subject, format!("dependsOn {dependency} is lost, since it is not in the input"));
            }
        }
        edges
    }
}

fn service_account(imported: &mut Imported, group: &Group, members: &[Member<'_>]) -> Option<String> {
    let accounts: BTreeSet<_> = members.iter().map(|member| &member.release.spec.service_account_name).collect();
    let named = accounts.iter().find_map(|account| account.as_ref());
    if let (Some(named), true) = (named, accounts.len() > 1) {
        let message = "its HelmReleases name several service accounts, or some of them none: a Package has one for all";
        imported.error(&group.name, format!("{message}; {named} is taken"));
    }
    named.cloned()
}

/// The longest timeout of the group, where one is written.
fn timeout(imported: &mut Imported, members: &[Member<'_>]) -> Option<String> {
    let mut longest: Option<GoDuration> = None;
    for member in members {
        let Some(text) = &member.release.spec.timeout else { continue };
        match GoDuration::parse(text) {
            Ok(duration) => longest = longest.max(Some(duration)),
            Err(error) => imported.error(&member.subject, format!("timeout is not carried over: {error}")),
        }
    }
    longest.map(|duration| duration.to_string())
}

/// Flux's rules match by regular expressions and selectors; those that name
/// things plainly are carried over.
fn drift_ignores(imported: &mut Imported, member: &Member<'_>) -> Vec<DriftIgnore> {
    let rules = member.release.spec.drift_detection.as_ref().map_or(&[][..], |drift| &drift.ignore);
    let mut ignores = Vec::new();
    for rule in rules {
        match plain(rule) {
            Some(ignore) => ignores.push(ignore),
            None => imported.error(
                &member.subject,
                format!(
                    "driftDetection.ignore of {} is not carried over: `ignore` names a kind, and names without patterns or selectors",
                    rule.paths.join(", ")
                ),
            ),
        }
    }
    ignores
}

fn plain(rule: &DriftRule) -> Option<DriftIgnore> {
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.');
    let mut ignore = DriftIgnore { json_pointers: rule.paths.clone(), ..DriftIgnore::default() };
    for (field, value) in &rule.target {
        let text = value.as_str().filter(|text| is_plain(text))?.to_owned();
        match field.as_str() {
            "group" => ignore.group = Some(text),
            "kind" => ignore.kind = text,
            "name" => ignore.name = Some(text),
            "namespace" => ignore.namespace = Some(text),
            "version" => {}
            _ => return None,
        }
    }
    (!ignore.kind.is_empty() && rule.target.values().all(Value::is_string)).then_some(ignore)
}
