//! Reads the log change by change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Moment, What};
use crate::api::wellknown::{ANNOTATION_DIGEST, ANNOTATION_HOOK, FIELD_MANAGER, LABEL_COMPONENT, LABEL_PACKAGE};
use crate::api::{
    ComponentRecord, ComponentState, HookOutcome, PackageRevisionSpec, PackageRevisionStatus, PackageStatus, Reason,
    RevisionPhase, RolloutPhase, RolloutRecord,
};
use crate::rehearse::packages::text;
use crate::rehearse::play::{GIT, Played, status};
use crate::rehearse::process::PackageId;
use crate::rehearse::{Happening, Note, Rehearsal};
use crate::sim::store::{finalizers, is_deleting};
use crate::sim::{Change, Verb};

/// A revision, as far as it has been read.
struct Revision {
    spec: Arc<PackageRevisionSpec>,
    status: PackageRevisionStatus,
    began: u64,
}

/// A child, as it was last written.
struct Child {
    digest: String,
    written: u64,
    /// Whether its release stays when it is deleted.
    stays: bool,
}

/// A Package, as far as it has been read.
#[derive(Default)]
struct Package {
    version: Option<String>,
    committed: u64,
    status: PackageStatus,
    revisions: BTreeMap<u64, Revision>,
    children: BTreeMap<String, Child>,
    /// What it was last said to wait for, in parts.
    waits: BTreeSet<String>,
    /// Components of which it was told what they wait for.
    awaited: BTreeSet<String>,
    /// When what was recorded to the second was first seen.
    seen: BTreeMap<(u64, String, jiff::Timestamp), u64>,
}

/// Something that is told once the writes of its decision show more of it.
enum Pending {
    /// Follows the record of what led to it.
    Told(Moment),
    /// A failed attempt of a component; the status says what was found.
    Attempt { component: String, attempts: u32 },
}

/// Reasons for which a Package waits, or was refused; failures are told by events.
const WAITS: [Reason; 10] = [
    Reason::RequirementsNotMet,
    Reason::Conflict,
    Reason::InvalidSpec,
    Reason::UpgradePathNotAllowed,
    Reason::DowngradeRefused,
    Reason::SourceNotFound,
    Reason::Suspended,
    Reason::EngineMissing,
    Reason::EngineAmbiguous,
    Reason::AccessDenied,
];

struct Reader<'a> {
    rehearsal: &'a Rehearsal,
    began: u64,
    packages: BTreeMap<PackageId, Package>,
    moments: Vec<Moment>,
    pending: Vec<(u64, PackageId, Pending)>,
}

/// The timeline of a play.
pub(super) fn read(played: &Played) -> Vec<Moment> {
    let mut reader = Reader {
        rehearsal: &played.rehearsal,
        began: played.began,
        packages: BTreeMap::new(),
        moments: Vec::new(),
        pending: Vec::new(),
    };
    let log = played.rehearsal.world.store.log();
    let (before, since) = log.split_at(played.position.min(log.len()));
    before.iter().for_each(|change| reader.take(change));
    reader.moments.clear();
    let mut notes = played.rehearsal.notes.iter().peekable();
    for (position, change) in (played.position..).zip(since) {
        while let Some(note) = notes.next_if(|note| note.position <= position) {
            reader.note(note);
        }
        reader.take(change);
    }
    notes.for_each(|note| reader.note(note));
    reader.flush(|_, _, _| true);
    reader.moments
}

impl Reader<'_> {
    fn say(&mut self, at: u64, package: &PackageId, component: Option<&str>, what: What) {
        let component = component.map(str::to_owned);
        self.moments.push(Moment {
            at: at.saturating_sub(self.began),
            package: Some(package.clone()),
            component,
            what,
        });
    }

    fn note(&mut self, note: &Note) {
        let at = note.at.saturating_sub(self.began);
        let what = match &note.what {
            Happening::Restarted => What::Restarted,
            // Components, hooks, and what goes on after all, are read from the records.
            Happening::Event(event) if event.component.is_none() && event.reason != Reason::Progressing => {
                What::Told { warning: event.warning, reason: event.reason, message: event.message.clone() }
            }
            Happening::Event(_) | Happening::Refused(..) => return,
        };
        let moment = Moment { at, package: note.package.clone(), component: None, what };
        match &note.package {
            Some(id) => self.pending.push((note.at, id.clone(), Pending::Told(moment))),
            None => self.moments.push(moment),
        }
    }

    /// Tells what has been held back, as far as that is over.
    fn flush(&mut self, over: impl Fn(u64, &PackageId, &Pending) -> bool) {
        for (at, id, pending) in std::mem::take(&mut self.pending) {
            if !over(at, &id, &pending) {
                self.pending.push((at, id, pending));
                continue;
            }
            match pending {
                Pending::Told(moment) => self.moments.push(moment),
                Pending::Attempt { component, attempts } => {
                    let status = self.packages.get(&id).map(|package| &package.status);
                    let found = status.and_then(|status| status.components.iter().find(|c| c.name == component));
                    let message = found.and_then(|found| found.message.clone()).unwrap_or_default();
                    self.say(at, &id, Some(&component), What::AttemptFailed { attempts, message });
                }
            }
        }
    }

    /// Time that passes, and writes that are no records, end what a decision
    /// holds back.
    fn hold_back(&mut self, change: &Change) {
        self.flush(|at, _, _| at < change.at);
        if change.actor == FIELD_MANAGER && change.key.kind != "PackageRevision" {
            self.flush(|_, id, pending| id.namespace == change.key.namespace && matches!(pending, Pending::Told(_)));
        }
    }

    fn take(&mut self, change: &Change) {
        self.hold_back(change);
        let object = change.object.as_ref();
        match change.key.kind.as_str() {
            "Package" => self.package(change),
            "PackageRevision" => {
                let id = PackageId::new(&change.key.namespace, text(object, &["spec", "package"]));
                self.revision(&id, change);
                self.flush(|_, told, pending| *told == id && matches!(pending, Pending::Told(_)));
            }
            "HelmRelease" | "Application" if text(object, &["metadata", "annotations", ANNOTATION_HOOK]).is_empty() => {
                let id = PackageId::new(&change.key.namespace, text(object, &["metadata", "labels", LABEL_PACKAGE]));
                self.child(&id, change);
            }
            _ => {}
        }
    }

    fn package(&mut self, change: &Change) {
        let id = PackageId::new(&change.key.namespace, &change.key.name);
        let object = change.object.as_ref();
        if change.verb == Verb::Deleted {
            self.packages.remove(&id);
            return self.say(change.at, &id, None, What::Gone);
        }
        let package = self.packages.entry(id.clone()).or_default();
        if change.actor == GIT && is_deleting(object) {
            return self.say(change.at, &id, None, What::Withdrawn);
        }
        if change.actor == GIT {
            let to = text(object, &["spec", "version"]).to_owned();
            let from = package.version.replace(to.clone());
            package.committed = change.at;
            return self.say(change.at, &id, None, What::Committed { from, to });
        }
        let Some(now) = status(object) else { return };
        let before = std::mem::replace(&mut package.status, now.clone());
        self.waits(&id, change.at, &before, &now);
        self.flush(|_, other, pending| *other == id && matches!(pending, Pending::Attempt { .. }));
        self.components(&id, change.at, &now);
    }

    /// What a Package waits for outside of itself, or why it was refused; what
    /// has failed is told by an event.
    fn waits(&mut self, id: &PackageId, at: u64, before: &PackageStatus, now: &PackageStatus) {
        let ready = |status: &PackageStatus| {
            let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
            ready.map(|ready| (ready.reason.clone(), ready.message.clone()))
        };
        let (before, Some(now)) = (ready(before), ready(now)) else { return };
        let Some(package) = self.packages.get_mut(id) else { return };
        let (reason, message) = now;
        let prepares = package
            .revisions
            .values()
            .next_back()
            .is_some_and(|latest| matches!(latest.status.phase, RevisionPhase::Pending | RevisionPhase::Preparing));
        let waits =
            WAITS.iter().any(|waits| waits.as_str() == reason) || (reason == Reason::Preparing.as_str() && !prepares);
        if !waits {
            package.waits.clear();
            return;
        }
        // Less of the same is no news.
        let parts: BTreeSet<String> = message.split("; ").map(str::to_owned).collect();
        let known = before.is_some_and(|(before, _)| before == reason) && parts.is_subset(&package.waits);
        package.waits = parts;
        if !known {
            self.say(at, id, None, What::Waits { reason, message });
        }
    }

    /// What components wait for.
    fn components(&mut self, id: &PackageId, at: u64, now: &PackageStatus) {
        let Some(package) = self.packages.get_mut(id) else { return };
        let mut told = Vec::new();
        for component in &now.components {
            let message = component.message.clone().unwrap_or_default();
            let verifies = component.state == ComponentState::Verifying && !message.is_empty();
            if verifies && package.awaited.insert(component.name.clone()) {
                told.push((component.name.clone(), What::ReleaseReady { message }));
            }
        }
        told.into_iter().for_each(|(name, what)| self.say(at, id, Some(&name), what));
    }

    fn revision(&mut self, id: &PackageId, change: &Change) {
        let object = change.object.as_ref();
        let package = self.packages.entry(id.clone()).or_default();
        let number = object.get("spec").and_then(|spec| spec.get("number")).and_then(Value::as_u64).unwrap_or(0);
        if change.verb == Verb::Deleted {
            package.revisions.remove(&number);
            return;
        }
        let now: PackageRevisionStatus =
            object.get("status").and_then(|status| serde_json::from_value(status.clone()).ok()).unwrap_or_default();
        if let Some(known) = package.revisions.get_mut(&number) {
            let before = std::mem::replace(&mut known.status, now.clone());
            return self.progress(id, number, change.at, &before, &now);
        }
        let Some(spec) = self.rehearsal.whole_spec(object) else { return };
        package.awaited.clear();
        let what = begins(package, &spec, change.at);
        package.revisions.insert(number, Revision { spec, status: now, began: change.at });
        self.say(change.at, id, None, what);
    }

    fn progress(
        &mut self,
        id: &PackageId,
        number: u64,
        at: u64,
        before: &PackageRevisionStatus,
        now: &PackageRevisionStatus,
    ) {
        let began = self.packages.get(id).and_then(|p| p.revisions.get(&number)).map_or(at, |r| r.began);
        match (before.phase, now.phase) {
            (RevisionPhase::Preparing, RevisionPhase::Applying | RevisionPhase::Succeeded) => {
                self.say(at, id, None, What::Fetched { took: at - began });
            }
            (RevisionPhase::Failed, RevisionPhase::Applying | RevisionPhase::Succeeded) => {
                self.say(at, id, None, What::GoesOn);
            }
            _ => {}
        }
        if before.phase != now.phase && now.phase == RevisionPhase::RollingBack {
            self.flush(|_, told, pending| told == id && matches!(pending, Pending::Told(_)));
        }
        for hook in &now.hooks {
            let known = before.hooks.iter().find(|known| known.name == hook.name);
            let took = hook.started_at.as_ref().map_or(0, |began| self.since(id, number, &hook.name, began, at));
            let what = match hook.outcome {
                HookOutcome::Running => What::HookRuns,
                HookOutcome::Succeeded => What::HookSucceeded { took },
                HookOutcome::Failed => What::HookFailed { took },
                HookOutcome::ToRepeat => continue,
            };
            if known.map(|known| known.outcome) != Some(hook.outcome) {
                self.say(at, id, Some(&hook.name), what);
            }
        }
        for record in &now.rollouts {
            let known = before.rollouts.iter().find(|known| known.daemon_set == record.daemon_set);
            let seen = |record: &RolloutRecord| (record.phase, record.reason, record.budget.clone());
            // Neither the first look at what runs nor waiting for a template is news.
            let begun = record.phase != RolloutPhase::Started || record.reason.is_some();
            if begun && record.budget.is_some() && known.is_some_and(|known| seen(known) != seen(record)) {
                self.say(at, id, Some(&record.component), rolls_out(record));
            }
        }
        for record in self.in_order(id, &now.components) {
            let known = before.components.iter().find(|known| known.name == record.name).cloned().unwrap_or_default();
            self.record(id, number, at, &known, record);
        }
    }

    fn record(&mut self, id: &PackageId, number: u64, at: u64, before: &ComponentRecord, now: &ComponentRecord) {
        let took = now.turn_began.as_ref().map(|began| self.since(id, number, &now.name, began, at));
        let Some(package) = self.packages.get_mut(id) else { return };
        if now.attempts > before.attempts && now.state == ComponentState::Progressing {
            let attempt = Pending::Attempt { component: now.name.clone(), attempts: now.attempts };
            self.pending.push((at, id.clone(), attempt));
        }
        let written = package.children.get(&now.name).map_or(at, |child| child.written);
        let spec = package.revisions.get(&number).map(|revision| &revision.spec);
        let component = spec.and_then(|spec| spec.components.iter().find(|component| component.name == now.name));
        let after = component.map(|component| component.depends_on.clone()).unwrap_or_default();
        let what = match (before.state, now.state) {
            (before, now) if before == now => return,
            // What counts as verified by its record has no turn.
            (_, ComponentState::Verified) if !now.moved && now.turn_began.is_none() => return,
            (_, ComponentState::Verified) => {
                let took = took.filter(|_| !now.moved).unwrap_or(at - written);
                if before.state != ComponentState::Verifying && !now.moved {
                    self.say(at, id, Some(&now.name), What::VerifiedAgain { after });
                }
                What::Verified { took }
            }
            (_, ComponentState::Verifying) if !now.moved => What::VerifiedAgain { after },
            (_, ComponentState::Restored) => What::IsBack { took: at - written },
            (_, ComponentState::Removing) => What::Uninstalls,
            (ComponentState::Removing, ComponentState::Removed) => {
                What::Uninstalled { took: took.filter(|_| !now.moved).unwrap_or(0) }
            }
            (
                _,
                ComponentState::Waiting
                | ComponentState::Queued
                | ComponentState::Progressing
                | ComponentState::Verifying
                | ComponentState::Failed
                | ComponentState::Suspended
                | ComponentState::Restoring
                | ComponentState::Removed,
            ) => return,
        };
        self.say(at, id, Some(&now.name), what);
    }

    /// Milliseconds since a time on record, which is there to the second, was first
    /// seen.
    fn since(&mut self, id: &PackageId, number: u64, name: &str, time: &crate::api::Time, at: u64) -> u64 {
        let Some(package) = self.packages.get_mut(id) else { return 0 };
        at - *package.seen.entry((number, name.to_owned(), time.0)).or_insert(at)
    }

    /// Records as their components follow each other: dependencies first, and what
    /// goes away or back the other way round.
    fn in_order<'r>(&self, id: &PackageId, records: &'r [ComponentRecord]) -> Vec<&'r ComponentRecord> {
        let revisions = self.packages.get(id).into_iter().flat_map(|package| package.revisions.values().rev());
        let depths = depths(revisions.map(|revision| revision.spec.as_ref()));
        let goes = |record: &ComponentRecord| {
            matches!(
                record.state,
                ComponentState::Removing
                    | ComponentState::Removed
                    | ComponentState::Restoring
                    | ComponentState::Restored
            )
        };
        let mut records: Vec<&ComponentRecord> = records.iter().collect();
        records.sort_by_cached_key(|record| {
            let depth = depths.get(record.name.as_str()).copied().unwrap_or(0);
            if goes(record) { (true, -depth) } else { (false, depth) }
        });
        records
    }

    /// A write of a child by Windlass.
    fn child(&mut self, id: &PackageId, change: &Change) {
        let object = change.object.as_ref();
        let name = text(object, &["metadata", "labels", LABEL_COMPONENT]).to_owned();
        let Some(package) = self.packages.get_mut(id) else { return };
        if change.verb == Verb::Deleted || is_deleting(object) {
            return self.child_goes(id, &name, change);
        }
        let digest = text(object, &["metadata", "annotations", ANNOTATION_DIGEST]).to_owned();
        let suspended = object.get("spec").and_then(|spec| spec.get("suspend")).and_then(Value::as_bool) == Some(true);
        let stays = suspended || change.key.kind == "Application" && finalizers(object).is_empty();
        if change.actor != FIELD_MANAGER {
            return;
        }
        let known = package.children.get_mut(&name);
        if let Some(known) = known {
            known.stays = stays;
            if known.digest == digest {
                return;
            }
        }
        let written = Child { digest: digest.clone(), written: change.at, stays };
        let before = package.children.insert(name.clone(), written);
        let latest = package.revisions.values().next_back();
        let back = latest.is_some_and(|latest| latest.status.phase == RevisionPhase::RollingBack);
        let from = before.map(|before| chart_version(package, &name, &before.digest));
        let to = chart_version(package, &name, &digest);
        let component = latest.and_then(|latest| latest.spec.components.iter().find(|c| c.name == name));
        let after = component.map(|component| component.depends_on.clone()).unwrap_or_default();
        let what = if back { What::GoesBack { from, to } } else { What::Moves { from, to, after } };
        self.say(change.at, id, Some(&name), what);
    }

    fn child_goes(&mut self, id: &PackageId, name: &str, change: &Change) {
        let Some(package) = self.packages.get_mut(id) else { return };
        let rolling_back =
            package.revisions.values().next_back().is_some_and(|r| r.status.phase == RevisionPhase::RollingBack);
        let gone = change.verb == Verb::Deleted;
        let Some(child) = package.children.get_mut(name) else { return };
        let handed_over = child.stays;
        let what = match (gone, child.digest.is_empty()) {
            (true, false) if handed_over => What::HandsOver,
            (true, asked) => What::Uninstalled { took: if asked { change.at - child.written } else { 0 } },
            (false, true) => return,
            (false, false) if handed_over => return,
            (false, false) => What::Uninstalls,
        };
        if gone {
            package.children.remove(name);
        } else {
            // What is to go is known by having no digest any more.
            (child.digest, child.written) = (String::new(), change.at);
        }
        if !rolling_back {
            self.say(change.at, id, Some(name), what);
        }
    }
}

/// How many components come before each, at the most, in the newest revision that
/// has it. Revisions hold their components in the order in which they are applied.
fn depths<'r>(newest_first: impl Iterator<Item = &'r PackageRevisionSpec>) -> BTreeMap<&'r str, i64> {
    let mut depths = BTreeMap::new();
    for spec in newest_first {
        let mut own: BTreeMap<&str, i64> = BTreeMap::new();
        for component in &spec.components {
            let before = component.depends_on.iter().filter_map(|name| own.get(name.as_str()));
            own.insert(&component.name, before.max().map_or(0, |before| before + 1));
        }
        for (name, depth) in own {
            depths.entry(name).or_insert(depth);
        }
    }
    depths
}

/// The version of the chart that a digest stands for.
fn chart_version(package: &Package, component: &str, digest: &str) -> String {
    let components = package.revisions.values().rev().flat_map(|revision| &revision.spec.components);
    let found = components.into_iter().find(|found| found.name == component && found.digest == digest);
    found.map(|found| found.chart_version.clone()).unwrap_or_default()
}

fn begins(package: &Package, spec: &PackageRevisionSpec, at: u64) -> What {
    let base = spec.base.and_then(|number| package.revisions.get(&number));
    let ran = |name: &str, digest: &str| {
        base.is_some_and(|base| base.spec.components.iter().any(|c| c.name == name && c.digest == digest))
    };
    let components = spec.components.iter().filter(|component| !component.manifests.is_empty());
    let moves = components.filter(|component| component.hook || !ran(&component.name, &component.digest));
    What::Begins {
        revision: spec.number,
        from: Some(spec.from_version.clone()).filter(|from| !from.is_empty()),
        to: spec.version.clone(),
        moves: moves.map(|component| component.name.clone()).collect(),
        waited: at.saturating_sub(package.committed),
    }
}

fn rolls_out(record: &RolloutRecord) -> What {
    What::RollsOut {
        daemon_set: record.daemon_set.clone(),
        phase: record.phase,
        budget: record.budget.clone().unwrap_or_default(),
        updated: record.updated,
        desired: record.desired,
        message: record.message.clone().unwrap_or_default(),
    }
}
