//! Histories: what is committed when, how it goes, and what goes wrong besides.

use std::collections::{BTreeMap, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::rehearse::{Rehearsal, Settings};
use windlass::rollout::{Decision, Snapshot};
use windlass::sim::Key;
use windlass::sim::chart::{Care, Operator, Outcome, Script, Template};
use windlass::sim::store::Expected;
use windlass::sim::world::Part;

pub const NAMESPACE: &str = "packages";
pub const PACKAGE: &str = "app";
/// Sources of a release that runs before it is taken over.
pub const SOURCES_BEFORE: [&str; 2] = ["theirs", "packages-running"];
/// More steps than any play of a few hours needs.
pub const MAX_STEPS: u64 = 20_000;

/// Decides.
type Core = fn(&Snapshot, jiff::Timestamp) -> Decision;

/// A component throughout a history.
#[derive(Clone, Debug)]
pub struct Component {
    /// Positions of those it depends on, all before its own.
    pub depends_on: Vec<usize>,
    /// Its chart holds a resource that the first of those looks after.
    pub is_resource: bool,
    pub stays_true: bool,
    /// It is judged by a condition, which says nothing of a version.
    pub by_condition: bool,
    pub takes: u64,
}

/// One commit.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Milliseconds since the last one.
    pub after: u64,
    /// Whether each component's chart gets the version of the package.
    pub moves: Vec<bool>,
    /// Whether each component is in it.
    pub present: Vec<bool>,
    pub safe: bool,
    pub outcomes: Vec<Outcome>,
    pub care: Vec<Care>,
    pub hook: Option<Outcome>,
    /// Whether it has the version of the commit before: nothing but values changes.
    pub same_version: bool,
    /// What each component is told; 0: nothing.
    pub values: Vec<u8>,
    /// Whether each component has another name than at first, for the same release.
    pub renamed: Vec<bool>,
}

impl Commit {
    /// Everything of a package of some components works and moves.
    pub fn of(components: usize) -> Self {
        Self {
            after: 0,
            moves: vec![true; components],
            present: vec![true; components],
            safe: true,
            outcomes: vec![Outcome::Succeeds; components],
            care: vec![Care::Reports; components],
            hook: None,
            same_version: false,
            values: vec![0; components],
            renamed: vec![false; components],
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Troubles {
    pub lag: BTreeMap<String, u64>,
    pub lose_every: Option<u64>,
    pub duplicate: bool,
    pub kills: Vec<u64>,
    pub skew: i64,
    /// Part of the cluster that is stopped, from when, for how long.
    pub stopped: Option<(Part, u64, u64)>,
    /// The package is suspended, from when, for how long.
    pub suspended: Option<(u64, u64)>,
    /// Somebody edits the object of a component, when.
    pub edited: Option<(usize, u64)>,
}

#[derive(Clone, Debug)]
pub struct History {
    pub engine: Engine,
    pub components: Vec<Component>,
    pub commits: Vec<Commit>,
    pub troubles: Troubles,
    /// Milliseconds after the last commit at which another attempt is asked for.
    pub retry: Option<u64>,
    pub deleted: bool,
    /// The first component ran before, and is taken over. On Flux.
    pub adopts: bool,
}

impl History {
    pub fn version(commit: usize) -> String {
        format!("{}.0.0", commit + 1)
    }

    /// Chart version of a component as of a commit.
    pub fn chart_version(&self, commit: usize, component: usize) -> String {
        let moved = (0..=commit).rev().find(|at| self.commits[*at].moves[component]).unwrap_or(0);
        Self::version(moved)
    }

    pub fn name(component: usize) -> String {
        format!("c{component}")
    }

    /// Version of the package as of a commit.
    pub fn package_version(&self, commit: usize) -> String {
        let brings_it = (0..=commit).rev().find(|at| !self.commits[*at].same_version);
        Self::version(brings_it.unwrap_or(0))
    }

    /// Name of a component as of a commit.
    fn name_of(&self, commit: usize, component: usize) -> String {
        if self.commits[commit].renamed[component] { format!("r{component}") } else { Self::name(component) }
    }

    /// What was committed of a version.
    pub fn is_safe(&self, version: &str) -> bool {
        let commit = version.split('.').next().and_then(|major| major.parse::<usize>().ok()).unwrap_or(1);
        self.commits[commit - 1].safe
    }

    fn script(&self) -> Script {
        let mut script = Script::default();
        script.charts.insert("migration".into(), vec![Template::job()]);
        for (at, component) in self.components.iter().enumerate() {
            let name = Self::name(at);
            if !component.is_resource {
                continue;
            }
            let kind = format!("Thing{at}");
            let spec = json!({"image": "{version}"});
            script.charts.insert(name.clone(), vec![Template::new("example.org/v1", &kind, &name, spec)]);
            let operator = Self::name(component.depends_on[0]);
            let mut operator = Operator::new(NAMESPACE, &operator, "example.org/v1", &kind, component.takes);
            operator.stays_true = component.stays_true;
            for (number, commit) in self.commits.iter().enumerate() {
                operator.care.insert(Self::version(number), commit.care[at]);
            }
            script.operators.push(operator);
        }
        for (number, commit) in self.commits.iter().enumerate() {
            for (at, outcome) in commit.outcomes.iter().enumerate() {
                script.behave(&Self::name(at), &Self::version(number), *outcome, self.components[at].takes.min(3000));
            }
            if let Some(outcome) = commit.hook {
                script.behave("migrate", &Self::version(number), outcome, 1000);
            }
        }
        script
    }

    /// The Package of a commit.
    pub fn package(&self, number: usize) -> Value {
        let commit = &self.commits[number];
        let chart = |name: &str, version: String| json!({"repository": "https://charts.example.org", "name": name, "version": version});
        let mut components = Vec::new();
        if commit.hook.is_some() {
            components.push(json!({
                "name": "migrate", "chart": chart("migration", Self::version(number)),
                "install": {"phase": "PreUpgrade"},
            }));
        }
        for (at, component) in self.components.iter().enumerate().filter(|(at, _)| commit.present[*at]) {
            let name = Self::name(at);
            let depends_on: Vec<String> = component
                .depends_on
                .iter()
                .filter(|on| commit.present[**on])
                .map(|on| self.name_of(number, *on))
                .collect();
            let mut install = json!({"dependsOn": depends_on, "releaseName": name});
            if component.is_resource && component.by_condition {
                install["readyWhen"] = json!([{
                    "apiVersion": "example.org/v1", "kind": format!("Thing{at}"), "name": name,
                    "condition": "Available",
                }]);
            } else if component.is_resource {
                let operator = self.chart_version(number, component.depends_on[0]);
                install["readyWhen"] = json!([{
                    "apiVersion": "example.org/v1", "kind": format!("Thing{at}"), "name": name,
                    "expr": format!("object.status.observedVersion == '{operator}' && object.status.phase == 'Deployed'"),
                    "failed": "object.status.phase == 'Failed'",
                }]);
            }
            let mut written = json!({
                "name": self.name_of(number, at), "chart": chart(&name, self.chart_version(number, at)),
                "install": install,
            });
            if commit.values[at] > 0 {
                written["values"] = json!({"told": commit.values[at]});
            }
            components.push(written);
        }
        json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "Package",
            "metadata": {"name": PACKAGE, "namespace": NAMESPACE},
            "spec": {
                "version": self.package_version(number), "engine": self.engine.as_str(), "components": components,
                "rollback": {"safe": commit.safe}, "upgrade": {"timeout": "3m"},
            },
        })
    }

    /// A cluster in which nothing has been committed.
    pub fn start(&self) -> Rehearsal {
        Rehearsal::new(self.script(), Settings::new(self.engine))
    }

    /// Plays it, with a core that sees what `distortion` makes of it, or with another.
    pub fn play(&self, distortion: Option<fn(&mut Snapshot)>, core: Option<Core>) -> Rehearsal {
        let mut rehearsal = self.start();
        rehearsal.faults.lag = self.troubles.lag.clone();
        rehearsal.faults.lose_every = self.troubles.lose_every;
        rehearsal.faults.duplicate = self.troubles.duplicate;
        rehearsal.faults.kills = VecDeque::from(self.troubles.kills.clone());
        rehearsal.faults.next_skew = self.troubles.skew;
        rehearsal.faults.distortion = distortion;
        rehearsal.faults.core = core;
        rehearsal.faults.stop_after = Some(MAX_STEPS);
        let mut events: Vec<(u64, Event)> = Vec::new();
        let mut at = 0;
        if self.adopts {
            self.run_before(&mut rehearsal);
            at = rehearsal.now();
        }
        for number in 0..self.commits.len() {
            at += self.commits[number].after;
            events.push((at, Event::Commit(number)));
        }
        if let Some(after) = self.retry {
            events.push((at + after, Event::Retry));
        }
        if let Some((from, length)) = self.troubles.suspended {
            events.push((from, Event::Suspend(true)));
            events.push((from + length, Event::Suspend(false)));
        }
        if let Some((component, when)) = self.troubles.edited {
            events.push((when, Event::Edit(component)));
        }
        if let Some((part, from, length)) = self.troubles.stopped {
            events.push((from, Event::Stop(part)));
            events.push((from + length, Event::Start(part)));
        }
        events.sort_by_key(|(at, _)| *at);
        for (at, event) in events {
            let wait = at.saturating_sub(rehearsal.now());
            rehearsal.run_for(wait);
            self.happen(&mut rehearsal, event);
        }
        rehearsal
    }

    /// Somebody's release of the first component runs, and is given to it.
    fn run_before(&self, rehearsal: &mut Rehearsal) {
        let (name, url) = (Self::name(0), "https://charts.example.org");
        let chart = json!({
            "chart": name, "version": Self::version(0), "sourceRef": {"kind": "HelmRepository", "name": "theirs"},
        });
        let repository = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
            "metadata": {"name": "theirs", "namespace": NAMESPACE}, "spec": {"url": url, "interval": "5m"},
        });
        let mut spec = json!({"interval": "5m", "releaseName": name, "chart": {"spec": chart}});
        if self.commits[0].values[0] > 0 {
            spec["values"] = json!({"told": self.commits[0].values[0]});
        }
        let adopt = format!("{NAMESPACE}/{PACKAGE}/{}", self.name_of(0, 0));
        let release = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "running", "namespace": NAMESPACE, "annotations": {"windlass.dev/adopt": adopt}},
            "spec": spec,
        });
        for object in [repository, release] {
            rehearsal.world.store.apply("user", object.as_object().unwrap(), &Expected::default()).unwrap();
        }
        rehearsal.run_for(120_000);
    }

    /// Lets it happen.
    pub fn happen(&self, rehearsal: &mut Rehearsal, event: Event) {
        match event {
            Event::Commit(number) => {
                let package = self.package(number);
                let object = package.as_object().unwrap();
                rehearsal.world.store.apply("git", object, &Expected::default()).unwrap();
            }
            Event::Stop(part) => {
                rehearsal.world.stopped.insert(part);
            }
            Event::Retry => {
                let annotations = json!({"metadata": {"annotations": {"windlass.dev/retry": "again"}}});
                patch(rehearsal, &package_key(), &annotations);
            }
            Event::Suspend(suspend) => patch(rehearsal, &package_key(), &json!({"spec": {"suspend": suspend}})),
            Event::Edit(component) => {
                let (kind, spec) = match self.engine {
                    Engine::Flux => ("HelmRelease", json!({"values": {"told": 99}})),
                    Engine::Argo => ("Application", json!({"source": {"helm": {"valuesObject": {"told": 99}}}})),
                };
                let name = format!("{PACKAGE}-{}", Self::name(component));
                let mut keys = rehearsal.world.store.list(kind).map(|(key, _)| key);
                let key = keys.find(|key| key.name == name).cloned();
                drop(keys);
                key.into_iter().for_each(|key| patch(rehearsal, &key, &json!({"spec": spec})));
            }
            Event::Start(part) => {
                rehearsal.world.stopped.remove(&part);
            }
        }
    }
}

fn patch(rehearsal: &mut Rehearsal, key: &Key, patch: &Value) {
    // What it is about may be gone by then.
    let _ = rehearsal.world.store.patch("user", key, patch.as_object().unwrap(), &Expected::default());
}

pub enum Event {
    Suspend(bool),
    Edit(usize),
    Commit(usize),
    Stop(Part),
    Start(Part),
    Retry,
}

pub fn package_key() -> Key {
    Key::new("windlass.dev/v1alpha1", "Package", NAMESPACE, PACKAGE)
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        8 => Just(Outcome::Succeeds),
        1 => Just(Outcome::Fails),
        1 => Just(Outcome::Hangs),
        1 => (1u32..3).prop_map(Outcome::FailsFirst),
    ]
}

fn cares() -> impl Strategy<Value = Care> {
    prop_oneof![8 => Just(Care::Reports), 1 => Just(Care::Fails), 1 => Just(Care::Silent)]
}

fn component(at: usize) -> BoxedStrategy<Component> {
    let takes = prop_oneof![Just(50u64), Just(1000), Just(20_000)];
    (vec(any::<bool>(), at), any::<bool>(), any::<bool>(), any::<bool>(), takes)
        .prop_map(|(edges, is_resource, stays_true, by_condition, takes)| {
            let depends_on: Vec<usize> =
                edges.iter().enumerate().filter(|(_, edge)| **edge).map(|(on, _)| on).collect();
            Component {
                is_resource: is_resource && !depends_on.is_empty(),
                depends_on,
                stays_true,
                by_condition,
                takes,
            }
        })
        .boxed()
}

/// A resource is looked after by a Deployment, so one cannot look after another.
fn components() -> impl Strategy<Value = Vec<Component>> {
    (1usize..=4).prop_flat_map(|count| (0..count).map(component).collect::<Vec<_>>()).prop_map(|mut components| {
        for at in 0..components.len() {
            if components[at].is_resource && components[components[at].depends_on[0]].is_resource {
                components[at].is_resource = false;
            }
        }
        components
    })
}

fn commit(components: Vec<Component>, first: bool) -> impl Strategy<Value = Commit> {
    let count = components.len();
    let after = prop_oneof![Just(0u64), 1..2000u64, 2000..60_000u64, Just(900_000u64)];
    let hook = prop_oneof![2 => Just(None), 1 => outcomes().prop_map(Some)];
    let edited = (prop::bool::weighted(0.2), vec(0u8..3, count), vec(prop::bool::weighted(0.1), count));
    (
        after,
        vec(any::<bool>(), count),
        vec(prop::bool::weighted(0.9), count),
        any::<bool>(),
        vec(outcomes(), count),
        vec(cares(), count),
        hook,
        edited,
    )
        .prop_map(move |(after, mut moves, mut present, safe, outcomes, care, hook, edited)| {
            let (same_version, values, renamed) = edited;
            for (at, component) in components.iter().enumerate() {
                moves[at] |= first;
                // What a resource needs is there as long as it is.
                if component.is_resource && present[at] {
                    present[component.depends_on[0]] = true;
                }
            }
            let same_version = same_version && !first;
            Commit { after, moves, present, safe, outcomes, care, hook, same_version, values, renamed }
        })
}

fn troubles() -> impl Strategy<Value = Troubles> {
    let kinds = ["HelmRelease", "Application", "PackageRevision", "Package", "HelmChart", "Thing1"];
    let lag =
        prop::collection::btree_map(prop::sample::select(kinds.to_vec()).prop_map(str::to_owned), 1u64..3000, 0..3);
    let parts = prop::sample::select(vec![Part::HelmController, Part::SourceController, Part::ArgoCd, Part::Operators]);
    let stopped = prop::option::weighted(0.3, (parts, 0u64..30_000, 1000u64..400_000));
    let kills = vec(1u64..200, 0..4).prop_map(|mut kills| {
        kills.sort_unstable();
        kills
    });
    let skew = prop_oneof![Just(0i64), Just(-3_600_000), Just(3_600_000)];
    let suspended = prop::option::weighted(0.2, (0u64..60_000, 1000u64..400_000));
    let edited = prop::option::weighted(0.2, (0usize..3, 0u64..300_000));
    (lag, prop::option::weighted(0.2, 2u64..6), any::<bool>(), kills, skew, stopped, suspended, edited).prop_map(
        |(lag, lose_every, duplicate, kills, skew, stopped, suspended, edited)| Troubles {
            lag,
            lose_every,
            duplicate,
            kills,
            skew,
            stopped,
            suspended,
            edited,
        },
    )
}

pub fn histories() -> impl Strategy<Value = History> {
    let engine = prop_oneof![Just(Engine::Flux), Just(Engine::Argo)];
    let retry = prop::option::weighted(0.3, prop_oneof![1000u64..60_000, Just(1_500_000)]);
    let adopts = prop::bool::weighted(0.2);
    (engine, components(), 1usize..=4, troubles(), retry, any::<bool>(), adopts).prop_flat_map(
        |(engine, components, commits, troubles, retry, deleted, adopts)| {
            let all: Vec<_> = (0..commits).map(|at| commit(components.clone(), at == 0).boxed()).collect();
            all.prop_map(move |mut commits| {
                let components = judged_by_condition_only_where_it_proves(&components, &mut commits, &troubles);
                let mut history =
                    History { engine, components, commits, troubles: troubles.clone(), retry, deleted, adopts };
                history.make_it_one();
                history
            })
        },
    )
}

impl History {
    /// What belongs together is so: a commit of values alone has no hook and moves no
    /// version, and is as safe as the one whose version it has. What somebody edits has
    /// its first name, and what is taken over is there at first.
    fn make_it_one(&mut self) {
        for number in 1..self.commits.len() {
            let safe = self.commits[number - 1].safe;
            let commit = &mut self.commits[number];
            if commit.same_version {
                (commit.hook, commit.safe) = (None, safe);
                commit.moves.iter_mut().for_each(|moves| *moves = false);
            }
        }
        self.adopts &= self.engine == Engine::Flux && self.commits[0].present[0];
        if self.adopts {
            // Taking over and changing are two commits.
            self.commits[0].outcomes.fill(Outcome::Succeeds);
            self.commits[0].care.fill(Care::Reports);
            self.commits.iter_mut().skip(1).take(1).for_each(|commit| commit.after = 900_000);
        }
        for (at, component) in self.components.iter().enumerate() {
            let is_edited = self.troubles.edited.is_some_and(|(edited, _)| edited == at);
            if component.is_resource || is_edited || (self.adopts && at == 0) {
                self.commits.iter_mut().for_each(|commit| commit.renamed[at] = false);
            }
        }
    }
}

/// A condition that has lasted counts, reported or not: what is judged by one is
/// always reported, and before that long.
fn judged_by_condition_only_where_it_proves(
    components: &[Component],
    commits: &mut [Commit],
    troubles: &Troubles,
) -> Vec<Component> {
    let mut components = components.to_vec();
    for (at, component) in components.iter_mut().enumerate() {
        component.by_condition &= !matches!(troubles.stopped, Some((Part::Operators, _, _)));
        if component.by_condition {
            commits.iter_mut().for_each(|commit| commit.care[at] = Care::Reports);
        }
    }
    components
}
