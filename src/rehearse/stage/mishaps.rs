//! What goes wrong with a commit, and what takes its time.

use std::collections::BTreeMap;

use super::example::Example;
use super::{Stage, chart_version, object_of, release};
use crate::package::definition::{ChartSource, Component, ReadyWhen};
use crate::rehearse::scene::{FailAt, Failure, Scene};
use crate::sim::Key;
use crate::sim::chart::{Behaviour, Fate, Mishap, Operator, Outcome, PodBehaviour, Script};

/// Milliseconds that a pod is ready before it crashes late.
const LATE: u64 = 20_000;
/// Milliseconds until a workload is ready.
const READY: u64 = 1000;

impl Stage {
    /// What befalls what is new from now on.
    pub fn befall(&self, script: &mut Script, scene: &Scene) {
        for (place, delay) in &scene.delays {
            let takes = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            let Some(component) = scene.component(place) else { continue };
            if component.canary.is_some() {
                let image = format!("{}:{}", component.release_name, chart_version(component));
                let behaviour = PodBehaviour { ready_after: takes, ..script.pod(&image, "*") };
                script.pods.insert((image, "*".into()), behaviour);
            }
            let mut own = operators(script, component).peekable();
            let reported = own.peek().is_some();
            own.for_each(|operator| operator.takes = takes);
            if !reported {
                mishap(script, component).forward = Some(Behaviour { takes, outcome: Outcome::Succeeds });
            }
        }
        for failure in &scene.failures {
            if let Some(component) = scene.component(&failure.place) {
                fail(script, scene, failure, component);
            }
        }
    }
}

fn fail(script: &mut Script, scene: &Scene, failure: &Failure, component: &Component) {
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
            if !is_never_reported(script, scene, failure, component) {
                // Its entries are about workloads alone.
                mishap(script, component).forward = fails(Outcome::Hangs);
            }
        }
    }
}

/// Lets nobody report what the entries of a component ask for.
fn is_never_reported(script: &mut Script, scene: &Scene, failure: &Failure, component: &Component) -> bool {
    let version = scene.definition(&failure.place).map(|definition| definition.version.to_string()).unwrap_or_default();
    let is_delayed = scene.delays.iter().any(|(place, _)| *place == failure.place);
    let mut by_object: BTreeMap<Key, Vec<&ReadyWhen>> = BTreeMap::new();
    for entry in &component.ready_when {
        by_object.entry(object_of(entry)).or_default().push(entry);
    }
    let mut held_back = false;
    for (key, entries) in &by_object {
        let chart = chart_version(component);
        let failed = entries.iter().find_map(|entry| Example::failed(key, entry, chart, &version));
        // What was told before would hold until then: it is taken back at once.
        let is_at_once = failed.is_none() && !is_delayed;
        let told = failed.or_else(|| Example::denied(key, entries, chart, &version));
        for operator in script.operators.iter_mut().filter(|operator| reports_on(operator, key)) {
            held_back = true;
            if is_at_once {
                operator.takes = 0;
            }
            if let Some(all) = &mut operator.told {
                all.now = told.as_ref().map(Example::status);
            }
        }
    }
    held_back
}

/// Operators that report on the objects of a component's entries.
fn operators<'s>(script: &'s mut Script, component: &Component) -> impl Iterator<Item = &'s mut Operator> + use<'s> {
    let keys: Vec<Key> = component.ready_when.iter().map(object_of).collect();
    script.operators.iter_mut().filter(move |operator| keys.iter().any(|key| reports_on(operator, key)))
}

fn reports_on(operator: &Operator, key: &Key) -> bool {
    let resource = operator.resource.as_ref();
    operator.kind == key.kind
        && resource.is_some_and(|(namespace, name)| *namespace == key.namespace && *name == key.name)
}

fn mishap<'s>(script: &'s mut Script, component: &Component) -> &'s mut Mishap {
    script.mishaps.entry(release(component)).or_default()
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
