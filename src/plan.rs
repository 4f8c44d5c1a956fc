//! What a commit does: the difference of two sets of Packages as steps, in the
//! order in which the controller takes them.
//!
//! The steps are not made up from the difference. The commit is played on the
//! simulated cluster with the decisions of [`crate::rollout`], and what happens
//! there is put beside what has changed in the files. Pure.

mod changes;
mod charts;
mod definitions;
mod failure;
mod gates;
mod groups;
pub mod report;
mod requirements;
mod rollout;
mod scope;
mod steps;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::api::{Engine, Reason};
use crate::chart::Library;
use crate::package::violation::Code;
use crate::rehearse::play::{Played, play};
use crate::rehearse::report::{PackageAtEnd, report as play_report};
use crate::rehearse::timeline::{Moment, What};
use crate::translate::{Charts, Compiled};

use scope::Scope;

/// One field that changes, as in `windlass diff`.
pub use crate::report::diff::Change as FieldChange;

/// One state of the repository.
#[derive(Clone, Copy)]
pub struct State<'a> {
    /// Its Packages.
    pub packages: &'a [Compiled],
    /// Reads the charts at a path.
    pub charts: &'a Charts<'a>,
    /// Looks into its charts.
    pub library: &'a Library<'a>,
    /// What is wrong with these charts, by Package.
    pub faults: &'a [Fault],
}

/// Something that is wrong with a Package's charts.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Namespace of the Package.
    pub namespace: String,
    /// Name of the Package.
    pub package: String,
    /// What is wrong.
    pub message: String,
}

/// What a commit does.
#[derive(Debug, Default)]
pub struct Plan {
    /// The Packages that it changes, in the order in which they begin; those
    /// that do not begin come last, by namespace and name.
    pub packages: Vec<PackagePlan>,
    /// What is said of the plan itself.
    pub notes: Vec<String>,
    /// Packages, or files, of which it cannot be told what changes: they could not be read
    /// as they were before.
    pub unknown: Vec<String>,
}

impl Plan {
    /// Whether something in it must be mended before it is merged.
    pub fn has_errors(&self) -> bool {
        let refused = |package: &PackagePlan| package.refused.as_ref().is_some_and(Refused::must_be_mended);
        self.packages.iter().any(|package| !package.errors.is_empty() || refused(package))
    }
}

/// What a commit does to one Package.
#[derive(Debug)]
pub struct PackagePlan {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// What becomes of it.
    pub change: Change,
    /// Version before; `None`: it is new.
    pub from_version: Option<String>,
    /// Version after; `None`: it goes.
    pub to_version: Option<String>,
    /// Who is taken to apply it.
    pub engine: Option<Engine>,
    /// Why it does not come to that.
    pub refused: Option<Refused>,
    /// What a failure on the way does.
    pub on_failure: OnFailure,
    /// What must be there first.
    pub requirements: Vec<Requirement>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// What changes of it beside its components, by path.
    pub changes: Vec<FieldChange>,
    /// What a reviewer should know.
    pub warnings: Vec<String>,
    /// What changes of the kinds that its charts define.
    pub findings: Vec<Finding>,
    /// What must be mended: it would not do what it says.
    pub errors: Vec<String>,
}

/// Something that was found in a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule.
    pub code: Code,
    /// The component whose chart it is.
    pub component: String,
    /// `<kind>/<name>` of the object.
    pub object: String,
    /// What changes, and what that means.
    pub message: String,
}

/// What becomes of a Package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Installed,
    /// Its version changes.
    Upgraded,
    /// Its version stays, and something of it moves.
    Changed,
    /// Nothing that runs is touched.
    Settings,
    /// It goes.
    Removed,
    /// It goes, and its releases stay: by its `deletionPolicy`, or as those of
    /// another Package.
    LetGo,
}

impl Change {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Upgraded => "upgraded",
            Self::Changed => "changed",
            Self::Settings => "settings",
            Self::Removed => "removed",
            Self::LetGo => "letGo",
        }
    }
}

/// Why a change is not carried out, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Reason of its condition Ready.
    pub reason: String,
    /// Its message.
    pub message: String,
}

impl Refused {
    /// Whether it will never be carried out as it stands, rather than wait for
    /// something that may be elsewhere.
    fn must_be_mended(&self) -> bool {
        matches!(
            Reason::parse(&self.reason),
            Some(
                Reason::InvalidSpec
                    | Reason::DowngradeRefused
                    | Reason::UpgradePathNotAllowed
                    | Reason::EngineMissing
                    | Reason::EngineAmbiguous
                    // Of two that require each other's presence one goes, and one stays.
                    | Reason::Deleting
            )
        )
    }
}

/// What a failure on the way does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnFailure {
    /// What happens.
    pub action: FailureAction,
    /// Why this and nothing else.
    pub why: String,
    /// What a hook that fails leads to; `None`: none runs.
    pub hook: Option<String>,
    /// Whether anything but hooks can fail.
    pub components: bool,
}

/// What happens when a component fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureAction {
    /// The whole package goes back to the version before.
    RollBack,
    /// It stands at UpgradeFailed until a commit mends it.
    Stop,
    /// It is tried again until it succeeds.
    Retry,
    /// Nothing moves, so nothing can fail.
    Nothing,
}

impl FailureAction {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RollBack => "rollBack",
            Self::Stop => "stop",
            Self::Retry => "retry",
            Self::Nothing => "nothing",
        }
    }
}

/// One thing that must be there first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// `package NAME` or `kubernetes`.
    pub what: String,
    /// Range of versions; `None`: any.
    pub range: Option<String>,
    /// How it stands.
    pub state: RequirementState,
    /// The same in words.
    pub message: String,
}

/// How a requirement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequirementState {
    /// It is met before the commit and stays so.
    Met,
    /// It is met once the required package is done with the same commit.
    MetAfter,
    /// No version in these files meets it.
    NotMet,
    /// The files do not say: it is for the cluster to know.
    Unknown,
}

impl RequirementState {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::MetAfter => "metAfter",
            Self::NotMet => "notMet",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What happens.
    pub action: Action,
    /// To which component.
    pub component: String,
    /// Chart version before and after, where they say something.
    pub versions: (Option<String>, Option<String>),
    /// What is waited for first.
    pub gate: Vec<String>,
    /// How its DaemonSets are rolled out; `None`: as they say themselves.
    pub rollout: Option<String>,
    /// What changes of the component, by path.
    pub changes: Vec<FieldChange>,
    /// What a reviewer should know.
    pub warnings: Vec<String>,
}

/// What happens to a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A hook runs.
    RunHook,
    /// A release is installed.
    Install,
    /// A release is upgraded.
    Upgrade,
    /// A release that does not change is verified again, since something that
    /// it depends on has moved.
    VerifyAgain,
    /// A release goes on under another name of its component or Package.
    HandOver,
    /// A release is uninstalled, and installed anew.
    Replace,
    /// A release is uninstalled.
    Remove,
}

impl Action {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunHook => "runHook",
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::VerifyAgain => "verifyAgain",
            Self::HandOver => "handOver",
            Self::Replace => "replace",
            Self::Remove => "remove",
        }
    }
}

/// Namespace and name of a Package.
type Id = (String, String);

fn id(package: &Compiled) -> Id {
    (package.definition.namespace.to_string(), package.definition.name.to_string())
}

/// What the commit from one state to another does, where the first one runs.
pub fn plan(from: State<'_>, to: State<'_>) -> Plan {
    let edited = charts::edited(from, to);
    let scope = Scope::of(from.packages, to.packages, &edited);
    let mut packages: Vec<((u64, usize), PackagePlan)> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for scene in &scope.scenes {
        let played = play(scene);
        let told = play_report(scene, &played);
        for changed in scope.changed_in(scene) {
            let moments: Vec<&Moment> = told.moments.iter().filter(|moment| is_of(moment, changed)).collect();
            let end = told.packages.iter().find(|end| end.namespace == changed.0 && end.name == changed.1);
            let sides = Sides { id: changed, from: find(from, changed), to: find(to, changed), states: (from, to) };
            packages.push((begins(&told.moments, changed), sides.package(&moments, end, &played)));
        }
        notes.extend(told.remarks);
    }
    // Those that do not begin, and those that begin at once, by their names.
    packages.sort_by(|(one, left), (other, right)| {
        one.cmp(other).then_with(|| (&left.namespace, &left.name).cmp(&(&right.namespace, &right.name)))
    });
    notes.extend(scope.notes);
    Plan { packages: packages.into_iter().map(|(_, package)| package).collect(), notes, unknown: Vec::new() }
}

/// When a Package does something, or at least becomes what is wanted: the time
/// since the commit, and the place among what happens at that time.
fn begins(moments: &[Moment], changed: &Id) -> (u64, usize) {
    let place = |is: fn(&What) -> bool| moments.iter().position(|moment| is_of(moment, changed) && is(&moment.what));
    let acts = |what: &What| matches!(what, What::Moves { .. } | What::HookRuns | What::HandsOver | What::Uninstalls);
    let found = place(acts).or_else(|| place(|what| matches!(what, What::Begins { .. })));
    found.and_then(|place| moments.get(place).map(|moment| (moment.at, place))).unwrap_or((u64::MAX, usize::MAX))
}

fn is_of(moment: &Moment, package: &Id) -> bool {
    moment.package.as_ref().is_some_and(|id| id.namespace == package.0 && id.name == package.1)
}

fn find<'a>(state: State<'a>, wanted: &Id) -> Option<&'a Compiled> {
    state.packages.iter().find(|package| id(package) == *wanted)
}

/// A Package before and after.
struct Sides<'a> {
    id: &'a Id,
    from: Option<&'a Compiled>,
    to: Option<&'a Compiled>,
    states: (State<'a>, State<'a>),
}

impl Sides<'_> {
    fn package(&self, moments: &[&Moment], end: Option<&PackageAtEnd>, played: &Played) -> PackagePlan {
        let version = |side: Option<&Compiled>| side.map(|package| package.definition.version.to_string());
        let (mut fields, of_components) = self.field_changes();
        let (mut steps, elsewhere) = steps::of(self, moments, of_components);
        fields.extend(elsewhere);
        let refused = end.and_then(refusal);
        let charts = charts::findings(self);
        for (component, warning) in charts.warnings {
            if let Some(step) = steps.iter_mut().find(|step| step.component == component) {
                step.warnings.push(warning);
            }
        }
        let change = self.change(&steps, refused.is_some());
        PackagePlan {
            namespace: self.id.0.clone(),
            name: self.id.1.clone(),
            change,
            from_version: version(self.from),
            to_version: version(self.to),
            engine: self.to.or(self.from).and_then(|package| package.definition.engine),
            refused,
            on_failure: failure::of(self, &steps, played),
            requirements: requirements::of(self),
            warnings: requirements::warnings(self).into_iter().chain(charts.remarks).collect(),
            findings: definitions::findings(self),
            errors: charts.errors,
            steps,
            changes: fields,
        }
    }

    fn change(&self, steps: &[Step], refused: bool) -> Change {
        match (self.from, self.to) {
            (None, _) => Change::Installed,
            (_, None) if steps.is_empty() && !refused => Change::LetGo,
            (_, None) => Change::Removed,
            (Some(from), Some(to)) if from.definition.version != to.definition.version => Change::Upgraded,
            (Some(_), Some(_)) if steps.is_empty() => Change::Settings,
            (Some(_), Some(_)) => Change::Changed,
        }
    }

    /// What changes beside the components, and of each component.
    fn field_changes(&self) -> (Vec<FieldChange>, BTreeMap<String, Vec<FieldChange>>) {
        fn spec(side: Option<&Compiled>) -> Option<&Map<String, Value>> {
            side?.object.get("spec")?.as_object()
        }
        // Of what is new, or goes, there is nothing to compare.
        let both = spec(self.from).zip(spec(self.to));
        let (mut fields, of_components) = both.map(|(from, to)| changes::between(from, to)).unwrap_or_default();
        if let Some((from, to)) = self.from.zip(self.to) {
            fields.extend(changes::of_metadata(&from.object, &to.object));
            fields.extend(changes::requirements_that_go(&from.object, &to.object));
        }
        (fields, of_components)
    }
}

/// Why a Package does not get where the commit wants it.
fn refusal(end: &PackageAtEnd) -> Option<Refused> {
    if end.is_ready() {
        return None;
    }
    let ready = end.status.conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(Refused { reason: ready.reason.clone(), message: ready.message.clone() })
}
