//! What must hold of every play.

use std::collections::BTreeSet;
use std::hash::{Hash as _, Hasher};

use serde_json::{Map, Value};
use windlass::rehearse::Rehearsal;
use windlass::sim::{Change, Verb};

use crate::history::{History, MAX_STEPS, SOURCES_BEFORE, package_key};
use crate::log::{Moment, Specs, Write, at, component_of, depends_on, release_of, text};

type Judgement = Result<(), String>;

/// Reasons with which a package may rest.
pub const ENDS: [&str; 6] =
    ["Ready", "UpgradeFailed", "InstallFailed", "UpgradeRolledBack", "RollbackFailed", "HookFailed"];

/// Judges a play from its log alone, then lets it come to rest and judges that.
pub fn judge(history: &History, rehearsal: &mut Rehearsal) -> Judgement {
    let ends = rest(history, rehearsal).and_then(|()| if history.deleted { uninstall(rehearsal) } else { Ok(()) });
    // What was done wrong says more than that it came to no end.
    of_log(history, rehearsal)?;
    if rehearsal.steps() >= MAX_STEPS {
        return Err(format!("it does the same for ever: {:?}", ready(rehearsal)));
    }
    ends
}

/// What holds of every part of a log.
pub fn of_log(history: &History, rehearsal: &Rehearsal) -> Judgement {
    Watch::default().follow(history, rehearsal)
}

/// Somebody who reads the log as it grows.
#[derive(Clone, Default)]
pub struct Watch {
    moment: Moment,
    specs: Specs,
    hooks: Hooks,
    position: usize,
}

impl Watch {
    /// Hashes what a judgement depends on beside the objects.
    #[allow(dead_code, reason = "random histories are played one by one")]
    pub fn hash_into(&self, hasher: &mut impl Hasher) {
        (&self.hooks.done, &self.moment.written, &self.moment.disturbed).hash(hasher);
        (&self.moment.ran, &self.moment.reported).hash(hasher);
    }

    /// Judges what is new in the log.
    pub fn follow(&mut self, history: &History, rehearsal: &Rehearsal) -> Judgement {
        let log = rehearsal.world.store.log();
        for change in log.iter().skip(self.position) {
            let judged = self.judge(history, change);
            judged.map_err(|error| format!("at {} ({}): {error}", self.position, change.at))?;
            self.moment.take(change);
            self.position += 1;
        }
        Ok(())
    }

    fn judge(&mut self, history: &History, change: &Change) -> Judgement {
        if let Some(write) = self.specs.take(change).filter(|write| write.is_move) {
            order(&self.moment, &write)?;
            self.hooks.before(&self.moment, &write)?;
            suspended(&self.moment, &write, change.at)?;
            self.moment.written.insert(write.release);
        }
        if change.key.kind == "PackageRevision" && change.verb == Verb::Updated {
            phases(history, &self.moment, &change.object)?;
        }
        self.hooks.take(&self.moment, change)?;
        removal(&self.moment, change)
    }
}

fn number(revision: &Map<String, Value>) -> u64 {
    at(revision, "/spec/number").as_u64().unwrap_or(0)
}

/// No component moves before all before it run as the revision has them and are
/// ready; on the way back none before those after it are back.
fn order(moment: &Moment, write: &Write) -> Judgement {
    let Some(latest) = moment.revisions().last().copied() else { return Err("a child without a revision".into()) };
    let name = &write.component;
    match text(latest, "/status/phase") {
        "RollingBack" => {
            let target = moment.revision(at(latest, "/status/rollback/to").as_u64().unwrap_or(0));
            let Some(target) = target else { return Err("the target of the rollback is gone".into()) };
            way_back(moment, target, name)
        }
        "Succeeded" | "RolledBack" | "RollbackFailed" => Ok(()),
        _ => {
            let wanted = component_of(latest, name).map(|component| text(component, "/digest").to_owned());
            if wanted.as_deref() != Some(write.digest.as_str()) {
                return Err(format!("{name} gets digest {}, {wanted:?} is wanted", write.digest));
            }
            let early = before(latest, name).into_iter().find_map(|on| lacks(moment, latest, on));
            early.map_or(Ok(()), |lacks| Err(format!("{name} moves before {lacks}, in revision {}", number(latest))))
        }
    }
}

/// What keeps a component from counting as verified. What neither moved nor has
/// anything above it that moved counts by its record: its present state gates
/// nothing. What somebody else has touched may have been verified before.
fn lacks(moment: &Moment, revision: &Map<String, Value>, name: &str) -> Option<String> {
    if !moment.has_run(revision, name) {
        return Some(format!("{name} has run as wanted"));
    }
    let gates = moment.has_moved(revision, name) && !moment.is_disturbed(revision, name);
    (gates && !moment.runs(revision, name)).then(|| format!("{name} runs as wanted and is ready"))
}

/// Milliseconds in which a suspension may not be known yet.
const UNKNOWN: u64 = 5000;

/// Nothing moves while the package is suspended.
fn suspended(moment: &Moment, write: &Write, now: u64) -> Judgement {
    match moment.suspended_at {
        Some(since) if now > since + UNKNOWN => {
            Err(format!("{} moves while the package is suspended", write.component))
        }
        Some(_) | None => Ok(()),
    }
}

/// Components in the order in which they move, hooks left out.
fn in_order(revision: &Map<String, Value>) -> Vec<&str> {
    let components = at(revision, "/spec/components").as_array().into_iter().flatten().filter_map(Value::as_object);
    components.filter(|component| at(component, "/hook") != true).map(|component| text(component, "/name")).collect()
}

fn before<'r>(revision: &'r Map<String, Value>, name: &str) -> Vec<&'r str> {
    in_order(revision).into_iter().take_while(|other| *other != name).collect()
}

/// What comes after a component, has been written since the target was verified and
/// is there, is back first.
fn way_back(moment: &Moment, target: &Map<String, Value>, name: &str) -> Judgement {
    let after = in_order(target).into_iter().rev().take_while(|other| *other != name);
    let is_there = |other: &&str| moment.child(release_of(target, other)).is_some();
    let mut written = after.filter(|other| moment.written.contains(release_of(target, other))).filter(is_there);
    match written.find(|other| !moment.is_disturbed(target, other) && !moment.is_applied(target, other)) {
        Some(other) => Err(format!("{name} goes back before {other}, which comes after it")),
        None => Ok(()),
    }
}

/// Nothing is rolled back over a revision that forbids it; nothing succeeds that
/// does not run.
fn phases(history: &History, moment: &Moment, revision: &Map<String, Value>) -> Judgement {
    let before = moment.revision(number(revision)).map_or("", |before| text(before, "/status/phase"));
    let phase = text(revision, "/status/phase");
    if phase == before {
        return Ok(());
    }
    if phase == "RollingBack" {
        let to = at(revision, "/status/rollback/to").as_u64().unwrap_or(0);
        let own = [revision];
        let later =
            moment.revisions().into_iter().filter(|other| number(other) > to && number(other) != number(revision));
        for other in later.chain(own) {
            let moved =
                at(other, "/status/components").as_array().is_some_and(|all| all.iter().any(|c| c["moved"] == true));
            let hooks = at(other, "/status/hooks").as_array().is_some_and(|hooks| !hooks.is_empty());
            if (moved || hooks) && !history.is_safe(text(other, "/spec/version")) {
                return Err(format!("rolled back to {to} over revision {}, which is not safe", number(other)));
            }
        }
    }
    if matches!(phase, "Failed" | "RollingBack") {
        old_failure(moment, revision)?;
    }
    let lacking = || in_order(revision).into_iter().find_map(|name| lacks(moment, revision, name));
    if let Some(lacks) = lacking().filter(|_| phase == "Succeeded") {
        return Err(format!("revision {} succeeds before {lacks}", number(revision)));
    }
    Ok(())
}

/// What a resource had failed with before does not fail what mends it, as long as
/// it has not lasted.
fn old_failure(moment: &Moment, revision: &Map<String, Value>) -> Judgement {
    let records = at(revision, "/status/components").as_array().into_iter().flatten().filter_map(Value::as_object);
    for record in records.filter(|record| text(record, "/state") == "Failed") {
        let name = text(record, "/name");
        let resource = moment.objects.iter().find(|(key, _)| key.kind.starts_with("Thing") && key.name == name);
        let Some((_, resource)) = resource.filter(|(_, resource)| text(resource, "/status/phase") == "Failed") else {
            continue;
        };
        let wanted = moment.looked_after_by(revision, name);
        let soon =
            at(record, "/activeSeconds").as_u64().unwrap_or(0) < 55 && at(record, "/attempts").as_u64().is_none();
        if soon && text(resource, "/status/failedVersion") != wanted {
            return Err(format!("an old failure of {name} fails revision {}", number(revision)));
        }
    }
    Ok(())
}

/// Hooks that succeeded since the last thing that voids them.
#[derive(Clone, Default)]
struct Hooks {
    done: BTreeSet<String>,
}

impl Hooks {
    /// Nothing moves towards another version before the hooks have succeeded.
    fn before(&self, moment: &Moment, write: &Write) -> Judgement {
        let Some(latest) = moment.revisions().last().copied() else { return Ok(()) };
        let components = at(latest, "/spec/components").as_array().into_iter().flatten();
        let hooks = components.filter(|component| component["hook"] == true);
        let runs = hooks.filter(|hook| hook["manifests"].as_array().is_some_and(|all| !all.is_empty())).count();
        let forward = matches!(text(latest, "/status/phase"), "Pending" | "Preparing" | "Applying" | "Failed");
        let of_version = moment.verified_version() != text(latest, "/spec/version");
        if forward && of_version && runs > 0 && !self.done.contains(text(latest, "/spec/version")) {
            return Err(format!("{} moves without its hook", write.component));
        }
        Ok(())
    }

    /// A hook runs once for one move: not again once it has succeeded, until a
    /// rollback or a succeeded revision.
    fn take(&mut self, moment: &Moment, change: &Change) -> Judgement {
        let object = change.object.as_ref();
        if change.key.kind == "PackageRevision" {
            let phase = text(object, "/status/phase");
            let before = moment.objects.get(&change.key).map_or("", |before| text(before, "/status/phase"));
            if phase != before && matches!(phase, "Succeeded" | "RolledBack") {
                self.done.clear();
            }
        }
        if change.key.kind != "Job" {
            return Ok(());
        }
        let version = text(object, "/spec/version").to_owned();
        if change.verb == Verb::Created {
            let moving = moment.revisions().last().map_or("", |latest| text(latest, "/spec/version"));
            if self.done.contains(&version) {
                return Err(format!("the hook of {version} runs again, towards {moving}"));
            }
        }
        let was_done = moment.objects.get(&change.key).is_some_and(|before| is_complete(before));
        if change.verb != Verb::Deleted && !was_done && is_complete(object) {
            self.done.insert(version);
        }
        Ok(())
    }
}

fn is_complete(job: &Map<String, Value>) -> bool {
    let conditions = at(job, "/status/conditions").as_array();
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Complete")
}

/// What others depend on is not deleted before them.
fn removal(moment: &Moment, change: &Change) -> Judgement {
    let children = matches!(change.key.kind.as_str(), "HelmRelease" | "Application");
    let begins = |object: &Map<String, Value>| at(object, "/metadata/deletionTimestamp").is_string();
    let before = moment.objects.get(&change.key);
    if !children || !begins(&change.object) || before.is_none_or(|before| begins(before)) {
        return Ok(());
    }
    let name = text(&change.object, "/metadata/labels/windlass.dev~1component");
    if !text(&change.object, "/metadata/annotations/windlass.dev~1hook").is_empty() {
        return Ok(());
    }
    if is_handed_over(&change.object) {
        return Ok(());
    }
    // Edges are those of the newest revision that knows the dependent. On the way
    // back it depends on nothing new once it is as it was.
    let revisions = moment.revisions();
    let latest = revisions.last().filter(|latest| text(latest, "/status/phase") == "RollingBack");
    let target = latest.and_then(|latest| moment.revision(at(latest, "/status/rollback/to").as_u64().unwrap_or(0)));
    let is_back = |other: &str, object: &Map<String, Value>| {
        let restored = target.and_then(|target| component_of(target, other));
        restored.is_some_and(|c| text(c, "/digest") == text(object, "/metadata/annotations/windlass.dev~1digest"))
    };
    let dependent = moment.objects.iter().find(|(key, object)| {
        let other = text(object, "/metadata/labels/windlass.dev~1component");
        let knows = |revision: &&&Map<String, Value>| component_of(revision, other).is_some();
        let known = revisions.iter().rev().find(knows);
        let depends = known.is_some_and(|revision| depends_on(revision, other).contains(&name));
        key.kind == change.key.kind && depends && !is_back(other, object)
    });
    match dependent {
        Some((key, _)) => Err(format!("{name} is removed before {}, which depends on it", key.name)),
        None => Ok(()),
    }
}

/// Whether only the object goes, and its release stays.
fn is_handed_over(child: &Map<String, Value>) -> bool {
    let finalizers = at(child, "/metadata/finalizers").as_array();
    let cascades = |finalizer: &Value| finalizer.as_str().is_some_and(|name| name.starts_with("resources-finalizer"));
    match text(child, "/kind") {
        "Application" => !finalizers.into_iter().flatten().any(cascades),
        _ => at(child, "/spec/suspend") == true,
    }
}

pub fn ready(rehearsal: &Rehearsal) -> Option<(String, String)> {
    let package = rehearsal.world.store.get(&package_key())?;
    let conditions = at(package, "/status/conditions").as_array()?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    Some((ready["reason"].as_str()?.to_owned(), ready["message"].as_str().unwrap_or("").to_owned()))
}

/// Once nothing is put in any more it comes to one of the ends, and then writes
/// nothing. If nothing was made to fail the last commit runs.
fn rest(history: &History, rehearsal: &mut Rehearsal) -> Judgement {
    rehearsal.faults.lose_every = None;
    rehearsal.world.stopped.clear();
    rehearsal.run_for(3_600_000);
    let (reason, message) = ready(rehearsal).ok_or("the package has no status")?;
    if !ENDS.contains(&reason.as_str()) {
        return Err(format!("it does not end: {reason}: {message}"));
    }
    let before = rehearsal.world.store.log().len();
    rehearsal.run_for(1_200_000);
    // A first install is tried again for ever; on Argo CD that is for us to do.
    let own = rehearsal.world.store.log()[before..].iter().find(|change| change.actor == "windlass");
    if let Some(change) = own.filter(|_| reason != "InstallFailed") {
        return Err(format!("a write to {} at {}, at rest at {reason}: {message}", change.key, change.at));
    }
    let last = history.package_version(history.commits.len() - 1);
    let commits = history.commits.iter();
    let works = |commit: &crate::history::Commit| {
        use windlass::sim::chart::{Care, Outcome};
        commit.outcomes.iter().chain(&commit.hook).all(|outcome| *outcome == Outcome::Succeeds)
            && commit.care.iter().all(|care| *care == Care::Reports)
    };
    let package = rehearsal.world.store.get(&package_key()).ok_or("the package is gone")?;
    if commits.clone().all(works) && history.troubles.stopped.is_none() && text(package, "/status/version") != last {
        return Err(format!(
            "nothing fails, and {} runs instead of {last}: {reason}: {message}",
            text(package, "/status/version")
        ));
    }
    Ok(())
}

/// A deleted package leaves nothing.
fn uninstall(rehearsal: &mut Rehearsal) -> Judgement {
    let expected = windlass::sim::store::Expected::default();
    rehearsal.world.store.delete("git", &package_key(), &expected).map_err(|error| error.to_string())?;
    rehearsal.run_for(1_800_000);
    // What was there before a release was taken over is somebody else's.
    let left = rehearsal.world.store.all().filter(|(key, _)| !SOURCES_BEFORE.contains(&key.name.as_str()));
    let left: Vec<String> = left.map(|(key, _)| key.to_string()).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("uninstalling leaves {left:?}: {:?}", ready(rehearsal))) }
}
