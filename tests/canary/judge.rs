//! What must be true of every rollout, told from what happened in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use windlass::api::{RolloutMode, RolloutPhase, UnreadyNodes};
use windlass::sim::chart::Fate;
use windlass::sim::{Key, Verb};

use crate::history::{Event, History};
use crate::rollout::{Rollout, Told, key, pods};

pub type Judgement = Result<(), String>;

/// Plays a history and judges it.
pub fn judge(history: &History, rollout: &mut Rollout, from: usize) -> Judgement {
    budget(history, rollout, from)?;
    fast(rollout)?;
    ending(history, rollout)?;
    rest(rollout)
}

fn at<'a>(object: &'a Map<String, Value>, pointer: &str) -> &'a Value {
    let (first, rest) = pointer[1..].split_once('/').unwrap_or((&pointer[1..], ""));
    let value = object.get(first).unwrap_or(&Value::Null);
    if rest.is_empty() { value } else { value.pointer(&format!("/{rest}")).unwrap_or(&Value::Null) }
}

/// Pods that the strategy lets go at once; none when frozen.
fn allows(daemon_set: &Map<String, Value>, desired: usize) -> usize {
    let strategy = at(daemon_set, "/spec/updateStrategy");
    if strategy["type"] == "OnDelete" {
        return 0;
    }
    let number = |field: &str| match &strategy["rollingUpdate"][field] {
        Value::String(text) => (desired * text.trim_end_matches('%').parse::<usize>().unwrap()).div_ceil(100),
        value => usize::try_from(value.as_u64().unwrap_or(0)).unwrap(),
    };
    number("maxUnavailable").max(number("maxSurge"))
}

/// Milliseconds within which a budget follows the nodes that were dead before.
const REACTION: u64 = 2000;

/// The cluster as its log tells it.
#[derive(Default)]
struct Cluster {
    objects: BTreeMap<Key, Map<String, Value>>,
    /// Nodes that have had a ready pod since they joined or came back.
    served: BTreeSet<String>,
    /// Nodes that were dead when a template came.
    dead_before: BTreeSet<String>,
    /// Of these, since when they are back with the new pod.
    back: BTreeMap<String, u64>,
    image: String,
}

/// Milliseconds after which a node that is back has been seen.
const SEEN: u64 = 3000;

impl Cluster {
    fn take(&mut self, change: &windlass::sim::Change) {
        match change.verb {
            Verb::Created | Verb::Updated => {
                self.objects.insert(change.key.as_ref().clone(), change.object.as_ref().clone());
            }
            Verb::Deleted => {
                self.objects.remove(&change.key);
            }
        }
        if *change.key == key() && template(&change.object) != self.image {
            self.image = template(&change.object);
            let dead = self.of_kind("Node").filter(|node| !is_ready(node));
            let dead: Vec<String> = dead.filter_map(|n| at(n, "/metadata/name").as_str().map(str::to_owned)).collect();
            self.dead_before.extend(dead);
        }
        self.note_returns(change.at);
        let ready = self.ready();
        self.served.retain(|node| self.objects.get(&windlass::sim::nodes::key(node)).is_some_and(is_ready));
        self.served.extend(ready);
        if change.actor == "user" && change.key.kind == "Pod" {
            self.served.remove(at(&change.object, "/spec/nodeName").as_str().unwrap_or(""));
        }
    }

    /// A node that came back and has the new pod is one like any other.
    fn note_returns(&mut self, now: u64) {
        if self.dead_before.is_empty() {
            return;
        }
        let pods = pods(self.of_kind("Pod"));
        let runs_new = |node: &String| pods.get(node).is_some_and(|(image, _)| *image == self.image);
        let lives = |node: &String| self.objects.get(&windlass::sim::nodes::key(node)).is_some_and(is_ready);
        let here: BTreeSet<String> =
            self.dead_before.iter().filter(|node| runs_new(node) && lives(node)).cloned().collect();
        let left: Vec<String> = self.back.keys().filter(|node| !here.contains(*node)).cloned().collect();
        for node in left {
            if self.back.remove(&node).is_some_and(|since| now > since + SEEN) {
                self.dead_before.remove(&node);
            }
        }
        for node in here {
            self.back.entry(node).or_insert(now);
        }
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Map<String, Value>> {
        self.objects.iter().filter(move |(key, _)| key.kind == kind).map(|(_, object)| object)
    }

    fn ready(&self) -> BTreeSet<String> {
        pods(self.of_kind("Pod")).into_iter().filter(|(_, (_, ready))| *ready).map(|(node, _)| node).collect()
    }

    /// Living nodes that had a ready pod and have none now.
    fn unavailable(&self) -> usize {
        self.served.difference(&self.ready()).count()
    }

    fn nodes(&self) -> usize {
        self.of_kind("Node").count()
    }
}

fn is_ready(object: &Map<String, Value>) -> bool {
    let conditions = at(object, "/status/conditions").as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn template(daemon_set: &Map<String, Value>) -> String {
    at(daemon_set, "/spec/template/spec/containers/0/image").as_str().unwrap_or("").to_owned()
}

/// What is known of the canary: nodes there were when the template came, and since
/// when each runs the new pod, ready and without a restart.
#[derive(Default)]
struct Trial {
    image: String,
    nodes: BTreeSet<String>,
    soaking: BTreeMap<String, (u64, u64)>,
    /// The same of those that were lost, and when.
    lost: BTreeMap<String, (u64, u64)>,
}

impl Trial {
    fn begin(&mut self, image: &str, cluster: &Cluster) {
        let nodes = cluster.of_kind("Node").filter_map(|node| at(node, "/metadata/name").as_str().map(str::to_owned));
        *self = Self { image: image.to_owned(), nodes: nodes.collect(), ..Self::default() };
        for (node, _) in pods(cluster.of_kind("Pod")).into_iter().filter(|(_, (runs, ready))| *ready && runs == image) {
            self.soaking.insert(node, (0, 0));
        }
    }

    fn take(&mut self, change: &windlass::sim::Change) {
        if change.key.kind != "Pod" {
            return;
        }
        let node = at(&change.object, "/spec/nodeName").as_str().unwrap_or("").to_owned();
        let restarts = at(&change.object, "/status/containerStatuses/0/restartCount").as_u64().unwrap_or(0);
        let stays = change.verb != Verb::Deleted && at(&change.object, "/metadata/deletionTimestamp").is_null();
        if at(&change.object, "/spec/containers/0/image") != self.image.as_str() {
            return;
        }
        if !stays || !is_ready(&change.object) {
            if let Some((since, _)) = self.soaking.remove(&node) {
                self.lost.insert(node, (since, change.at));
            }
        } else if self.soaking.get(&node).is_none_or(|(_, known)| *known != restarts) {
            self.soaking.insert(node, (change.at, restarts));
        }
    }

    /// Verified is what has soaked, on a node that was there before.
    fn judge(&self, history: &History, told: &Told) -> Judgement {
        let Some(node) = &told.record.node else { return Err(format!("verified without a canary, at {}", told.at)) };
        let lost = self.lost.get(node).filter(|(_, lost)| told.at <= lost + history.lags.longest());
        let since = self.soaking.get(node).or(lost).map(|(since, _)| *since);
        if since.is_none_or(|since| told.at < since + history.soak * 1000) {
            return Err(format!("{node} is verified at {} and soaks since {since:?}", told.at));
        }
        // A node that left at the same time is taken for a replaced one.
        let others = !history.events.iter().any(|(_, event)| matches!(event, Event::Leave(_)));
        if !self.nodes.contains(node) && others {
            return Err(format!("{node} is the canary and joined later"));
        }
        Ok(())
    }
}

/// Never more nodes without a ready pod than were without one when the template
/// came, or the rollout had been allowed since. Before the canary is verified
/// that is one, whatever the manifest or anybody else says.
fn budget(history: &History, rollout: &Rollout, from: usize) -> Judgement {
    let mut cluster = Cluster::default();
    let mut now = String::new();
    let (mut carried, mut allowed, mut verified) = (0, 0, false);
    let mut lame = 0;
    let mut told = rollout.told.iter().peekable();
    let mut edited = false;
    let mut deads: Vec<(u64, usize)> = Vec::new();
    let mut trial = Trial::default();
    let (mut latest, mut stale) = (&None, None);
    for (position, change) in rollout.world.store.log().iter().enumerate() {
        while let Some(next) = told.next_if(|told: &&Told| told.position <= position) {
            latest = &next.record.revision;
            let advances = next.record.step > 0 && latest != &stale;
            if advances && !verified && next.position > from {
                trial.judge(history, next)?;
            }
            verified |= advances;
        }
        cluster.take(change);
        trial.take(change);
        if position < from {
            continue;
        }
        let dead = cluster.of_kind("Node").filter(|node| !is_ready(node)).count();
        deads.push((change.at, dead));
        while deads.get(1).is_some_and(|(at, _)| at + REACTION < change.at) {
            deads.remove(0);
        }
        let recently = deads.iter().map(|(_, dead)| *dead).max().unwrap_or(0);
        if *change.key == key() && change.verb != Verb::Deleted {
            let image = template(&change.object);
            if image != now {
                now = image;
                (carried, allowed, verified) = (cluster.unavailable(), 1, false);
                lame = cluster.nodes().saturating_sub(cluster.ready().len());
                edited = false;
                stale.clone_from(latest);
                trial.begin(&now, &cluster);
            }
            // Without the policy somebody's edit stands until it is taken back.
            edited |= change.actor == "user" && !history.guarded;
        }
        let Some(daemon_set) = cluster.objects.get(&key()) else { continue };
        let allows = allows(daemon_set, cluster.nodes());
        // Nodes that serve nobody are added to a surge alone: it takes no pod away.
        let added = if history.surge { recently.max(lame) } else { 0 };
        if allows.saturating_sub(added) > 1 && !verified && !edited {
            return Err(format!("{allows} may go before the canary is verified, at {}", change.at));
        }
        // A dead node that has just left or come back is still in the budget.
        allowed = allowed.max(allows.saturating_sub(dead));
        let limit = carried.max(allowed);
        if cluster.unavailable() > limit {
            let found = cluster.unavailable();
            return Err(format!("{found} nodes without a ready pod, at most {limit} may be, at {}", change.at));
        }
        strict(history, &cluster, change, verified, edited)?;
    }
    Ok(())
}

/// In Strict with its policy no old pod that is of use goes before the canary is verified but by
/// our hand, and none that somebody else deletes.
fn strict(
    history: &History,
    cluster: &Cluster,
    change: &windlass::sim::Change,
    verified: bool,
    edited: bool,
) -> Judgement {
    let concerns = history.mode == RolloutMode::Strict && history.guarded && !history.surge;
    let going = change.key.kind == "Pod" && at(&change.object, "/metadata/deletionTimestamp").is_string();
    let Some(daemon_set) = cluster.objects.get(&key()).filter(|_| concerns && going && !verified && !edited) else {
        return Ok(());
    };
    let old = at(&change.object, "/spec/containers/0/image") != template(daemon_set).as_str();
    if old && is_ready(&change.object) && change.actor == "daemonset-controller" {
        return Err(format!("{} is deleted before the canary is verified, at {}", change.key, change.at));
    }
    Ok(())
}

/// A container that crashes for good is not waited for: the rollout has failed a
/// moment after the third crash.
fn fast(rollout: &Rollout) -> Judgement {
    let mut told = rollout.told.iter().peekable();
    let (mut revision, mut ended) = (None, false);
    let mut since: BTreeMap<Key, u64> = BTreeMap::new();
    let late = |since: &BTreeMap<Key, u64>, now: u64| match since.iter().find(|(_, at)| now > **at + 60_000) {
        Some((pod, at)) => Err(format!("{pod} is broken since {at}, and the rollout goes on at {now}")),
        None => Ok(()),
    };
    for (position, change) in rollout.world.store.log().iter().enumerate() {
        while let Some(next) = told.next_if(|told: &&Told| told.position <= position) {
            late(&since, next.at)?;
            revision = next.record.revision.clone();
            ended = matches!(next.record.phase, RolloutPhase::Failed | RolloutPhase::Successful);
            if ended {
                since.clear();
            }
        }
        if ended {
            since.clear();
            continue;
        }
        if change.key.kind != "Pod" {
            continue;
        }
        let lists = ["containerStatuses", "initContainerStatuses"];
        let broken = lists.iter().any(|list| {
            let status = at(&change.object, &format!("/status/{list}/0")).clone();
            let waits = status["state"]["waiting"]["reason"].as_str().unwrap_or("");
            waits == "ErrImagePull" || (waits == "CrashLoopBackOff" && status["restartCount"].as_u64() >= Some(2))
        });
        let new = at(&change.object, "/metadata/labels/controller-revision-hash").as_str() == revision.as_deref();
        let stays = change.verb != Verb::Deleted && at(&change.object, "/metadata/deletionTimestamp").is_null();
        if broken && new && stays {
            since.entry(change.key.as_ref().clone()).or_insert(change.at);
        } else {
            since.remove(change.key.as_ref());
        }
        late(&since, change.at)?;
    }
    for told in told {
        late(&since, told.at)?;
        if matches!(told.record.phase, RolloutPhase::Failed | RolloutPhase::Successful) {
            since.clear();
        }
    }
    Ok(())
}

/// It comes to an end; one at which nothing was made to fail comes to a good one.
fn ending(history: &History, rollout: &Rollout) -> Judgement {
    let record = &rollout.record;
    match record.phase {
        RolloutPhase::Successful => success(history, rollout)?,
        RolloutPhase::Failed if record.reason.is_some() && record.message.is_some() => {}
        RolloutPhase::Failed
        | RolloutPhase::Started
        | RolloutPhase::Canary
        | RolloutPhase::Increasing
        | RolloutPhase::Waiting => {
            return Err(format!("it does not end but is {} ({:?})", record.phase, record.message));
        }
    }
    let fates = match rollout.version() {
        "2" => history.fate.0,
        "3" => history.fix,
        _ => Fate::Runs,
    };
    let excluded = history.dead == 0 || history.unready_nodes == UnreadyNodes::Exclude;
    let harmless = history.events.iter().all(|(_, event)| event.is_harmless() || event.is_template());
    let candidates = (0..history.nodes).skip(history.dead).any(|node| {
        let cordons = |(_, event): &(u64, Event)| matches!(event, Event::Cordon(at) if at % history.nodes == node);
        !history.events.iter().any(cordons)
    });
    let first = rollout.version() == "2" || history.fate.0 == Fate::Runs || history.mode == RolloutMode::Strict;
    if fates == Fate::Runs && first && excluded && candidates && harmless && record.phase != RolloutPhase::Successful {
        return Err(format!("nothing fails, and it is {} ({:?})", record.phase, record.message));
    }
    Ok(())
}

/// What succeeds runs everywhere when that is told, and was so a moment before;
/// its budget is back at 1 and stays there.
fn success(history: &History, rollout: &Rollout) -> Judgement {
    let told = rollout.told.iter().rev().find(|told| told.record.phase == RolloutPhase::Successful);
    let told = told.ok_or("successful, and never told")?;
    let log = rollout.world.store.log();
    // What came later was not seen yet.
    let position = log[..told.position].partition_point(|change| change.at + history.lags.longest() <= told.at);
    let seen = &log[..position];
    let mut cluster = Cluster::default();
    seen.iter().for_each(|change| cluster.take(change));
    let daemon_set = cluster.objects.get(&key()).ok_or("there is no DaemonSet")?;
    let image = template(daemon_set);
    let pods = pods(cluster.of_kind("Pod"));
    for node in cluster.of_kind("Node").filter(|node| is_ready(node)) {
        let name = at(node, "/metadata/name").as_str().unwrap_or("");
        let runs = pods.get(name);
        let left_out = told.record.message.as_ref().is_some_and(|message| message.contains(name));
        if !left_out && !runs.is_some_and(|(found, ready)| *found == image && *ready) {
            return Err(format!("successful, and {name} runs {runs:?} instead of {image}"));
        }
    }
    let tells = |change: &&std::sync::Arc<windlass::sim::Change>| {
        matches!(change.actor, "kubelet" | "windlass") && change.verb != Verb::Deleted
    };
    for node in cluster.of_kind("Node").filter(|node| !is_ready(node)) {
        let name = at(node, "/metadata/name").as_str().unwrap_or("");
        let dies_with_it = pods.get(name).is_some_and(|(found, _)| *found == image);
        // Each upgrade asks anew.
        let once = !history.events.iter().any(|(_, event)| event.is_template());
        if once && dies_with_it && !cluster.dead_before.contains(name) {
            return Err(format!("successful, and {name} died with its new pod"));
        }
    }
    let last = seen.iter().rev().find(tells);
    if let Some(last) = last.filter(|last| told.at < last.at + 900) {
        return Err(format!("told at {}, and something happened at {}", told.at, last.at));
    }
    let daemon_set = rollout.world.store.get(&key()).ok_or("there is no DaemonSet")?;
    if allows(daemon_set, 1000) != 1 {
        return Err(format!("successful with {}", at(daemon_set, "/spec/updateStrategy")));
    }
    if at(daemon_set, "/spec/updateStrategy/rollingUpdate/maxSurge") == 1 && !history.surge {
        return Err("a DaemonSet without surge surges".into());
    }
    Ok(())
}

/// Once nothing happens any more nothing is written any more.
fn rest(rollout: &mut Rollout) -> Judgement {
    let (told, log) = (rollout.told.len(), rollout.world.store.log().len());
    rollout.play(1_200_000);
    if let Some(own) = rollout.world.store.log()[log..].iter().find(|change| change.actor == "windlass") {
        return Err(format!("a write at rest: {} at {}", own.key, own.at));
    }
    if rollout.told.len() > told {
        return Err(format!("a record at rest: {:?}", rollout.told.last()));
    }
    Ok(())
}
