//! The rollout node by node: pods are never counted, nodes are.

use std::collections::{BTreeMap, BTreeSet};

use super::health::{self, Crashes, Health};
use super::objects::{DaemonSet, Node, Pod};
use super::observation::Observation;
use super::settings::Settings;
use crate::api::{RolloutRecord, UnreadyNodes};

/// One node that has a pod of the DaemonSet.
#[derive(Clone, Debug)]
pub struct Seat<'a> {
    /// The node.
    pub node: &'a Node,
    /// The pod of the new template, if there is one that stays.
    pub new: Option<(&'a Pod, Health)>,
    /// A pod of an older template, if there is one that stays.
    pub old: Option<&'a Pod>,
    /// Whether it, or its pod, was not ready before the rollout, and still is not.
    pub excluded: bool,
    /// Whether the new pod lacks what `matchAnnotations` asks for.
    pub unmatched: bool,
    /// Whether a pod would be made here.
    pub wanted: bool,
    /// Whether somebody keeps the DaemonSet off it by now.
    pub kept_off: bool,
}

impl<'a> Seat<'a> {
    /// Whether the new template runs here alone.
    pub fn is_updated(&self) -> bool {
        self.new.is_some() && self.old.is_none()
    }

    /// Whether it does, and the pod is ready.
    pub fn is_healthy(&self) -> bool {
        self.is_updated() && matches!(self.new, Some((_, Health::Ready)))
    }

    /// Whether it has a ready pod, of whichever template.
    pub fn serves(&self) -> bool {
        self.is_healthy() || self.old.is_some_and(|old| old.ready)
    }

    /// Whether all that is left is on its way out, or has not been made yet.
    pub fn is_vacant(&self) -> bool {
        self.new.is_none() && self.old.is_none()
    }

    /// The old pod, where deleting it costs nothing: it is not ready anyway.
    pub fn useless(&self) -> Option<&'a Pod> {
        self.old.filter(|old| !old.ready)
    }
}

/// All nodes with a pod, and what they come to.
#[derive(Clone, Debug)]
pub struct Census<'a> {
    /// By name of the node.
    pub seats: BTreeMap<&'a str, Seat<'a>>,
    /// Nodes that should run a pod, without those that are excluded.
    pub expected: i64,
    /// Nodes that do not count and use up the native budget.
    pub dead_weight: i64,
}

impl<'a> Census<'a> {
    /// Counts the nodes, given the hash of the new template and what is on record
    /// of what stood there before.
    pub fn of(
        seen: &'a Observation,
        daemon_set: &DaemonSet,
        hash: &str,
        record: &RolloutRecord,
        settings: &Settings,
    ) -> Self {
        let mut seats: BTreeMap<&str, Seat<'_>> = BTreeMap::new();
        let own = seen.pods.iter().filter(|pod| pod.owner.as_ref() == Some(&daemon_set.uid));
        for pod in own {
            // A pod whose node is gone goes with it.
            let Some(node) = pod.node.as_ref().and_then(|name| seen.nodes.get(name)) else { continue };
            let (wanted, kept_off) = (daemon_set.tolerates(node), daemon_set.is_kept_off(node));
            let empty = Seat { node, new: None, old: None, excluded: false, unmatched: false, wanted, kept_off };
            let seat = seats.entry(&node.name).or_insert(empty);
            if pod.deleting {
                continue;
            }
            if is_new(pod, hash) {
                let health = health::health(pod, Some(node), settings.max_restarts, &record.crashed);
                let lacking = lacking(pod, daemon_set, settings);
                seat.unmatched |= lacking.is_some();
                let health = match lacking.filter(|_| !matches!(health, Health::Broken(..))) {
                    Some(message) => Health::NotReady(message),
                    None => health,
                };
                let worse = seat.new.as_ref().is_some_and(|(_, known)| rank(known) >= rank(&health));
                if !worse {
                    seat.new = Some((pod, health));
                }
            } else {
                seat.old = Some(pod);
            }
        }
        if settings.unready_nodes == UnreadyNodes::Exclude {
            let dead: BTreeSet<&str> = record.dead.iter().map(String::as_str).collect();
            let sick: BTreeSet<&str> = record.sick.iter().map(String::as_str).collect();
            for seat in seats.values_mut() {
                let name = seat.node.name.as_str();
                seat.excluded = (!seat.node.ready && dead.contains(name)) || (!seat.serves() && sick.contains(name));
            }
        }
        let counted = count(seats.values(), |seat| seat.excluded && seat.wanted);
        let dead_weight = count(seats.values(), |seat| seat.excluded || (seat.kept_off && !seat.serves()));
        Self { seats, expected: daemon_set.counts.desired - counted, dead_weight }
    }

    /// Nodes that count.
    pub fn included(&self) -> impl Iterator<Item = &Seat<'a>> {
        self.seats.values().filter(|seat| !seat.excluded && !seat.kept_off)
    }

    /// Nodes that run the new template.
    pub fn updated(&self) -> i64 {
        count(self.included(), |seat| seat.is_updated() && !seat.unmatched)
    }

    /// Nodes that run the new template and are ready.
    pub fn healthy(&self) -> i64 {
        count(self.included(), Seat::is_healthy)
    }

    /// Pods of the new template that are ready.
    pub fn well(&self) -> impl Iterator<Item = &'a Pod> {
        self.included().filter_map(|seat| match &seat.new {
            Some((pod, Health::Ready)) => Some(*pod),
            Some((_, Health::NotReady(_) | Health::Broken(..))) | None => None,
        })
    }

    /// Nodes that still have a pod of an older template.
    pub fn outdated(&self) -> i64 {
        count(self.included(), |seat| seat.old.is_some())
    }

    /// Nodes whose pods are all on their way out.
    pub fn vacant(&self) -> i64 {
        count(self.included(), Seat::is_vacant)
    }

    /// Nodes that should have a pod that stays and have none.
    pub fn missing(&self) -> i64 {
        self.expected - count(self.included(), |seat| !seat.is_vacant() && seat.wanted)
    }

    /// Living nodes that should have a ready pod and have none.
    pub fn down(&self) -> i64 {
        let lacks = |seat: &Seat<'_>| seat.node.ready && !seat.serves();
        count(self.included(), lacks) + self.absent().max(0)
    }

    /// Nodes that should have a pod, of which there is not even one on its way out.
    pub fn absent(&self) -> i64 {
        self.expected - count(self.included(), |seat| seat.wanted)
    }

    /// Nodes that are still to be updated and serve nobody meanwhile.
    pub fn idle(&self) -> i64 {
        let serves = |old: &Pod, node: &Node| old.ready && node.ready;
        count(self.included(), |seat| seat.new.is_none() && seat.old.is_some_and(|old| !serves(old, seat.node)))
    }

    /// A pod of the new template that will not become ready by itself.
    pub fn broken(&self) -> Option<(&Seat<'a>, &Health)> {
        self.included().find_map(|seat| match &seat.new {
            Some((_, health @ Health::Broken(..))) => Some((seat, health)),
            Some((_, Health::Ready | Health::NotReady(_))) | None => None,
        })
    }

    /// The node of a name.
    pub fn seat(&self, node: &str) -> Option<&Seat<'a>> {
        self.seats.get(node)
    }
}

/// Nodes that are not ready now and do not run the new template: what is not
/// waited for. A node that died with its new pod is a failure, not one of them.
pub fn dead_now(seen: &Observation, daemon_set: &DaemonSet, hash: Option<&str>) -> Vec<String> {
    let runs_new = |node: &&Node| {
        let own = seen.pods.iter().filter(|pod| pod.owner.as_ref() == Some(&daemon_set.uid) && !pod.deleting);
        let mut here = own.filter(|pod| pod.node.as_ref() == Some(&node.name));
        hash.is_some_and(|hash| here.any(|pod| is_new(pod, hash)))
    };
    let dead = seen.nodes.values().filter(|node| !node.ready).filter(|node| !runs_new(node));
    dead.map(|node| node.name.clone()).collect()
}

/// Nodes that are ready and have a pod, but no ready one, and none of the new
/// template: what is wrong there is older. More of them than the first step admits
/// are no exception, but what a rollout has to answer for, and so are all there are:
/// without them nothing would show that the new template is well.
pub fn sick_now(seen: &Observation, daemon_set: &DaemonSet, hash: Option<&str>, settings: &Settings) -> Vec<String> {
    let mut serving: BTreeMap<&str, bool> = BTreeMap::new();
    let own = seen.pods.iter().filter(|pod| pod.owner.as_ref() == Some(&daemon_set.uid) && !pod.deleting);
    for pod in own {
        let Some(node) = pod.node.as_ref().and_then(|name| seen.nodes.get(name)).filter(|node| node.ready) else {
            continue;
        };
        let is_new = hash.is_some_and(|hash| is_new(pod, hash));
        *serving.entry(&node.name).or_default() |= pod.ready || is_new;
    }
    let sick: Vec<String> =
        serving.iter().filter(|(_, serves)| !**serves).map(|(node, _)| (*node).to_owned()).collect();
    let few = settings.step(1).of(daemon_set.counts.desired);
    let is_exception = sick.len() < serving.len() && i64::try_from(sick.len()).is_ok_and(|many| many <= few);
    if is_exception { sick } else { Vec::new() }
}

/// On how many nodes each template runs, by its hash, of those that the DaemonSet
/// controller counts.
pub fn templates(seen: &Observation, daemon_set: &DaemonSet) -> BTreeMap<String, i64> {
    let own = seen.pods.iter().filter(|pod| pod.owner.as_ref() == Some(&daemon_set.uid) && !pod.deleting);
    let mut nodes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for pod in own {
        let node = pod.node.as_ref().and_then(|name| seen.nodes.get(name));
        if let (Some(node), Some(hash)) = (node.filter(|node| daemon_set.tolerates(node)), &pod.hash) {
            nodes.entry(&node.name).or_default().insert(hash);
        }
    }
    let mut templates = BTreeMap::new();
    for hash in nodes.into_values().filter(|hashes| hashes.len() == 1).flatten() {
        *templates.entry(hash.to_owned()).or_default() += 1;
    }
    templates
}

/// Containers whose crashes are kept: one record must fit into one object.
const FORGIVEN: usize = 1000;

/// How often containers of the pods that are `forgiven` have crashed so far; where they
/// are many, of those that have crashed most.
pub fn crashed_so_far(seen: &Observation, daemon_set: &DaemonSet, forgiven: impl Fn(&Pod) -> bool) -> Crashes {
    let own = seen.pods.iter().filter(|pod| pod.owner.as_ref() == Some(&daemon_set.uid) && !pod.deleting);
    let mut crashed: Vec<(String, u32)> = own.filter(|pod| forgiven(pod)).flat_map(health::crashes_of).collect();
    crashed.sort_unstable_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.cmp(other)));
    crashed.into_iter().take(FORGIVEN).collect()
}

/// Nodes with a pod of the DaemonSet that stays.
pub fn nodes_with_pods<'s>(seen: &'s Observation, daemon_set: &DaemonSet) -> BTreeSet<&'s str> {
    let own = seen.pods.iter().filter(|pod| pod.owner.as_ref() == Some(&daemon_set.uid) && !pod.deleting);
    own.filter_map(|pod| pod.node.as_deref()).collect()
}

fn is_new(pod: &Pod, hash: &str) -> bool {
    pod.hash.as_deref() == Some(hash)
}

/// What a pod of the newest template lacks of the annotations that are asked for: its
/// successor would be the same, so it is waited for, and never asked to go.
fn lacking(pod: &Pod, daemon_set: &DaemonSet, settings: &Settings) -> Option<String> {
    let differs = |key: &&String| pod.annotations.get(*key) != daemon_set.annotations.get(*key);
    let key = settings.match_annotations.iter().find(differs)?;
    let place = health::place(pod);
    Some(format!("{place}: its annotation {key}, which matchAnnotations asks for, is not that of the DaemonSet"))
}

/// Of two new pods on one node the worse one counts.
fn rank(health: &Health) -> u8 {
    match health {
        Health::Ready => 0,
        Health::NotReady(_) => 1,
        Health::Broken(..) => 2,
    }
}

fn count<'s, 'a: 's>(seats: impl Iterator<Item = &'s Seat<'a>>, holds: impl Fn(&Seat<'a>) -> bool) -> i64 {
    i64::try_from(seats.filter(|seat| holds(seat)).count()).unwrap_or(i64::MAX)
}
