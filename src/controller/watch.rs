//! The watches: one task per kind, each with its own pauses, so that one that
//! fails does not silence the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PartialObjectMeta;
use kube::client::Client;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cached::Cached;
use super::cluster::{RequestError, bounded};
use super::interruption::Interruption;
use super::kinds::Kind;
use super::lookups::refusal;
use super::queue::Queue;
use super::settings::Settings;
use super::store::{Store, Taken};
use super::view::{View, package_key};
use crate::api::Engine;
use crate::api::wellknown::{ANNOTATION_ARGO_PROJECT, FIELD_MANAGER, LABEL_MANAGED_BY};
use crate::package::version::Version;

/// Objects per page of a list: more would leave garbage in the heap.
const PAGE: u32 = 100;
/// The same of revisions, of which each may have a megabyte.
const PAGE_OF_REVISIONS: u32 = 10;

/// From when on an interruption of a watch is a gap in what was seen.
const GAP: Duration = Duration::from_secs(10);

/// Whom a change of an object concerns.
struct Concerned {
    namespace: String,
    name: String,
    package: Option<String>,
}

impl Concerned {
    fn of(object: &Cached) -> Self {
        let key = object.key();
        let package = object.package().map(str::to_owned);
        Self { namespace: key.namespace.clone(), name: key.name.clone(), package }
    }
}

const ASK_FOR_VERSION: Duration = Duration::from_secs(300);

/// Version of Kubernetes, without what its builders add.
///
/// # Errors
/// When the API server does not say.
pub async fn kubernetes_version(client: Client) -> Result<Option<Version>, RequestError> {
    let version = bounded(client.apiserver_version()).await?;
    Ok(Version::parse(version.git_version.split(['+', '-']).next().unwrap_or_default()).ok())
}

/// What all watches need.
#[derive(Clone)]
pub struct Watches {
    /// As ourselves.
    pub client: Client,
    /// Where objects are kept.
    pub view: Arc<View>,
    /// Whom to wake.
    pub queue: Arc<Queue>,
    /// Which namespace.
    pub settings: Settings,
}

impl Watches {
    /// Follows the objects of a kind until the process ends.
    pub async fn follow(self, kind: Kind) {
        let resource = kind.resource();
        let objects: Api<Cached> = match &self.settings.watch_namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let page = if kind == Kind::PackageRevision { PAGE_OF_REVISIONS } else { PAGE };
        let mut config = Config::default().page_size(page);
        if kind.is_labelled() {
            config = config.labels(&format!("{LABEL_MANAGED_BY}={FIELD_MANAGER}"));
        }
        let store = self.view.store(kind);
        let mut events = std::pin::pin!(watcher(objects, config).default_backoff());
        let mut interrupted: Option<Instant> = None;
        let mut interruption = Interruption::of_kind(kind);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if matches!(event, Event::InitDone) {
                        interruption.over();
                    }
                    if interrupted.take().is_some_and(|since| since.elapsed() >= GAP) {
                        // What happened meanwhile was not seen: no turn has used that time.
                        self.view.watching_anew();
                    }
                    self.take(kind, &store, event);
                }
                Err(error) => {
                    interrupted.get_or_insert_with(Instant::now);
                    interruption.tell(&error);
                }
            }
        }
    }

    fn take(&self, kind: Kind, store: &Store, event: Event<Cached>) {
        match event {
            Event::Init => store.begin_list(),
            Event::InitApply(object) | Event::Apply(object) => {
                self.note(kind, &object);
                if object.is_cut() {
                    tracing::warn!(object = %object.key(), "nested too deeply to be read as a whole");
                }
                let concerned = Concerned::of(&object);
                // Whoever is woken must see it: first it is kept.
                match store.put(object) {
                    Taken::Yes => self.wake(kind, &concerned),
                    Taken::No => tracing::trace!(kind = kind.as_str(), "nothing new"),
                }
            }
            Event::InitDone => store.end_list().iter().for_each(|gone| self.wake(kind, &Concerned::of(gone))),
            Event::Delete(object) => {
                store.remove_seen(&object);
                self.wake(kind, &Concerned::of(&object));
            }
        }
    }

    fn note(&self, kind: Kind, object: &Cached) {
        if kind == Kind::Package {
            let object_value = object.object();
            let generation = object_value.get("metadata").and_then(|metadata| metadata.get("generation"));
            self.view.note_spec(&package_key(object), generation.and_then(serde_json::Value::as_i64).unwrap_or(0));
        }
    }

    fn wake(&self, kind: Kind, concerned: &Concerned) {
        let Concerned { namespace, name, package } = concerned;
        match (kind, package) {
            (Kind::Package, _) => self.queue.wake((namespace.clone(), name.clone())),
            (_, Some(package)) => self.queue.wake((namespace.clone(), package.clone())),
            // A source is shared: whoever waits for one looks again.
            (_, None) => self.wake_namespace(namespace),
        }
    }

    fn wake_namespace(&self, namespace: &str) {
        let packages = self.view.store(Kind::Package).of_namespace(namespace);
        packages.iter().for_each(|package| self.queue.wake(package_key(package)));
    }

    pub(super) fn wake_all(&self) {
        self.view.store(Kind::Package).all().iter().for_each(|package| self.queue.wake(package_key(package)));
    }

    /// Follows which kinds the cluster has, and starts the watches of those
    /// that appear.
    pub async fn follow_definitions(self) {
        let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(self.client.clone());
        let mut events = std::pin::pin!(watcher(definitions, Config::default().page_size(PAGE)).default_backoff());
        let mut started: BTreeSet<Kind> = BTreeSet::new();
        let mut present: BTreeSet<String> = BTreeSet::new();
        let mut tasks = JoinSet::new();
        let mut listed = false;
        let mut interruption = Interruption::of(
            "customresourcedefinitions.apiextensions.k8s.io",
            "they tell which engines are installed, and nothing begins before that is known",
        );
        loop {
            // A watch of a kind never ends by itself: without it this process is blind.
            let event = tokio::select! {
                event = events.next() => event,
                Some(_) = tasks.join_next() => return,
            };
            let Some(event) = event else { return };
            match event {
                Ok(Event::Init) => (present, listed) = (BTreeSet::new(), false),
                Ok(Event::InitApply(definition) | Event::Apply(definition)) => {
                    self.note_definition(&definition);
                    present.insert(definition.name_any());
                }
                Ok(Event::InitDone) => {
                    interruption.over();
                    listed = true;
                }
                Ok(Event::Delete(definition)) => {
                    present.remove(&definition.name_any());
                }
                Err(error) => {
                    interruption.tell(&error);
                    continue;
                }
            }
            for kind in Kind::ALL.into_iter().filter(|kind| kind.engine().is_some()) {
                if present.contains(&kind.definition()) && started.insert(kind) {
                    tasks.spawn(self.clone().follow(kind));
                }
            }
            // Half a list would tell of engines that go.
            if listed {
                self.note_engines(&present);
            }
        }
    }

    fn note_definition(&self, definition: &PartialObjectMeta<CustomResourceDefinition>) {
        if definition.name_any() == Kind::Package.definition() {
            let terminating = definition.metadata.deletion_timestamp.is_some();
            if self.view.change_facts(|facts| facts.crd_terminating = terminating) {
                self.wake_all();
            }
        }
    }

    fn note_engines(&self, present: &BTreeSet<String>) {
        let release = |engine| match engine {
            Engine::Flux => Kind::HelmRelease,
            Engine::Argo => Kind::Application,
        };
        let installed =
            [Engine::Flux, Engine::Argo].into_iter().filter(|e| present.contains(&release(*e).definition()));
        let installed: BTreeSet<Engine> = installed.collect();
        if self.view.change_facts(|facts| (facts.engines, facts.discovered) = (installed, true)) {
            self.wake_all();
        }
    }

    /// Asks now and then which version the cluster has: nobody tells when it is
    /// upgraded.
    pub async fn follow_version(self) {
        loop {
            tokio::time::sleep(ASK_FOR_VERSION).await;
            match kubernetes_version(self.client.clone()).await {
                Ok(version) => {
                    if self.view.change_facts(|facts| facts.kubernetes = version) {
                        self.wake_all();
                    }
                }
                Err(error) => tracing::debug!(%error, "the version of the cluster is not known"),
            }
        }
    }

    /// Follows namespaces: which are going, and which Argo CD project they ask for.
    pub async fn follow_namespaces(self) {
        let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(self.client.clone());
        let mut events = std::pin::pin!(watcher(namespaces, Config::default().page_size(PAGE)).default_backoff());
        let mut interruption = Interruption::of(
            "namespaces",
            "it is only needed to see which namespaces are being deleted, their pod-security labels, and their Argo CD \
             project: without it all of them count as there to stay",
        );
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::InitApply(namespace) | Event::Apply(namespace)) => self.note_namespace(&namespace, false),
                Ok(Event::Delete(namespace)) => self.note_namespace(&namespace, true),
                Ok(Event::Init) => {}
                Ok(Event::InitDone) => {
                    interruption.over();
                    self.namespaces_are_read();
                }
                Err(error) => {
                    interruption.tell(&error);
                    if matches!(refusal(&error), Some(401 | 403)) {
                        self.namespaces_are_read();
                    }
                }
            }
        }
    }

    fn namespaces_are_read(&self) {
        self.view.change_facts(|facts| facts.namespaces_read = true);
    }

    fn note_namespace(&self, namespace: &PartialObjectMeta<Namespace>, gone: bool) {
        let name = namespace.name_any();
        let terminating = !gone && namespace.metadata.deletion_timestamp.is_some();
        let labels = namespace.metadata.labels.clone().unwrap_or_default();
        if self.view.note_labels(&name, Some(labels).filter(|_| !gone)) {
            self.wake_all();
        }
        let project = namespace.annotations().get(ANNOTATION_ARGO_PROJECT).filter(|_| !gone).cloned();
        let changed = self.view.change_facts(|facts| {
            if terminating {
                facts.terminating.insert(name.clone());
            } else {
                facts.terminating.remove(&name);
            }
            match project {
                Some(project) => facts.projects.insert(name.clone(), project),
                None => facts.projects.remove(&name),
            };
        });
        if changed {
            self.wake_namespace(&name);
        }
    }
}
