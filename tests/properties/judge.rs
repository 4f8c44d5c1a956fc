//! What must hold of every play.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use windlass::rehearse::Rehearsal;
use windlass::sim::Verb;

use crate::history::{History, package_key};
use crate::log::{Moment, Write, at, component_of, depends_on, text, writes};

type Judgement = Result<(), String>;

/// Reasons with which a package may rest.
const ENDS: [&str; 6] =
    ["Ready", "UpgradeFailed", "InstallFailed", "UpgradeRolledBack", "RollbackFailed", "HookFailed"];

/// Judges a play from its log alone, then lets it come to rest and judges that.
pub fn judge(history: &History, rehearsal: &mut Rehearsal) -> Judgement {
    rest(history, rehearsal)?;
    if history.deleted {
        uninstall(rehearsal)?;
    }
    of_log(rehearsal)
}

/// What holds of every part of a log.
pub fn of_log(rehearsal: &Rehearsal) -> Judgement {
    let writes = writes(rehearsal);
    let mut moment = Moment::default();
    let mut next = writes.iter().peekable();
    let mut hooks = Hooks::default();
    for (index, change) in rehearsal.world.store.log().iter().enumerate() {
        if let Some(write) = next.next_if(|write| write.index == index) {
            order(&moment, write).map_err(|error| format!("at {index} ({}): {error}", change.at))?;
        }
        if change.key.kind == "PackageRevision" && change.verb == Verb::Updated {
            phases(&moment, &change.object).map_err(|error| format!("at {index} ({}): {error}", change.at))?;
        }
        hooks.take(&moment, change).map_err(|error| format!("at {index} ({}): {error}", change.at))?;
        removal(&moment, change).map_err(|error| format!("at {index} ({}): {error}", change.at))?;
        moment.take(change);
    }
    Ok(())
}

fn number(revision: &Map<String, Value>) -> u64 {
    at(revision, "/spec/number").as_u64().unwrap_or(0)
}

/// No component moves before its dependencies run as the revision has them; on
/// the way back none before those that depend on it are back.
fn order(moment: &Moment<'_>, write: &Write) -> Judgement {
    let Some(latest) = moment.revisions().last().copied() else { return Err("a child without a revision".into()) };
    let name = &write.component;
    match text(latest, "/status/phase") {
        "RollingBack" => {
            let target = moment.revision(at(latest, "/status/rollback/to").as_u64().unwrap_or(0));
            let Some(target) = target else { return Err("the target of the rollback is gone".into()) };
            way_back(moment, latest, target, name)
        }
        "Succeeded" | "RolledBack" | "RollbackFailed" => Ok(()),
        _ => {
            let wanted = component_of(latest, name).map(|component| text(component, "/digest").to_owned());
            if wanted.as_deref() != Some(write.digest.as_str()) {
                return Err(format!("{name} gets digest {}, {wanted:?} is wanted", write.digest));
            }
            let early = depends_on(latest, name).into_iter().find(|on| !moment.has_run(latest, on));
            match early {
                Some(on) => Err(format!("{name} moves before {on} has run as revision {} has it", number(latest))),
                None => Ok(()),
            }
        }
    }
}

fn way_back(moment: &Moment<'_>, latest: &Map<String, Value>, target: &Map<String, Value>, name: &str) -> Judgement {
    let records = at(latest, "/status/components").as_array().into_iter().flatten();
    let touched: BTreeSet<&str> = records
        .filter_map(Value::as_object)
        .filter(|record| at(record, "/moved") == true)
        .map(|record| text(record, "/name"))
        .collect();
    let components = at(target, "/spec/components").as_array().into_iter().flatten().filter_map(Value::as_object);
    for dependent in components.filter(|component| depends_on(target, text(component, "/name")).contains(&name)) {
        let (other, version) = (text(dependent, "/name"), text(dependent, "/chartVersion"));
        let is_resource = at(dependent, "/readyWhen/0").is_object();
        let here = component_of(latest, other).is_some();
        if touched.contains(other) && here && !is_resource && moment.runs_now(other).is_some_and(|runs| runs != version)
        {
            return Err(format!("{name} goes back before {other}, which depends on it"));
        }
    }
    Ok(())
}

/// Nothing is rolled back over a revision that forbids it; nothing succeeds that
/// does not run.
fn phases(moment: &Moment<'_>, revision: &Map<String, Value>) -> Judgement {
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
            if (moved || hooks) && at(other, "/spec/rollback/safe") != true {
                return Err(format!("rolled back to {to} over revision {}, which is not safe", number(other)));
            }
        }
    }
    if phase == "Succeeded" {
        let components = at(revision, "/spec/components").as_array().into_iter().flatten().filter_map(Value::as_object);
        for component in components.filter(|component| at(component, "/hook") != true) {
            let name = text(component, "/name");
            if !moment.has_run(revision, name) {
                return Err(format!("revision {} succeeds, and {name} never ran as it has it", number(revision)));
            }
        }
    }
    Ok(())
}

/// Hooks that succeeded since the last thing that voids them.
#[derive(Default)]
struct Hooks {
    done: BTreeSet<String>,
    runs: BTreeSet<String>,
}

impl Hooks {
    /// A hook runs once for one move: not again once it has succeeded, until a
    /// rollback or a succeeded revision.
    fn take(&mut self, moment: &Moment<'_>, change: &windlass::sim::Change) -> Judgement {
        let object = change.object.as_ref();
        if change.key.kind == "PackageRevision" && matches!(text(object, "/status/phase"), "Succeeded" | "RolledBack") {
            self.done.clear();
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
            self.runs.insert(version.clone());
        }
        let conditions = at(object, "/status/conditions").as_array();
        if conditions.into_iter().flatten().any(|condition| condition["type"] == "Complete") {
            self.done.insert(version);
        }
        Ok(())
    }
}

/// What others depend on is not deleted before them.
fn removal(moment: &Moment<'_>, change: &windlass::sim::Change) -> Judgement {
    let children = matches!(change.key.kind.as_str(), "HelmRelease" | "Application");
    let begins = |object: &Map<String, Value>| at(object, "/metadata/deletionTimestamp").is_string();
    let before = moment.objects.get(change.key.as_ref());
    if !children || !begins(&change.object) || before.is_none_or(|before| begins(before)) {
        return Ok(());
    }
    let name = text(&change.object, "/metadata/labels/windlass.dev~1component");
    let revisions = moment.revisions();
    let knows = |revision: &&&Map<String, Value>| component_of(revision, name).is_some();
    let Some(revision) = revisions.iter().rev().find(knows) else { return Ok(()) };
    let hook = component_of(revision, name).is_some_and(|component| at(component, "/hook") == true);
    let dependent = moment.objects.iter().find(|(key, object)| {
        let other = text(object, "/metadata/labels/windlass.dev~1component");
        key.kind == change.key.kind && !hook && depends_on(revision, other).contains(&name)
    });
    match dependent {
        Some((key, _)) => Err(format!("{name} is removed before {}, which depends on it", key.name)),
        None => Ok(()),
    }
}

fn ready(rehearsal: &Rehearsal) -> Option<(String, String)> {
    let package = rehearsal.world.store.get(&package_key())?;
    let conditions = at(package, "/status/conditions").as_array()?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    Some((ready["reason"].as_str()?.to_owned(), ready["message"].as_str().unwrap_or("").to_owned()))
}

fn writes_of_windlass(rehearsal: &Rehearsal) -> usize {
    rehearsal.world.store.log().iter().filter(|change| change.actor == "windlass").count()
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
    let before = writes_of_windlass(rehearsal);
    rehearsal.run_for(1_200_000);
    let more = writes_of_windlass(rehearsal) - before;
    if more > 0 && reason != "InstallFailed" {
        return Err(format!("{more} writes after everything had come to rest at {reason}: {message}"));
    }
    let last = History::version(history.commits.len() - 1);
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
    let left: Vec<String> = rehearsal.world.store.all().map(|(key, _)| key.to_string()).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("uninstalling leaves {left:?}: {:?}", ready(rehearsal))) }
}
