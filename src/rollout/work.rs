//! The desk on which a decision is put together.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::clock::Now;
use super::decision::{Action, Event, Precondition, Record, RolloutEvent};
use super::history::History;
use super::live::{Live, Place};
use super::snapshot::{RevisionView, Snapshot};
use super::turn::{Gate, Limits};
use super::{adopt, canaries, compile, operation, release};
use crate::api::{
    Blocker, ComponentRecord, Engine, HookOutcome, PackageRevisionStatus, Reason, RecordedComponent, RevisionPhase,
    RolloutRecord,
};
use crate::engine::{Manifest, ObjectKey, acting_as, in_place, in_place_back, pinned, pinned_names};
use crate::package::definition::DEFAULT_TIMEOUT;
use crate::package::duration::GoDuration;
use crate::package::names::ObjectName;
use crate::ready::owned;

/// What is being decided about the latest revision.
pub(crate) struct Work<'a> {
    pub snapshot: &'a Snapshot,
    pub history: History<'a>,
    pub latest: &'a RevisionView,
    pub now: Now,
    /// The latest revision's status as it will be recorded.
    pub status: PackageRevisionStatus,
    /// Records of other revisions to write.
    pub other_records: Vec<Record>,
    pub actions: Vec<Action>,
    pub events: Vec<Event>,
    pub rollout_events: Vec<RolloutEvent>,
    pub blocked_by: Vec<Blocker>,
    /// What is wrong with components outside of any turn.
    pub remarks: BTreeMap<String, String>,
    /// The spec is not what the latest revision was made from: of its settings only as
    /// whom it acts is taken.
    pub held: bool,
    /// DaemonSets behind a canary that this look has seen to.
    pub seen_to: BTreeSet<ObjectKey>,
    /// Rollouts of earlier revisions that stand still: they are told, and not recorded.
    pub overtaken: Vec<RolloutRecord>,
    look_again: Option<Duration>,
    index: BTreeMap<String, usize>,
    by_component: BTreeMap<&'a str, Vec<&'a Live>>,
    by_place: BTreeMap<Place<'a>, &'a Live>,
    sources: BTreeMap<Place<'a>, &'a Live>,
    newest: OnceCell<BTreeMap<&'a str, &'a RecordedComponent>>,
}

impl<'a> Work<'a> {
    pub fn new(snapshot: &'a Snapshot, latest: &'a RevisionView, now: Now) -> Self {
        let mut by_component: BTreeMap<&str, Vec<&Live>> = BTreeMap::new();
        for child in snapshot.own_children() {
            by_component.entry(child.component().unwrap_or_default()).or_default().push(child);
        }
        let mut status = latest.status.clone();
        if !snapshot.package.deleting {
            // Of a Package that is there again an earlier deletion tells nothing.
            status.deletion = None;
        }
        Self {
            snapshot,
            history: History::new(&snapshot.revisions),
            latest,
            now,
            index: status.components.iter().enumerate().map(|(at, record)| (record.name.clone(), at)).collect(),
            status,
            other_records: Vec::new(),
            actions: Vec::new(),
            events: Vec::new(),
            rollout_events: Vec::new(),
            blocked_by: Vec::new(),
            remarks: BTreeMap::new(),
            held: false,
            seen_to: BTreeSet::new(),
            overtaken: Vec::new(),
            look_again: None,
            by_component,
            by_place: snapshot.children.iter().map(|child| (child.place(), child)).collect(),
            sources: snapshot.sources.iter().map(|source| (source.place(), source)).collect(),
            newest: OnceCell::new(),
        }
    }

    /// Asks for another look after `after`, or earlier.
    pub fn look_again(&mut self, after: Duration) {
        self.look_again = Some(self.look_again.map_or(after, |earlier| earlier.min(after)));
    }

    /// When to look again.
    pub fn next_look(&self) -> Option<Duration> {
        self.look_again
    }

    pub fn event(&mut self, warning: bool, reason: Reason, message: impl Into<String>) {
        self.events.push(Event { warning, reason, component: None, message: message.into() });
    }

    /// What a turn may take, as the spec says now.
    pub fn limits(&self) -> Limits {
        match &self.snapshot.package.definition {
            Ok(definition) => Limits { timeout: definition.upgrade.timeout.get(), retries: definition.upgrade.retries },
            Err(_) => Limits { timeout: timeout_of(self.latest), retries: self.latest.spec.retries },
        }
    }

    /// Our live children, whatever their names.
    pub fn inventory(&self) -> impl Iterator<Item = &'a Live> {
        self.by_component.values().flatten().copied()
    }

    /// Our live children of a component, whatever their names.
    pub fn children_of(&self, component: &str) -> &[&'a Live] {
        self.by_component.get(component).map_or(&[], Vec::as_slice)
    }

    /// The live object at the place of the component's release object.
    pub fn child(&self, component: &RecordedComponent) -> Option<&'a Live> {
        self.by_place.get(&release::place(component)?).copied()
    }

    /// The live Flux source of ours at a place.
    pub fn source(&self, place: Place<'_>) -> Option<&'a Live> {
        self.sources.get(&place).copied()
    }

    /// A component as the newest revision that knows it has it; hooks left out.
    pub fn newest(&self, component: &str) -> Option<&'a RecordedComponent> {
        let all = self.newest.get_or_init(|| {
            let revisions = self.snapshot.revisions.iter();
            let components =
                revisions.flat_map(|revision| &revision.spec.components).filter(|component| !component.hook);
            components.map(|component| (component.name.as_str(), component)).collect()
        });
        all.get(component).copied()
    }

    /// Whether the live child was rendered from the wanted digest, and the
    /// fields we own are as we wrote them.
    pub fn runs_wanted(&self, component: &RecordedComponent) -> bool {
        self.child(component).is_some_and(|child| release::is_as_written(component, child))
    }

    /// What the engine says of a component's release.
    pub fn release(
        &mut self,
        component: &RecordedComponent,
        record: &mut ComponentRecord,
        gate: Gate,
    ) -> release::Look {
        release::observe(self, component, record, gate)
    }

    pub fn record(&self, name: &str) -> Option<&ComponentRecord> {
        self.status.components.get(*self.index.get(name)?)
    }

    /// A copy of a record to change; [`Work::put_record`] puts it back.
    pub fn take_record(&mut self, name: &str) -> ComponentRecord {
        let existing = self.record(name).cloned();
        existing.unwrap_or_else(|| ComponentRecord { name: name.to_owned(), ..ComponentRecord::default() })
    }

    pub fn put_record(&mut self, record: ComponentRecord) {
        let at = *self.index.entry(record.name.clone()).or_insert(self.status.components.len());
        match self.status.components.get_mut(at) {
            Some(existing) => *existing = record,
            None => self.status.components.push(record),
        }
    }

    /// Forgets what happened to components and hooks: a fresh attempt begins.
    pub fn forget_turns(&mut self) {
        self.status.components.clear();
        self.status.hooks.clear();
        self.index.clear();
    }

    /// Puts the record back to what it was: a look that led nowhere.
    pub fn restore_status(&mut self, status: PackageRevisionStatus) {
        self.index = status.components.iter().enumerate().map(|(at, record)| (record.name.clone(), at)).collect();
        self.status = status;
    }

    /// An older revision that had not ended was superseded by the latest.
    pub fn supersede_older(&mut self) {
        let older = self.snapshot.revisions.iter().filter(|revision| revision.number() < self.latest.number());
        for revision in older.filter(|revision| revision.is_open()) {
            let mut status = revision.status.clone();
            status.phase = RevisionPhase::Superseded;
            status.reason = status.reason.or_else(|| what_had_failed(revision));
            self.other_records.push(Record {
                revision: revision.name.clone(),
                resource_version: revision.resource_version.clone(),
                status,
            });
        }
    }

    /// Whether the latest revision is a first install that has failed.
    pub fn has_failed_first_install(&self) -> bool {
        self.latest.spec.base.is_none() && self.latest.status.phase == RevisionPhase::Failed
    }

    /// Applies settings that move nothing: the CRD policy stays as it is.
    pub fn apply_settings(&mut self, child: &Live, wanted: Manifest) {
        let mut object = wanted.into_map();
        release::keep_crd_policy(&mut object, child);
        if release::engine_of(&child.key().kind) == Some(Engine::Argo) {
            self.actions.push(operation::written(child, object, None));
            return;
        }
        let precondition = Precondition::Unchanged {
            uid: child.uid().to_owned(),
            resource_version: child.resource_version().to_owned(),
        };
        self.actions.push(Action::Apply { object, precondition });
    }

    /// Applies a component's manifests, the release last.
    pub fn apply(&mut self, component: &RecordedComponent, record: &mut ComponentRecord) {
        for manifest in &component.manifests {
            let manifest = self.with_settings(component, Manifest::from_record(manifest.clone()));
            let manifest = if component.adopted { manifest } else { self.guarded(component, manifest) };
            self.apply_manifest(manifest, record);
        }
    }

    /// A release as it is written now: where no policy of the guard acts on its
    /// DaemonSets, or it did so when it was rendered, it states a budget of 1 itself.
    pub fn guarded(&self, component: &RecordedComponent, manifest: Manifest) -> Manifest {
        let states_it = !pinned_names(manifest.as_map()).is_empty();
        match &component.canary {
            // What was taken over is kept as it was written by its author.
            Some(_) if states_it && component.adopted => manifest,
            Some(canary) if states_it || !canaries::is_guarded(self, component, canary) => pinned(&manifest, canary),
            Some(_) | None => manifest,
        }
    }

    /// A stored release with the settings that the spec states now, as far as they
    /// are for the version that it is of.
    pub fn with_settings(&self, component: &RecordedComponent, stored: Manifest) -> Manifest {
        if !release::is_release_kind(stored.kind()) || component.adopted {
            return stored;
        }
        let Ok(definition) = &self.snapshot.package.definition else {
            return acting_as(
                &stored,
                self.snapshot.account().map(ObjectName::as_str),
                &self.snapshot.cluster.argo_project,
            );
        };
        match compile::release_object(self.snapshot, definition, self.latest, component) {
            Some(fresh) if self.held || self.is_back() => in_place_back(&stored, &fresh, component.canary.is_some()),
            Some(fresh) => in_place(&stored, &fresh),
            // The spec has no such component any more, but it has an account.
            None => match self.snapshot.account() {
                Some(account) => stored.acting_as(account),
                None => stored,
            },
        }
    }

    /// Whether an earlier revision runs again, or is on its way: the spec of now is
    /// that of another version.
    fn is_back(&self) -> bool {
        match self.status.phase {
            RevisionPhase::RollingBack | RevisionPhase::RolledBack | RevisionPhase::RollbackFailed => true,
            RevisionPhase::Pending
            | RevisionPhase::Preparing
            | RevisionPhase::Applying
            | RevisionPhase::Succeeded
            | RevisionPhase::Failed
            | RevisionPhase::Superseded => false,
        }
    }

    /// Applies one object; a child only as it was seen, and only where it is ours.
    pub fn apply_manifest(&mut self, manifest: Manifest, record: &mut ComponentRecord) {
        let key = manifest.key();
        let live = self.by_place.get(&Place::from(&key)).copied();
        if live.is_some_and(|live| adopt::is_foreign(self.snapshot, live)) {
            return;
        }
        if let Some(live) = live.filter(|live| adopt::is_taken_over(live) && adopt::needs_rewrite(live)) {
            self.actions.push(adopt::rewrite(live, manifest.as_map()));
            return;
        }
        if let Some(less) = live.and_then(|live| release::without_more(live, manifest.as_map())) {
            self.actions.push(less);
            return;
        }
        if let (Some(Engine::Argo), Some(live)) = (release::engine_of(&key.kind), live) {
            operation::write(self, live, manifest, record);
            return;
        }
        if release::is_source_kind(&key.kind)
            && self.source(Place::from(&key)).is_some_and(|source| holds(source, &manifest))
        {
            return;
        }
        let precondition = if release::is_release_kind(&key.kind) {
            live.map_or(Precondition::Absent, |live| Precondition::Unchanged {
                uid: live.uid().to_owned(),
                resource_version: live.resource_version().to_owned(),
            })
        } else {
            Precondition::Any
        };
        self.actions.push(Action::Apply { object: manifest.into_map(), precondition });
    }

    /// Deletes a live object.
    pub fn delete(&mut self, live: &Live) {
        self.actions.extend(operation::end(live));
        if !live.is_deleting() {
            self.actions.push(Action::Delete { object: live.key().clone(), uid: live.uid().to_owned() });
        }
    }
}

/// Whether a source has all that is wanted of it. Writing it again would change
/// nothing, and look like progress.
fn holds(source: &Live, wanted: &Manifest) -> bool {
    !source.is_deleting() && owned::difference(wanted.as_map(), &source.object, &[]).is_none()
}

/// The time one turn of a revision may take.
pub(crate) fn timeout_of(revision: &RevisionView) -> Duration {
    GoDuration::parse(&revision.spec.timeout).unwrap_or(DEFAULT_TIMEOUT).get()
}

/// What had gone wrong in a revision that another one takes over from, so that its history
/// tells of it.
fn what_had_failed(revision: &RevisionView) -> Option<Reason> {
    let failed = |outcome: HookOutcome| matches!(outcome, HookOutcome::Failed | HookOutcome::ToRepeat);
    if revision.status.hooks.iter().any(|hook| failed(hook.outcome)) {
        return Some(Reason::HookFailed);
    }
    let mut open = revision.status.components.iter().filter(|record| record.verified_at.is_none());
    let reason = if revision.spec.base.is_some() { Reason::UpgradeFailed } else { Reason::InstallFailed };
    open.any(|record| !record.last_failure.is_empty()).then_some(reason)
}
