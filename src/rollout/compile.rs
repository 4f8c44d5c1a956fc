//! From what is wanted to the record of a revision: rendered once, kept for good.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::adopt;
use super::canaries;
use super::decision::{Action, Precondition};
use super::gate::Held;
use super::history::History;
use super::live::{Live, Place};
use super::release;
use super::snapshot::{RevisionView, Snapshot};
use super::wanted::Wanted;
use crate::api::wellknown::{ANNOTATION_HOOK, ARGO_COMPARE_OPTIONS, ARGO_SYNC_OPTIONS, ARGO_TRACKING_ID};
use crate::api::{Blocker, Engine, PackageRevisionSpec, Reason, RecordedComponent};
use crate::canary::Settings;
use crate::canary::guard::Policies;
use crate::engine::observe::conditions::{self, Condition};
use crate::engine::{
    ArgoTarget, CanaryGuard, Commit, Destination, FluxTarget, GitOrigin, HookRun, Manifest, ObjectKey, Owner, PathPin,
    RenderContext, RenderError, Rendered, Target, preparation, render,
};
use crate::package::definition::{ChartSource, Component, Definition, PathChart};
use crate::package::digest::ComponentDigest;
use crate::package::names::ObjectName;
use crate::package::version::Version;
use crate::ready::evidence::Lookup;
use crate::ready::release::text;

/// Largest revision, in bytes of JSON: what etcd takes, with room for metadata.
pub(crate) const MAX_REVISION: usize = 1024 * 1024;

/// What compiling came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Compiled {
    /// The record.
    Ready(Box<PackageRevisionSpec>),
    /// Something must be known first.
    Waiting { actions: Vec<Action>, message: String },
    /// A running release that is to be taken over is not as it must be.
    Conflict { actions: Vec<Action>, held: Held },
    /// It cannot be recorded.
    Refused { message: String },
}

/// Why a component has no manifests.
enum Missing {
    Waiting { actions: Vec<Action>, message: String },
    Conflict { message: String, object: ObjectKey },
    Refused(RenderError),
}

impl From<RenderError> for Missing {
    fn from(error: RenderError) -> Self {
        Self::Refused(error)
    }
}

/// Compiles the next revision of a Package.
pub(crate) fn revision(snapshot: &Snapshot, definition: &Definition, wanted: &Wanted) -> Compiled {
    let is_canaried = definition.components.iter().any(|component| component.canary.is_some());
    if is_canaried && snapshot.cluster.guard_settles_in.is_some() {
        return Compiled::Waiting { actions: Vec::new(), message: canaries::SETTLING.to_owned() };
    }
    let number = snapshot.revisions.last().map_or(1, |latest| latest.number() + 1);
    let compiler = Compiler::new(snapshot, definition, wanted.engine, number);
    let known = Known::of(snapshot, wanted);
    let verified = compiler.verified;
    let mut components = Vec::with_capacity(wanted.components.len());
    // All charts that are awaited are asked for at once.
    let (mut asked, mut awaited): (Vec<Action>, Option<String>) = (Vec::new(), None);
    let mut commit = None;
    for (outline, key, position) in wanted.all() {
        let Some(defined) = definition.components.get(position) else { continue };
        match compiler.component(outline, key, defined, &known) {
            Ok(component) => {
                let is_new = known.stored(outline).is_none();
                commit = commit.or_else(|| commit_of(defined, &component).filter(|_| is_new));
                components.push(component);
            }
            Err(Missing::Waiting { actions, message }) => {
                asked.extend(actions.into_iter().filter(|action| !asked.contains(action)).collect::<Vec<_>>());
                awaited.get_or_insert(message);
            }
            Err(Missing::Conflict { message, object }) => {
                let blocker = Blocker {
                    kind: object.kind,
                    namespace: object.namespace,
                    name: object.name,
                    reason: Reason::Conflict.to_string(),
                };
                let held = Held::Waiting { reason: Reason::Conflict, message, blocked_by: vec![blocker] };
                return Compiled::Conflict { actions: adopt::protect(snapshot, wanted), held };
            }
            Err(Missing::Refused(error)) => return Compiled::Refused { message: error.to_string() },
        }
    }
    if let Some(message) = awaited {
        return Compiled::Waiting { actions: asked, message };
    }
    sized(PackageRevisionSpec {
        package: definition.name.to_string(),
        number,
        version: wanted.version().to_owned(),
        from_version: verified.map(|verified| verified.spec.version.clone()).unwrap_or_default(),
        base: verified.map(RevisionView::number),
        rollback: wanted.rollback.clone(),
        timeout: definition.upgrade.timeout.to_string(),
        retries: definition.upgrade.retries,
        commit: commit.unwrap_or_default(),
        engine: wanted.engine,
        components,
    })
}

/// The release object of a recorded component as it would be rendered from the
/// present spec; `None` if that has no such component any more.
pub(crate) fn release_object(
    snapshot: &Snapshot,
    definition: &Definition,
    latest: &RevisionView,
    component: &RecordedComponent,
) -> Option<Manifest> {
    let defined =
        definition.components.iter().find(|c| c.name.as_str() == component.name && c.hook == component.hook)?;
    let compiler = Compiler::new(snapshot, definition, latest.spec.engine, latest.number());
    let digest = ComponentDigest::from_record(component.digest.clone());
    // Which versions a hook is told of is none of its settings.
    let to = &definition.version;
    let run = component.hook.then_some(HookRun { number: latest.number(), from: to, to, migrated_to: None });
    let rendered = compiler.render_with(component, defined, &digest, run, PathPin::Follow).ok()?;
    rendered.into_objects().pop()
}

fn sized(spec: PackageRevisionSpec) -> Compiled {
    let size_of = |value: &dyn Fn() -> serde_json::Result<String>| value().map_or(0, |text| text.len());
    let size = size_of(&|| serde_json::to_string(&spec));
    if size <= MAX_REVISION {
        return Compiled::Ready(Box::new(spec));
    }
    let sizes =
        spec.components.iter().map(|component| (size_of(&|| serde_json::to_string(component)), &component.name));
    let largest = sizes.max().map(|(size, name)| format!(", `{name}` takes {size} of them")).unwrap_or_default();
    let message = format!(
        "the revision has {size} bytes, {MAX_REVISION} are allowed{largest}: move values into a ConfigMap (valuesFrom)"
    );
    Compiled::Refused { message }
}

/// The commit that a component's chart is taken from, where it is a directory of
/// the source.
fn commit_of(defined: &Component, component: &RecordedComponent) -> Option<String> {
    let ChartSource::Path(chart) = &defined.chart else { return None };
    let pinned = component.manifests.iter().find(|manifest| Place::of(manifest).kind() == "GitRepository");
    let pinned = pinned.and_then(|repository| text(repository, &["spec", "ref", "commit"]));
    pinned.or_else(|| chart.source.as_ref().map(|source| source.revision.as_str())).map(str::to_owned)
}

/// A stored component with the sources of a freshly rendered one: what is installed
/// stays as it was recorded.
fn from_elsewhere(stored: &RecordedComponent, mut fresh: Vec<Manifest>) -> Vec<Manifest> {
    let chart_ref = fresh.pop().and_then(|release| release.get(&["spec", "chartRef"]).cloned());
    let mut kept: Vec<Manifest> = stored.manifests.iter().cloned().map(Manifest::from_record).collect();
    let release = kept.pop().map(|release| release.with_chart_ref(chart_ref));
    let others = kept.into_iter().filter(|manifest| !release::is_source_kind(manifest.kind()));
    let sources = fresh.into_iter().filter(|manifest| release::is_source_kind(manifest.kind()));
    others.chain(sources).chain(release).collect()
}

fn into_record(manifests: Vec<Manifest>) -> Vec<Map<String, Value>> {
    manifests.into_iter().map(Manifest::into_map).collect()
}

/// What is known of the components that are compiled, by their names.
struct Known<'a> {
    /// As revisions have recorded them, the newest first.
    recorded: BTreeMap<&'a str, Vec<&'a RecordedComponent>>,
    /// What the latest revision took over, and has not moved since.
    unmoved: BTreeSet<&'a str>,
    replaced: BTreeSet<String>,
    given: BTreeMap<&'a str, &'a Live>,
    wanted: &'a Wanted,
}

impl<'a> Known<'a> {
    fn of(snapshot: &'a Snapshot, wanted: &'a Wanted) -> Self {
        let latest = snapshot.revisions.last();
        let mut recorded: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for component in snapshot.revisions.iter().rev().flat_map(|revision| &revision.spec.components) {
            recorded.entry(&component.name).or_default().push(component);
        }
        let adopted = latest.into_iter().flat_map(|latest| &latest.spec.components).filter(|c| c.adopted);
        let given = adopt::given(snapshot, wanted).map(|(component, live)| (component.name.as_str(), live));
        Self {
            wanted,
            recorded,
            unmoved: adopted.map(|component| component.name.as_str()).collect(),
            replaced: wanted.replacements(snapshot).into_iter().map(|replacement| replacement.component).collect(),
            given: given.collect(),
        }
    }

    /// A component whose digest is known keeps its stored manifests verbatim: a
    /// newer Windlass, or a new commit, moves nothing by itself.
    fn stored(&self, outline: &RecordedComponent) -> Option<&'a RecordedComponent> {
        // What was taken over and has moved since is ours altogether.
        let unmoved = self.unmoved.contains(outline.name.as_str());
        let is_it = |known: &&&RecordedComponent| {
            known.digest == outline.digest && !known.hook && !known.manifests.is_empty() && (unmoved || !known.adopted)
        };
        self.recorded.get(outline.name.as_str())?.iter().find(is_it).copied()
    }
}

struct Compiler<'a> {
    snapshot: &'a Snapshot,
    definition: &'a Definition,
    account: Option<&'a ObjectName>,
    engine: Engine,
    history: History<'a>,
    verified: Option<&'a RevisionView>,
    number: u64,
}

impl<'a> Compiler<'a> {
    fn new(snapshot: &'a Snapshot, definition: &'a Definition, engine: Engine, number: u64) -> Self {
        let history = History::new(&snapshot.revisions);
        let account = snapshot.account();
        Self { snapshot, definition, account, engine, history, verified: history.verified(), number }
    }
}

impl Compiler<'_> {
    fn component(
        &self,
        outline: &RecordedComponent,
        key: &ObjectKey,
        defined: &Component,
        known: &Known<'_>,
    ) -> Result<RecordedComponent, Missing> {
        let mut component = outline.clone();
        component.replaces = known.replaced.contains(&component.name);
        match (known.stored(outline), defined.hook) {
            (Some(stored), false) => {
                (component.manifests, component.adopted) = (stored.manifests.clone(), stored.adopted);
                if known.wanted.has_other_origin(stored) {
                    component.manifests = into_record(from_elsewhere(stored, self.render(outline, defined)?));
                }
            }
            (_, true) if !self.is_upgrade_of_version() => {}
            (_, true) => component.manifests = into_record(self.render(outline, defined)?),
            (None, false) => {
                let mut manifests = self.render(outline, defined)?;
                let given = known.given.get(outline.name.as_str()).copied();
                component.adopted = self.place(outline, key, given, &mut manifests)?;
                component.manifests = into_record(manifests);
            }
        }
        Ok(component)
    }

    /// Gives the release's object the place where it stands, and that of Helm's
    /// records; whether it takes over what is there.
    fn place(
        &self,
        outline: &RecordedComponent,
        key: &ObjectKey,
        given: Option<&Live>,
        manifests: &mut Vec<Manifest>,
    ) -> Result<bool, Missing> {
        let Some(release) = manifests.pop() else { return Ok(false) };
        let release = release.placed(&key.name, &outline.release.storage_namespace);
        let (release, adopted) = match given {
            None => (release, false),
            Some(live) => match adopt::objection(self.snapshot, outline, &release, live) {
                Some(message) => return Err(Missing::Conflict { message, object: live.key().clone() }),
                None => (adopt::adopted_form(release, live), true),
            },
        };
        manifests.push(release);
        Ok(adopted)
    }

    fn is_upgrade_of_version(&self) -> bool {
        self.verified.is_some_and(|verified| verified.spec.version != self.definition.version.to_string())
    }

    fn render(&self, outline: &RecordedComponent, defined: &Component) -> Result<Vec<Manifest>, Missing> {
        let digest = ComponentDigest::from_record(outline.digest.clone());
        let versions = self.hook_versions(defined);
        let hook = versions.as_ref().map(|(from, migrated_to)| HookRun {
            number: self.number,
            from,
            to: &self.definition.version,
            migrated_to: migrated_to.as_ref(),
        });
        let rendered = match (self.engine, &defined.chart) {
            (Engine::Argo, _) | (Engine::Flux, ChartSource::Repository(_)) => {
                self.render_with(outline, defined, &digest, hook, PathPin::Follow)?
            }
            (Engine::Flux, ChartSource::Path(chart)) => {
                let follower = self.follower(outline, defined, &digest)?;
                let (origin, commit) = self.pinned(chart, &follower)?;
                let pin = PathPin::Commit { origin: &origin, commit: &commit };
                self.render_with(outline, defined, &digest, hook, pin)?
            }
        };
        Ok(rendered.into_objects())
    }

    fn render_with(
        &self,
        outline: &RecordedComponent,
        defined: &Component,
        digest: &ComponentDigest,
        hook: Option<HookRun<'_>>,
        path_pin: PathPin<'_>,
    ) -> Result<Rendered, RenderError> {
        let destination = Destination::in_cluster();
        let target = match self.engine {
            Engine::Argo => {
                Target::Argo(ArgoTarget { project: &self.snapshot.cluster.argo_project, destination: &destination })
            }
            Engine::Flux => Target::Flux(FluxTarget { path_pin, depends_on: &[] }),
        };
        render(defined, &self.context(outline, digest, hook, target, defined.hook))
    }

    fn follower(
        &self,
        outline: &RecordedComponent,
        defined: &Component,
        digest: &ComponentDigest,
    ) -> Result<Vec<Manifest>, RenderError> {
        let target = Target::Flux(FluxTarget { path_pin: PathPin::Follow, depends_on: &[] });
        preparation(defined, &self.context(outline, digest, None, target, false))
    }

    fn context<'c>(
        &'c self,
        outline: &RecordedComponent,
        digest: &'c ComponentDigest,
        hook: Option<HookRun<'c>>,
        target: Target<'c>,
        is_hook: bool,
    ) -> RenderContext<'c> {
        RenderContext {
            package: self.definition,
            account: self.account,
            wave: outline.wave,
            digest,
            hook,
            owner: Owner::Controller,
            guard: self.guard(outline),
            annotations: self.annotations(is_hook),
            target,
        }
    }

    /// Where the policies act, what the chart states of its strategy, a surge
    /// above all, is left to it. What Argo CD keeps is kept either way.
    fn guard(&self, outline: &RecordedComponent) -> CanaryGuard {
        let mode = outline.canary.as_ref().map(|canary| Settings::from(canary).mode);
        let acts = |policies: &Policies| mode.is_some_and(|mode| policies.acts(mode));
        let admission = self.snapshot.policies.get(&outline.release.namespace).is_some_and(acts);
        match self.engine {
            Engine::Flux if admission => CanaryGuard::Admission,
            Engine::Flux | Engine::Argo => CanaryGuard::Rendered,
        }
    }

    fn hook_versions(&self, defined: &Component) -> Option<(Version, Option<Version>)> {
        let from = self.verified.filter(|_| defined.hook)?;
        let migrated_to = self.history.migrated_to().and_then(|version| Version::parse(version).ok());
        Some((Version::parse(&from.spec.version).ok()?, migrated_to))
    }

    /// Shows the children under the Package's own Application in Argo CD's tree,
    /// and keeps that Application from comparing, pruning or deleting them.
    fn annotations(&self, hook: bool) -> BTreeMap<&'static str, String> {
        let mut annotations = BTreeMap::new();
        if hook {
            annotations.insert(ANNOTATION_HOOK, self.number.to_string());
        }
        let tracking = self.snapshot.package.annotations.get(ARGO_TRACKING_ID);
        if let Some((application, _)) = tracking.and_then(|id| id.split_once(':')) {
            annotations.insert(ARGO_TRACKING_ID, application.to_owned());
            annotations.insert(ARGO_COMPARE_OPTIONS, "IgnoreExtraneous".to_owned());
            annotations.insert(ARGO_SYNC_OPTIONS, "Prune=false,Delete=false".to_owned());
        }
        annotations
    }

    /// The commit in which the chart has the wanted version: a chart of ours
    /// follows the source until its artifact shows it.
    fn pinned(&self, chart: &PathChart, follower: &[Manifest]) -> Result<(GitOrigin, Commit), Missing> {
        let wanted = chart.chart_version.as_ref().map(Version::as_written).unwrap_or_default();
        let key = follower.last().map(Manifest::key);
        let live = self.snapshot.sources.iter().find(|source| Some(source.key()) == key.as_ref());
        let artifact = live.and_then(artifact_of).filter(|(version, _)| version == wanted);
        let commit = artifact.and_then(|(_, revision)| Commit::parse(&revision));
        let source = self.definition.source.as_ref().and_then(|source| self.git_repository(&source.name));
        match (commit, source) {
            (Some(commit), Some(origin)) => Ok((origin, commit)),
            _ => {
                let found = live.and_then(|live| text(&live.object, &["status", "artifact", "revision"]));
                let found = match found {
                    None => "nothing yet",
                    Some(found) if found == wanted => "none in its newest commit",
                    Some(found) => found,
                };
                let message = format!("chart {} is wanted at {wanted}, the source shows {found}", chart.path.as_str());
                let actions = follower.iter().filter(|_| live.is_none()).cloned();
                let apply =
                    |object: Manifest| Action::Apply { object: object.into_map(), precondition: Precondition::Any };
                Err(Missing::Waiting { actions: actions.map(apply).collect(), message })
            }
        }
    }

    fn git_repository(&self, name: &str) -> Option<GitOrigin> {
        match self.snapshot.objects.get(&git_repository_key(self.snapshot, name))? {
            Lookup::Found(object) => GitOrigin::from_spec(object.get("spec")?.as_object()?),
            Lookup::Absent | Lookup::KindUnknown | Lookup::Denied | Lookup::NotImpersonated | Lookup::Pending => None,
        }
    }
}

/// Where the Package's `sourceRef` stands.
pub(crate) fn git_repository_key(snapshot: &Snapshot, name: &str) -> ObjectKey {
    ObjectKey {
        api_version: "source.toolkit.fluxcd.io/v1".into(),
        kind: "GitRepository".into(),
        namespace: snapshot.package.namespace.clone(),
        name: name.to_owned(),
    }
}

/// Chart version and source revision of a HelmChart that is up to date
/// (`status.artifact.revision`, `status.observedSourceArtifactRevision`). While it is not
/// ready, the revision may be one in which there is no such chart: it is recorded before
/// the chart is looked for, and the artifact is the one before.
fn artifact_of(live: &Live) -> Option<(String, String)> {
    let status = live.object.get("status")?;
    let generation = live.object.get("metadata")?.get("generation")?;
    (status.get("observedGeneration")? == generation).then_some(())?;
    conditions::find(&live.object, "Ready").filter(Condition::is_true)?;
    let version = status.get("artifact")?.get("revision")?.as_str()?;
    let revision = status.get("observedSourceArtifactRevision")?.as_str()?;
    Some((version.to_owned(), revision.to_owned()))
}
