//! The stage for Packages whose charts nobody has: what each release consists
//! of, and who makes its `readyWhen` hold once it runs.

mod example;
mod mishaps;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::scene::{Place, REPOSITORY, chart_version, commit_id, place};
use crate::api::Engine;
use crate::package::definition::{ChartSource, Component, Definition, ReadyWhen};
use crate::sim::Key;
use crate::sim::chart::{Commit, Operator, Script, Template, Told, is_cluster_scoped};
use crate::translate::Compiled;

use example::{Example, Known};

/// Milliseconds until a resource is reported, where nothing else is asked for.
const REPORT: u64 = 10_000;

/// Something of a Package that cannot be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPlayed {
    /// The component.
    pub place: Place,
    /// What of it, and what was done instead; one line.
    pub message: String,
}

/// What stands on the stage.
#[derive(Debug, Default)]
pub(super) struct Stage {
    commits: u32,
    /// Objects that entries are about, and the release each of them belongs to.
    objects: BTreeMap<Key, (String, String)>,
    /// DaemonSets that are there for a canary, by release and name.
    rolled_out: BTreeSet<((String, String), String)>,
    /// What cannot be played.
    pub not_played: Vec<NotPlayed>,
}

/// The Packages on the other side of the commit.
#[derive(Clone, Copy)]
pub(super) enum Adjacent<'a> {
    /// What ran before.
    Before(&'a [Compiled]),
    /// What comes after.
    After(&'a [Compiled]),
}

impl<'a> Adjacent<'a> {
    fn before(self) -> &'a [Compiled] {
        match self {
            Self::Before(before) => before,
            Self::After(_) => &[],
        }
    }

    fn after(self) -> &'a [Compiled] {
        match self {
            Self::Before(_) => &[],
            Self::After(after) => after,
        }
    }

    fn definitions(self) -> Vec<&'a Definition> {
        self.before().iter().chain(self.after()).map(|package| &package.definition).collect()
    }
}

/// An entry of `readyWhen`, and whose it is.
struct Asked<'a> {
    definition: &'a Definition,
    component: &'a Component,
    position: usize,
    entry: &'a ReadyWhen,
    /// It comes with the commit, for a chart that is there before it.
    is_later: bool,
}

impl Stage {
    /// Sets the stage for Packages, on top of those before, or for those before
    /// others. Entries that nothing can make hold are taken out of them, and named.
    pub fn set(&mut self, script: &mut Script, packages: &mut [Compiled], adjacent: Adjacent<'_>) {
        script.knows_every_kind = true;
        for operator in &mut script.operators {
            if let Some(told) = &mut operator.told {
                told.before.clone_from(&told.now);
            }
        }
        self.commits += 1;
        let definitions: Vec<&Definition> = packages.iter().map(|package| &package.definition).collect();
        script.commits.push(commit(self.commits, &definitions));
        self.releases(script, &definitions, &adjacent.definitions());
        let left_out = self.ready_when(script, &definitions, adjacent);
        for package in packages {
            leave_out(package, &left_out);
        }
    }

    fn releases(&mut self, script: &mut Script, definitions: &[&Definition], others: &[&Definition]) {
        let others: Vec<&Component> = components(others).map(|(_, component)| component).collect();
        for (_, component) in components(definitions) {
            let workload = if component.hook { Template::job() } else { Template::deployment() };
            let objects = script.releases.entry(release(component)).or_insert_with(|| vec![workload]);
            let other = others.iter().find(|other| release(other) == release(component));
            self.daemon_sets(objects, component, other.copied());
            if let ChartSource::Repository(chart) = &component.chart
                && let Some(digest) = &chart.digest
            {
                let version = chart_version(component).to_owned();
                if chart.is_oci() {
                    script.pinned.insert((chart.name.clone(), digest.clone()), version);
                } else {
                    script.archives.insert((chart.name.clone(), version), digest.clone());
                }
            }
        }
    }

    /// Makes the DaemonSets among the objects of a release those of its canary.
    fn daemon_sets(&mut self, objects: &mut Vec<Template>, component: &Component, other: Option<&Component>) {
        let release = release(component);
        let wanted = daemon_sets(component, other);
        objects.retain(|object| {
            let is_stale = object.kind == "DaemonSet" && !wanted.contains(&object.name);
            !is_stale || !self.rolled_out.contains(&(release.clone(), object.name.clone()))
        });
        for name in wanted {
            if !objects.iter().any(|object| object.kind == "DaemonSet" && object.name == name) {
                objects.push(Template { name: name.clone(), ..Template::daemon_set(json!({})) });
            }
            self.rolled_out.insert((release.clone(), name));
        }
    }

    fn say(&mut self, not_played: NotPlayed) {
        if !self.not_played.contains(&not_played) {
            self.not_played.push(not_played);
        }
    }

    /// Puts the objects of all entries on the stage, and whoever reports on them.
    /// Gives the entries that do not hold whatever is reported.
    fn ready_when(
        &mut self,
        script: &mut Script,
        definitions: &[&Definition],
        adjacent: Adjacent<'_>,
    ) -> BTreeSet<(Place, usize)> {
        let mut by_object: BTreeMap<Key, Vec<Asked<'_>>> = BTreeMap::new();
        for asked in asked(definitions, adjacent) {
            by_object.entry(object_of(asked.entry)).or_default().push(asked);
        }
        let before = adjacent.before();
        let mut left_out = BTreeSet::new();
        for (key, asked) in by_object {
            let (later, own): (Vec<_>, Vec<_>) = asked.into_iter().partition(|asked| asked.is_later);
            let Some(first) = own.first().or(later.first()) else { continue };
            let mut example = Example::new(&key, chart_version(first.component));
            later.iter().chain(&own).for_each(|asked| example.ask(asked.entry, &versions(asked.definition, before)));
            for asked in &own {
                if !example.holds(asked.entry, &versions(asked.definition, before)) {
                    let place = place(asked.definition, asked.component);
                    let message = format!(
                        "readyWhen[{}], {}/{}: not checked, since nothing on the stage can make it hold; the component is played without it",
                        asked.position, key.kind, key.name
                    );
                    left_out.insert((place.clone(), asked.position));
                    self.say(NotPlayed { place, message });
                }
            }
            self.object(script, definitions, &key, first, &example);
        }
        left_out
    }

    /// The object, rendered by the release of the first component that asks for
    /// it, and the operator that reports on it.
    fn object(
        &mut self,
        script: &mut Script,
        definitions: &[&Definition],
        key: &Key,
        asked: &Asked<'_>,
        example: &Example,
    ) {
        let is_workload = example::is_workload(key);
        let own_workload = |component: &Component| {
            !component.hook
                && component.namespace.as_str() == key.namespace
                && component.release_name.as_str() == key.name
        };
        if is_workload && components(definitions).any(|(_, component)| own_workload(component)) {
            return;
        }
        let owner = self.objects.entry(key.clone()).or_insert_with(|| release(asked.component));
        let templates = script.releases.entry(owner.clone()).or_insert_with(|| vec![Template::deployment()]);
        templates.retain(|template| !is_object(template, owner, key));
        let mut template = match key.kind.as_str() {
            "Deployment" => Template::deployment(),
            "Job" => Template::job(),
            _ => Template::new(&key.api_version, &key.kind, &key.name, example.spec()),
        };
        template.name.clone_from(&key.name);
        template.namespace = Some(key.namespace.clone()).filter(|namespace| *namespace != owner.0);
        templates.push(template);
        if !is_workload {
            operator(script, key, looks_after(asked, key), example.status());
        }
    }
}

/// Versions that the expressions of a Package know: its own, and the one before.
fn versions(definition: &Definition, before: &[Compiled]) -> Known {
    let mut before = before.iter().map(|before| &before.definition);
    let from = before.find(|from| from.name == definition.name && from.namespace == definition.namespace);
    let from = from.map(|from| from.version.to_string()).unwrap_or_default();
    Known { version: definition.version.to_string(), from }
}

/// All entries, and then those that come with the commit to charts that stay: what
/// they are about is there before.
fn asked<'a>(definitions: &[&'a Definition], adjacent: Adjacent<'a>) -> Vec<Asked<'a>> {
    let later: Vec<&Definition> = adjacent.after().iter().map(|package| &package.definition).collect();
    let later: Vec<&Component> = components(&later).map(|(_, component)| component).collect();
    let same = |component: &Component| {
        let mut later = later.iter().copied();
        later.find(|later| release(later) == release(component) && chart_version(later) == chart_version(component))
    };
    let entries = |definition, component: &'a Component, is_later| {
        let entries = component.ready_when.iter().enumerate();
        entries.map(move |(position, entry)| Asked { definition, component, position, entry, is_later })
    };
    let own = components(definitions).flat_map(|(definition, component)| entries(definition, component, false));
    let later = components(definitions).flat_map(|(definition, component)| {
        let later = same(component).into_iter().flat_map(move |later| entries(definition, later, true));
        later.filter(|asked| !component.ready_when.contains(asked.entry))
    });
    own.chain(later).collect()
}

fn components<'a>(definitions: &[&'a Definition]) -> impl Iterator<Item = (&'a Definition, &'a Component)> {
    definitions
        .iter()
        .flat_map(|definition| definition.components.iter().map(|component| (*definition, component)))
        .collect::<Vec<_>>()
        .into_iter()
}

fn release(component: &Component) -> (String, String) {
    (component.namespace.to_string(), component.release_name.to_string())
}

/// The DaemonSets of a release: those that the canary names, else one. A canary
/// comes to DaemonSets that are there and leaves them behind; `other` is the
/// component before or after the commit.
fn daemon_sets(component: &Component, other: Option<&Component>) -> Vec<String> {
    let names = |component: &Component| match component.canary.as_ref()?.daemon_sets.as_slice() {
        [] => Some(vec!["{release}".to_owned()]),
        named => Some(named.to_vec()),
    };
    let is_same_chart = |other: &&Component| chart_version(other) == chart_version(component);
    match (names(component), other.and_then(names)) {
        (Some(own), Some(others)) if other.as_ref().is_some_and(is_same_chart) => {
            let more = others.into_iter().filter(|name| !own.contains(name)).collect::<Vec<_>>();
            own.into_iter().chain(more).collect()
        }
        (own, others) => own.or(others).unwrap_or_default(),
    }
}

fn object_of(entry: &ReadyWhen) -> Key {
    let namespace = if is_cluster_scoped(&entry.kind) { "" } else { entry.namespace.as_str() };
    Key::new(&entry.api_version, &entry.kind, namespace, &entry.name)
}

fn is_object(template: &Template, owner: &(String, String), key: &Key) -> bool {
    let name = template.name.replace("{release}", &owner.1);
    let namespace = if is_cluster_scoped(&key.kind) { "" } else { template.namespace.as_ref().unwrap_or(&owner.0) };
    template.kind == key.kind
        && template.api_version == key.api_version
        && name == key.name
        && namespace == key.namespace
}

/// Who reports on an object: of kinds that others define the first component
/// depended on that has no such object itself, else the component's own workload.
fn looks_after<'a>(asked: &Asked<'a>, key: &Key) -> &'a Component {
    if example::is_built_in(&key.api_version) {
        return asked.component;
    }
    let custom = |component: &Component| component.ready_when.iter().any(|e| !example::is_built_in(&e.api_version));
    let mut upstream = asked
        .component
        .depends_on
        .iter()
        .filter_map(|name| asked.definition.components.iter().find(|component| component.name == *name));
    upstream.find(|component| !custom(component)).unwrap_or(asked.component)
}

fn operator(script: &mut Script, key: &Key, by: &Component, status: Map<String, Value>) {
    let resource = (key.namespace.clone(), key.name.clone());
    let (namespace, deployment) = release(by);
    let known = script.operators.iter().position(|operator| {
        operator.kind == key.kind
            && operator.api_version == key.api_version
            && operator.resource.as_ref() == Some(&resource)
    });
    let mut operator = match known {
        Some(position) => script.operators.remove(position),
        None => Operator::new(&namespace, &deployment, &key.api_version, &key.kind, REPORT),
    };
    operator.deployment = (namespace, deployment);
    operator.resource = Some(resource);
    operator.told.get_or_insert_with(Told::default).now = Some(status);
    script.operators.push(operator);
}

/// The commit of some Packages: the version of every chart at a path.
fn commit(number: u32, definitions: &[&Definition]) -> Commit {
    let charts = components(definitions).filter_map(|(_, component)| {
        let ChartSource::Path(chart) = &component.chart else { return None };
        Some((chart.path.as_str().to_owned(), chart_version(component).to_owned()))
    });
    Commit { id: commit_id(number), charts: charts.collect() }
}

/// Takes entries of `readyWhen` out of a Package.
fn leave_out(package: &mut Compiled, left_out: &BTreeSet<(Place, usize)>) {
    let definition = &package.definition;
    let Some(Value::Object(spec)) = package.object.get_mut("spec") else { return };
    let written = spec.get_mut("components").and_then(Value::as_array_mut).into_iter().flatten();
    for (component, written) in definition.components.iter().zip(written) {
        let place = place(definition, component);
        let Some(entries) = written.pointer_mut("/install/readyWhen").and_then(Value::as_array_mut) else { continue };
        let mut positions = 0..;
        entries.retain(|_| positions.next().is_none_or(|position| !left_out.contains(&(place.clone(), position))));
    }
}

/// Objects that a Package needs and does not bring: its account, and the Git
/// repository of its charts.
pub(super) fn surroundings(definition: &Definition) -> Vec<Map<String, Value>> {
    let namespace = definition.namespace.as_str();
    let account = definition.service_account.as_ref().map(|name| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name.as_str(), "namespace": namespace}})
    });
    let flux = definition.engine == Some(Engine::Flux);
    let source = definition.source.as_ref().filter(|_| flux).map(|source| {
        json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": source.name, "namespace": namespace},
            "spec": {"interval": "10s", "url": REPOSITORY, "ref": {"branch": "main"}},
        })
    });
    account.into_iter().chain(source).filter_map(|object| object.as_object().cloned()).collect()
}
