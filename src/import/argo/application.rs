//! The Applications of one family as a Package.

use std::collections::BTreeSet;

use super::chart::ChartFinder;
use super::family::Family;
use super::waves::edges;
use super::wire::Source;
use super::{ARGO_NAMESPACE, Application, Key, policy, report_ignored};
use crate::api::wellknown::{ARGO_IN_CLUSTER, ARGO_SYNC_WAVE};
use crate::api::{Component, Install, UpgradeCrds};
use crate::import::{Imported, Options, bare, component_name, stated};

/// Puts an Application into a phase before all waves, or behind them.
const ARGO_HOOK: &str = "argocd.argoproj.io/hook";
/// Argo CD's name of its own cluster.
const IN_CLUSTER: &str = "in-cluster";

/// What all Packages of one import share.
pub(super) struct Context<'a, 'o> {
    pub options: &'a Options<'o>,
    pub applications: &'a [Application],
    pub version: &'a str,
}

/// A chart of an Application on its way into a Package.
pub(super) struct Member<'a> {
    pub application: &'a Application,
    pub source: &'a Source,
    /// Name of the component.
    pub component: String,
    /// The component, for notes.
    pub subject: String,
    pub wave: i64,
}

impl Context<'_, '_> {
    /// Adds the Package of a family.
    pub fn package(&self, imported: &mut Imported, family: &Family) {
        let parent = family.parent.and_then(|parent| self.applications.get(parent));
        self.tell_of_parent(imported, family, parent);
        let namespace = self.namespace(imported, family, parent);
        let members = self.members(imported, family);
        let graph = edges(&members.iter().map(|member| member.wave).collect::<Vec<_>>());
        tell_of_waves(imported, family, &members, &graph.in_a_row);
        let mut repositories = BTreeSet::new();
        let mut components = Vec::new();
        for (member, on) in members.iter().zip(&graph.depends_on) {
            let depends_on = on.iter().filter_map(|on| Some(members.get(*on)?.component.clone())).collect();
            let mut component = component(imported, member, &namespace, depends_on);
            let mut finder = ChartFinder { imported: &mut *imported, options: self.options, member, parent };
            repositories.extend(finder.find(&mut component));
            imported.chart_version(&member.subject, &mut component, self.version, self.options);
            components.push(component);
        }
        tell_of_repositories(imported, &family.name, &repositories);
        let spec = bare(self.version, components);
        imported.push(&family.name, &namespace, spec);
    }

    fn tell_of_parent(&self, imported: &mut Imported, family: &Family, parent: Option<&Application>) {
        let Some(parent) = parent else { return };
        let key = &parent.key;
        imported.warn(
            &family.name,
            format!("Application {key} is no component: the Package takes the place of those that it holds"),
        );
        if family.nested {
            let message = "and its wave with it: write `requires` into the Packages that come after this one";
            imported.error(&family.name, format!("Application {key} is itself held by another one, {message}"));
        }
    }

    /// The namespace asked for, else that of the Applications, so that they can be
    /// taken over.
    fn namespace(&self, imported: &mut Imported, family: &Family, parent: Option<&Application>) -> String {
        if let Some(namespace) = &self.options.namespace {
            return namespace.to_string();
        }
        let known = self.known(family);
        let own = known.iter().map(|application| application.key.namespace.as_str());
        // One that names none comes into the namespace of its parent's destination.
        let inherited = parent.map(|parent| parent.spec.destination.namespace.as_str());
        own.chain(inherited).find(|namespace| !namespace.is_empty()).map_or_else(
            || {
                let message =
                    format!("its Applications name no namespace: {ARGO_NAMESPACE} is assumed, -n says another one");
                imported.warn(&family.name, message);
                ARGO_NAMESPACE.to_owned()
            },
            str::to_owned,
        )
    }

    fn known(&self, family: &Family) -> Vec<&Application> {
        family.members.iter().filter_map(|member| self.applications.get(*member)).collect()
    }

    /// One member for each chart, by wave and within it in the order of the input.
    fn members<'m>(&'m self, imported: &mut Imported, family: &'m Family) -> Vec<Member<'m>> {
        let known = self.known(family);
        let mut members = Vec::new();
        for application in &known {
            let Key { namespace, name } = &application.key;
            let twins = known.iter().filter(|other| other.key.name == *name).count();
            let name = component_name(&if twins > 1 { format!("{namespace}-{name}") } else { name.clone() });
            let subject = format!("{}/{name}", family.name);
            report_ignored(imported, &subject, &application.ignored);
            let wave = wave(imported, &subject, application);
            let charts = charts(imported, &subject, application);
            for source in &charts {
                let component = match charts.len() {
                    1 => name.clone(),
                    _ => component_name(&format!("{name}-{}", last_part(source))),
                };
                let subject = format!("{}/{component}", family.name);
                members.push(Member { application, source, component, subject, wave });
            }
        }
        members.sort_by_key(|member| member.wave);
        members
    }
}

/// Name of the chart, as far as its source tells.
fn last_part(source: &Source) -> &str {
    let place = source.chart().or(source.path()).unwrap_or_default();
    place.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

fn wave(imported: &mut Imported, subject: &str, application: &Application) -> i64 {
    if let Some(phase) = application.annotation(ARGO_HOOK) {
        let message = format!("{ARGO_HOOK}: {phase} is not carried over: only waves order components");
        imported.error(subject, message);
    }
    let Some(text) = application.annotation(ARGO_SYNC_WAVE) else { return 0 };
    text.trim().parse().unwrap_or_else(|_| {
        imported.error(subject, format!("its sync wave `{text}` is no number, and so wave 0, as for Argo CD"));
        0
    })
}

/// The sources of an Application that are charts; of the others it is said what
/// becomes of them.
fn charts<'a>(imported: &mut Imported, subject: &str, application: &'a Application) -> Vec<&'a Source> {
    let spec = &application.spec;
    if spec.source.is_some() && !spec.sources.is_empty() {
        imported.warn(subject, "spec.source is not carried over: Argo CD looks at spec.sources alone");
    }
    let mut charts = Vec::new();
    for source in spec.all_sources() {
        let other = [("kustomize", &source.kustomize), ("directory", &source.directory), ("plugin", &source.plugin)];
        let other = other.into_iter().find(|(_, options)| options.is_some()).map(|(kind, _)| kind);
        let is_place = source.chart().is_some() || source.path().is_some();
        match (other, is_place) {
            (Some(kind), _) => {
                let message = format!("its source of kind {kind} is no Helm chart, and is left out: make one of it");
                imported.error(subject, message);
            }
            (None, true) => charts.push(source),
            // It is there for values files alone.
            (None, false) if source.reference().is_some() => {}
            (None, false) => {
                imported.error(subject, "a source of it names neither chart nor path, and is left out");
            }
        }
    }
    if charts.is_empty() {
        imported.error(subject, "left out, since it has no Helm chart");
    }
    charts
}

fn component(imported: &mut Imported, member: &Member<'_>, namespace: &str, depends_on: Vec<String>) -> Component {
    let Member { application, source, component, subject, .. } = member;
    let destination = &application.spec.destination;
    let elsewhere = ![ARGO_IN_CLUSTER, ""].contains(&destination.server.as_str())
        || ![IN_CLUSTER, ""].contains(&destination.name.as_str());
    if elsewhere {
        let cluster = if destination.name.is_empty() { &destination.server } else { &destination.name };
        imported.error(subject, format!("it goes to cluster {cluster}: Windlass installs into the cluster it runs in"));
    }
    if destination.namespace.is_empty() {
        let message = "it has no destination.namespace, so it would go into that of the Package: say install.namespace";
        imported.error(subject, message);
    }
    let rendered_for = source.helm.namespace.as_deref().filter(|name| !name.is_empty());
    if rendered_for.is_some_and(|name| name != destination.namespace) {
        let message = "helm.namespace is not carried over: a release is rendered for the namespace it goes into";
        imported.error(subject, message);
    }
    let runs_as = source.helm.release_name.clone().filter(|name| !name.is_empty());
    let runs_as = runs_as.unwrap_or_else(|| application.key.name.clone());
    policy::tell(imported, member, namespace);
    Component {
        name: component.clone(),
        install: stated(Install {
            namespace: Some(destination.namespace.clone()).filter(|to| !to.is_empty() && to != namespace),
            release_name: (runs_as != *component).then_some(runs_as),
            privileged: policy::privileged(imported, member),
            depends_on,
            upgrade_crds: (source.helm.skip_crds == Some(true)).then_some(UpgradeCrds::Skip),
            ignore: policy::ignores(imported, member),
            ..Install::default()
        }),
        ..Component::default()
    }
}

fn tell_of_waves(imported: &mut Imported, family: &Family, members: &[Member<'_>], in_a_row: &[usize]) {
    let waves: BTreeSet<i64> = members.iter().map(|member| member.wave).collect();
    if let (Some(wave), 1, true) = (waves.first(), waves.len(), members.len() > 1) {
        let message = format!("all its components are in wave {wave}, so none depends on another: write dependsOn");
        imported.warn(&family.name, message);
    }
    for member in in_a_row.iter().filter_map(|position| members.get(*position)) {
        let message = "depends on components of its own wave, since dependsOn takes 16 and the wave has more";
        imported.warn(&member.subject, message);
    }
}

fn tell_of_repositories(imported: &mut Imported, package: &str, repositories: &BTreeSet<String>) {
    let all = repositories.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match repositories.len() {
        0 => {}
        1 => imported.warn(
            package,
            format!(
                "its charts at a path are in {all}: commit the Package there, since Argo CD takes them from the \
                 Package's commit; on Flux write sourceRef, a GitRepository of it in the Package's namespace"
            ),
        ),
        _ => imported.error(
            package,
            format!("its charts at a path are in several repositories ({all}): those of a Package are in one"),
        ),
    }
}
