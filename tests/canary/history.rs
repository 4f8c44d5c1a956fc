//! Random rollouts: what is rolled out where, and what happens meanwhile.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass::api::{Canary, CanaryFailure, RolloutMode, UnreadyNodes};
use windlass::sim::chart::{Fate, PodBehaviour, Script};
use windlass::sim::world::Part;

use crate::rollout::{Distortion, Rollout};
use crate::watches::Lags;

/// Something that happens at a time after the new template.
#[derive(Clone, Debug)]
pub enum Event {
    /// A further template, of this version.
    Template(u8),
    /// The same, by hand: nobody has asked what stood there before.
    Rewrite(u8),
    Kill(usize),
    Revive(usize),
    Join,
    Leave(usize),
    Cordon(usize),
    /// Somebody writes a budget by hand.
    Edit(u8),
    /// The engine applies the manifest again.
    Reapply,
    Restart,
    /// Somebody deletes the pod of a node.
    Evict(usize),
    /// Kubernetes does nothing for so many milliseconds.
    Stall(u64),
}

impl Event {
    /// Whether another template comes with it.
    pub fn is_template(&self) -> bool {
        matches!(self, Self::Template(_) | Self::Rewrite(_))
    }

    /// Whether it leaves nodes and pods alone.
    pub fn is_harmless(&self) -> bool {
        matches!(self, Self::Edit(_) | Self::Reapply | Self::Restart | Self::Cordon(_) | Self::Join)
    }
}

#[derive(Clone, Debug)]
pub struct History {
    pub nodes: usize,
    pub mode: RolloutMode,
    pub guarded: bool,
    pub surge: bool,
    pub steps: Vec<String>,
    pub soak: u64,
    pub on_failure: CanaryFailure,
    pub unready_nodes: UnreadyNodes,
    /// Nodes that are dead before it begins.
    pub dead: usize,
    /// What becomes of pods of version 2, and on which node; none: on all.
    pub fate: (Fate, Option<usize>),
    /// The same of version 3.
    pub fix: Fate,
    pub latency: u64,
    /// By how much each watch is late.
    pub lags: Lags,
    pub events: Vec<(u64, Event)>,
}

impl History {
    pub fn canary(&self) -> Canary {
        Canary {
            mode: Some(self.mode),
            steps: Some(self.steps.clone()),
            soak: Some(format!("{}s", self.soak)),
            timeout: Some("2m".into()),
            progress_deadline: Some("3m".into()),
            on_failure: Some(self.on_failure),
            unready_nodes: Some(self.unready_nodes),
            ..Canary::default()
        }
    }

    pub fn strategy(&self) -> Value {
        if self.surge {
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "50%"}})
        } else {
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%", "maxSurge": 0}})
        }
    }

    fn script(&self) -> Script {
        let mut script = Script::default();
        let behaviour = |fate| PodBehaviour { fate, ..PodBehaviour::default() };
        let node = self.fate.1.map_or("*".to_owned(), |node| name(node, self.nodes));
        script.pods.insert(("agent:2".into(), node), behaviour(self.fate.0));
        script.pods.insert(("agent:3".into(), "*".into()), behaviour(self.fix));
        script
    }

    /// A cluster that runs version 1, with some nodes dead.
    pub fn start(&self) -> Rollout {
        let mut rollout = Rollout::new(self.canary(), self.guarded, self.nodes, self.strategy(), self.script());
        rollout.latency = self.latency;
        rollout.watch(self.lags);
        for node in 0..self.dead.min(self.nodes) {
            rollout.world.kill_node(&name(node, self.nodes));
        }
        rollout.play(10_000);
        rollout
    }

    /// Plays it to its end.
    pub fn play(&self, rollout: &mut Rollout, distortion: Option<Distortion>, untested: bool) {
        rollout.distortion = distortion;
        rollout.untested = untested;
        rollout.upgrade("2");
        rollout.looks_left = 20_000;
        let start = rollout.world.now();
        let mut joined = 0;
        for (at, event) in &self.events {
            rollout.play((start + at).saturating_sub(rollout.world.now()));
            match event {
                Event::Template(version) => rollout.upgrade(&version.to_string()),
                Event::Rewrite(version) => rollout.rewrite(&version.to_string()),
                Event::Kill(node) => rollout.world.kill_node(&name(*node, self.nodes)),
                Event::Revive(node) => rollout.world.revive_node(&name(*node, self.nodes)),
                Event::Join => {
                    joined += 1;
                    rollout.world.add_node(&format!("joined{joined}"));
                }
                Event::Leave(node) => rollout.world.remove_node(&name(*node, self.nodes)),
                Event::Cordon(node) => rollout.world.cordon_node(&name(*node, self.nodes), true),
                Event::Edit(budget) if self.surge => rollout
                    .edit(json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": budget}})),
                Event::Edit(budget) => rollout
                    .edit(json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": budget, "maxSurge": 0}})),
                Event::Reapply => rollout.apply(),
                Event::Restart => rollout.restart(),
                Event::Evict(node) => rollout.evict(&name(*node, self.nodes)),
                Event::Stall(millis) => {
                    rollout.world.stopped.insert(Part::Kubernetes);
                    rollout.play(*millis);
                    rollout.world.stopped.remove(&Part::Kubernetes);
                }
            }
        }
        rollout.play(3_600_000);
    }
}

/// A quiet history, changed in what matters.
pub fn history(change: impl FnOnce(&mut History)) -> History {
    let mut history = History {
        nodes: 8,
        mode: RolloutMode::Strict,
        guarded: true,
        surge: false,
        steps: vec!["25%".into()],
        soak: 5,
        on_failure: CanaryFailure::Hold,
        unready_nodes: UnreadyNodes::Exclude,
        dead: 0,
        fate: (Fate::Runs, None),
        fix: Fate::Runs,
        latency: 20,
        lags: Lags::default(),
        events: Vec::new(),
    };
    change(&mut history);
    history
}

/// The name of a node, of those there are.
pub fn name(node: usize, nodes: usize) -> String {
    format!("n{}", node % nodes.max(1) + 1)
}

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Runs),
        1 => Just(Fate::NeverReady),
        1 => Just(Fate::CrashesAtOnce),
        1 => Just(Fate::InitCrashes),
        1 => Just(Fate::CannotPull),
    ]
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let node = 0..12usize;
    let event = prop_oneof![
        2 => Just(Event::Template(3)),
        1 => Just(Event::Template(1)),
        1 => Just(Event::Rewrite(3)),
        1 => node.clone().prop_map(Event::Kill),
        1 => node.clone().prop_map(Event::Revive),
        1 => Just(Event::Join),
        1 => node.clone().prop_map(Event::Leave),
        1 => node.prop_map(Event::Cordon),
        2 => (1..6u8).prop_map(Event::Edit),
        2 => Just(Event::Reapply),
        3 => Just(Event::Restart),
        1 => (0..12usize).prop_map(Event::Evict),
        1 => (0..20_000u64).prop_map(Event::Stall),
    ];
    prop::collection::vec((0..150_000u64, event), 0..5).prop_map(|mut events| {
        events.sort_by_key(|(at, _)| *at);
        events
    })
}

fn lags() -> impl Strategy<Value = Lags> {
    let lag = || prop_oneof![3 => Just(0u64), 1 => Just(20), 1 => Just(400)];
    let lags = (lag(), lag(), lag(), lag());
    lags.prop_map(|(daemon_sets, revisions, pods, nodes)| Lags { daemon_sets, revisions, pods, nodes })
}

pub fn histories() -> impl Strategy<Value = History> {
    let steps = prop_oneof![
        Just(vec!["10%".to_owned()]),
        Just(vec!["1".to_owned()]),
        Just(vec!["10%".to_owned(), "50%".to_owned()]),
        Just(vec!["3".to_owned()]),
    ];
    let cluster = (0..13usize, 0..3usize, any::<bool>(), prop::bool::weighted(0.25));
    let mode = prop_oneof![Just(RolloutMode::Strict), Just(RolloutMode::Compat)];
    let soak = prop_oneof![Just(0u64), Just(5), Just(30)];
    let on_failure = prop_oneof![Just(CanaryFailure::Hold), Just(CanaryFailure::Freeze), Just(CanaryFailure::Rollback)];
    let unready = prop_oneof![3 => Just(UnreadyNodes::Exclude), 1 => Just(UnreadyNodes::Block)];
    let fate = (fates(), prop::option::of(0..12usize));
    let latency = (prop_oneof![Just(5u64), Just(20), Just(400)], lags());
    (cluster, mode, steps, soak, on_failure, unready, fate, fates(), latency, events()).prop_map(
        |((nodes, dead, guarded, surge), mode, steps, soak, on_failure, unready_nodes, fate, fix, late, events)| {
            let (latency, lags) = late;
            History {
                nodes,
                mode,
                guarded,
                surge,
                steps,
                soak,
                on_failure,
                unready_nodes,
                dead: if nodes > 3 { dead } else { 0 },
                fate,
                fix,
                latency,
                lags,
                events,
            }
        },
    )
}
