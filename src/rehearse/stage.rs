//! The stage for Packages whose charts nobody has: what each release consists
//! of, and who makes its `readyWhen` hold once it runs.

mod example;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::scene::{FailAt, Failure, Place, REPOSITORY, Scene, chart_version, commit_id, place};
use crate::api::Engine;
use crate::package::definition::{ChartSource, Component, Definition, ReadyWhen};
use crate::sim::Key;
use crate::sim::chart::{
    Behaviour, Commit, Fate, Operator, Outcome, PodBehaviour, Script, Template, Told, is_cluster_scoped,
};
use crate::translate::Compiled;

use example::Example;

/// Milliseconds that a pod is ready before it crashes late.
const LATE: u64 = 20_000;
/// Milliseconds until a resource is reported, where nothing else is asked for.
const REPORT: u64 = 10_000;
/// Milliseconds until a workload is ready.
const READY: u64 = 1000;

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
    /// What cannot be played.
    pub not_played: Vec<NotPlayed>,
}

/// An entry of `readyWhen`, and whose it is.
struct Asked<'a> {
    definition: &'a Definition,
    component: &'a Component,
    position: usize,
    entry: &'a ReadyWhen,
}

impl Stage {
    /// Sets the stage for Packages, on top of those before. Entries that nothing
    /// can make hold are taken out of them, and named.
    pub fn set(&mut self, script: &mut Script, packages: &mut [Compiled], before: &[Compiled]) {
        script.knows_every_kind = true;
        for operator in &mut script.operators {
            if let Some(told) = &mut operator.told {
                told.before.clone_from(&told.now);
            }
        }
        self.commits += 1;
        let definitions: Vec<&Definition> = packages.iter().map(|package| &package.definition).collect();
        script.commits.push(commit(self.commits, &definitions));
        self.releases(script, &definitions);
        let left_out = self.ready_when(script, &definitions, before);
        for package in packages {
            leave_out(package, &left_out);
        }
    }

    fn releases(&mut self, script: &mut Script, definitions: &[&Definition]) {
        for (_, component) in components(definitions) {
            let workload = if component.hook { Template::job() } else { Template::deployment() };
            let daemon_sets = daemon_sets(component);
            let objects = || std::iter::once(workload).chain(daemon_sets).collect();
            script.releases.entry(release(component)).or_insert_with(objects);
            if let ChartSource::Repository(chart) = &component.chart
                && let Some(digest) = &chart.digest
            {
                script.pinned.insert(digest.clone(), chart_version(component).to_owned());
            }
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
        before: &[Compiled],
    ) -> BTreeSet<(Place, usize)> {
        let mut by_object: BTreeMap<Key, Vec<Asked<'_>>> = BTreeMap::new();
        for (definition, component) in components(definitions) {
            for (position, entry) in component.ready_when.iter().enumerate() {
                by_object.entry(object_of(entry)).or_default().push(Asked { definition, component, position, entry });
            }
        }
        let mut left_out = BTreeSet::new();
        for (key, asked) in by_object {
            let Some(first) = asked.first() else { continue };
            let from = before.iter().map(|before| &before.definition);
            let from = from
                .into_iter()
                .find(|from| from.name == first.definition.name && from.namespace == first.definition.namespace);
            let versions = (first.definition.version.to_string(), from.map(|from| from.version.to_string()));
            let mut example = Example::new(&key, chart_version(first.component), versions);
            asked.iter().for_each(|asked| example.ask(asked.entry));
            for asked in &asked {
                if !example.holds(asked.entry) {
                    let place = place(asked.definition, asked.component);
                    let message = format!(
                        "readyWhen[{}], {}/{}: nothing on the stage can make it hold; the component is played without it",
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

    /// What befalls what is new from now on.
    pub fn befall(&mut self, script: &mut Script, scene: &Scene) {
        for (place, delay) in &scene.delays {
            let takes = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            let Some(component) = scene.component(place) else { continue };
            if component.canary.is_some() {
                let image = format!("{}:{}", component.release_name, chart_version(component));
                let behaviour = PodBehaviour { ready_after: takes, ..script.pod(&image, "*") };
                script.pods.insert((image, "*".into()), behaviour);
            }
            let mut own = self.operators(script, component).peekable();
            let reported = own.peek().is_some();
            own.for_each(|operator| operator.takes = takes);
            if !reported {
                mishap(script, component).forward = Some(Behaviour { takes, outcome: Outcome::Succeeds });
            }
        }
        for failure in &scene.failures {
            if let Some(component) = scene.component(&failure.place) {
                self.fail(script, scene, failure, component);
            }
        }
    }

    fn fail(&mut self, script: &mut Script, scene: &Scene, failure: &Failure, component: &Component) {
        let takes = mishap(script, component).forward.map_or(READY, |delayed| delayed.takes);
        let fails = |outcome| Some(Behaviour { takes, outcome });
        let image = format!("{}:{}", component.release_name, chart_version(component));
        match failure.at {
            FailAt::Canary => script.pods_behave(&image, "*", Fate::CrashesAtOnce),
            FailAt::Late => script.pods_behave(&image, "*", Fate::CrashesAfter(LATE)),
            FailAt::Workload if component.canary.is_some() => script.pods_behave(&image, "*", Fate::NeverReady),
            FailAt::Release => mishap(script, component).forward = fails(Outcome::Fails),
            FailAt::Workload => mishap(script, component).forward = fails(Outcome::Hangs),
            FailAt::Rollback => mishap(script, component).back = fails(Outcome::Fails),
            FailAt::Chart => withdraw(script, component),
            FailAt::Ready => {
                let package = scene.after.iter().map(|after| &after.definition);
                let version = package.into_iter().find(|d| d.name.as_str() == failure.place.package);
                let version = version.map(|definition| definition.version.to_string()).unwrap_or_default();
                let mut held_back = false;
                for entry in &component.ready_when {
                    let key = object_of(entry);
                    let example = Example::failed(&key, entry, chart_version(component), &version);
                    let resource = (key.namespace.clone(), key.name.clone());
                    for operator in script
                        .operators
                        .iter_mut()
                        .filter(|o| o.kind == key.kind && o.resource.as_ref() == Some(&resource))
                    {
                        held_back = true;
                        if let Some(told) = &mut operator.told {
                            told.now = example.as_ref().map(Example::status);
                        }
                    }
                }
                if !held_back {
                    // Its entries are about workloads alone.
                    mishap(script, component).forward = fails(Outcome::Hangs);
                }
            }
        }
    }

    /// Operators that report on the objects of a component's entries.
    fn operators<'s>(
        &self,
        script: &'s mut Script,
        component: &Component,
    ) -> impl Iterator<Item = &'s mut Operator> + use<'s> {
        let keys: Vec<Key> = component.ready_when.iter().map(object_of).collect();
        script.operators.iter_mut().filter(move |operator| {
            let resource = operator.resource.as_ref();
            keys.iter().any(|key| {
                operator.kind == key.kind
                    && resource.is_some_and(|(namespace, name)| *namespace == key.namespace && *name == key.name)
            })
        })
    }
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

/// The DaemonSets of a component with a canary: those that it names, else one.
fn daemon_sets(component: &Component) -> Vec<Template> {
    let Some(canary) = &component.canary else { return Vec::new() };
    let one = || Template::daemon_set(json!({}));
    if canary.daemon_sets.is_empty() {
        return vec![one()];
    }
    canary.daemon_sets.iter().map(|name| Template { name: name.clone(), ..one() }).collect()
}

fn mishap<'s>(script: &'s mut Script, component: &Component) -> &'s mut crate::sim::chart::Mishap {
    script.mishaps.entry(release(component)).or_default()
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

/// A chart that nobody can fetch.
fn withdraw(script: &mut Script, component: &Component) {
    match &component.chart {
        ChartSource::Repository(chart) => {
            script.published.insert((chart.name.clone(), chart.version.as_written().to_owned()), u64::MAX);
        }
        ChartSource::Path(chart) => {
            if let Some(commit) = script.commits.last_mut() {
                commit.charts.remove(chart.path.as_str());
            }
        }
    }
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
