//! A DaemonSet behind a canary on nodes of its own, a guard of its own, and a controller that
//! runs with exactly its role. What happened is read from watches of the API server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use windlass::api::Engine;

use crate::rights::{SYSTEM, apply_file, kubeconfig_of};
use crate::story::Story;
use crate::support::bench::Bench;
use crate::support::cluster::{documents, to_json};
use crate::support::nodes::Pool;
use crate::support::processes::{Process, Program};
use crate::support::recorder::Recorder;
use crate::support::tools::repository;
use crate::support::wait::until;

const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const DAEMON_SET: (&str, &str) = ("apps/v1", "DaemonSet");
pub const SOON: Duration = Duration::from_secs(60);

/// Which policies are installed for the namespace of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    Strict,
    Compat,
    Absent,
}

impl Guard {
    fn kind(self) -> Option<&'static str> {
        match self {
            Self::Strict => Some("strict"),
            Self::Compat => Some("compat"),
            Self::Absent => None,
        }
    }

    fn allows(self) -> &'static str {
        match self {
            Self::Strict => "AdmissionStrict: no pod goes before Windlass deletes the first",
            Self::Compat => "AdmissionCompat: a new template arrives with a budget of 1",
            Self::Absent => "Rendered: the release's own writes arrive with a budget of 1",
        }
    }
}

/// What a version of the Package asks for.
#[derive(Clone, Debug)]
pub struct Wish {
    pub version: &'static str,
    pub canary: Value,
    /// Annotations of the pods: what becomes of them.
    pub pods: Value,
    pub strategy: Value,
    pub rollback: Value,
    pub timeout: &'static str,
}

impl Wish {
    /// A chart that states 50 %, and a soak of three seconds.
    pub fn new(version: &'static str) -> Self {
        Self {
            version,
            canary: json!({"soak": "3s", "timeout": "60s", "progressDeadline": "60s"}),
            pods: json!({}),
            strategy: json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}),
            rollback: json!({}),
            timeout: "60s",
        }
    }

    pub fn canary(mut self, more: Value) -> Self {
        for (key, value) in more.as_object().into_iter().flatten() {
            self.canary[key] = value.clone();
        }
        self
    }

    pub fn pods(mut self, behaviour: &str, more: &[(&str, &str)]) -> Self {
        let mut pods = json!({"bench.windlass.dev/behaviour": behaviour});
        for (key, value) in more {
            pods[format!("bench.windlass.dev/{key}")] = (*value).into();
        }
        self.pods = pods;
        self
    }

    pub fn strategy(mut self, strategy: Value) -> Self {
        self.strategy = strategy;
        self
    }

    pub fn safe(mut self) -> Self {
        self.rollback = json!({"safe": true});
        self
    }
}

pub struct Agents<'a> {
    pub bench: &'a Bench,
    /// Of the namespace, the Package, the pool of nodes.
    pub name: String,
    pub recorder: Recorder,
    pub nodes: Pool,
    packages: Api<DynamicObject>,
    kubeconfig: PathBuf,
    controller: Process,
    /// Of the controller's metrics.
    pub port: u16,
    engine: Engine,
    _helm_controller: Option<Process>,
    _directory: tempfile::TempDir,
}

impl<'a> Agents<'a> {
    pub async fn set(bench: &'a Bench, prefix: &str, guard: Guard, nodes: usize) -> Self {
        Self::set_on(Engine::Flux, bench, prefix, guard, nodes).await
    }

    pub async fn set_on(engine: Engine, bench: &'a Bench, prefix: &str, guard: Guard, nodes: usize) -> Self {
        tokio::join!(bench.own_crds(), bench.charts());
        match engine {
            Engine::Flux => drop(bench.flux().await),
            Engine::Argo => drop(bench.argocd().await),
        }
        let cluster = bench.cluster().await;
        let name = cluster.namespace(prefix).await;
        for file in ["controller/namespace.yaml", "controller/rbac.yaml"] {
            apply_file(bench, "", file).await;
        }
        apply_file(bench, &name, "tenant/canary.yaml").await;
        install(bench, &name, guard).await;
        eprintln!("{name}: guard {}", guard.allows());
        let nodes = bench.nodes().await.add_pool(&name, nodes).await;
        let kinds = [DAEMON_SET, ("v1", "Pod"), PACKAGE, (PACKAGE.0, "PackageRevision"), ("v1", "Node")];
        let recorder = Recorder::start(cluster, &name, &kinds).await;
        let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &name).await;
        let directory = tempfile::tempdir().expect("a directory");
        let kubeconfig = kubeconfig_of(bench, directory.path().join("kubeconfig"), SYSTEM, "windlass").await;
        let selector = format!("--watch-label-selector=windlass.dev/package={name}");
        let helm_controller = match engine {
            Engine::Flux => Some(bench.helm_controller(&[&selector]).await),
            Engine::Argo => None,
        };
        let (port, controller) = controller(bench, &kubeconfig, &name).await;
        Self {
            bench,
            name,
            recorder,
            nodes,
            packages,
            kubeconfig,
            controller,
            port,
            engine,
            _helm_controller: helm_controller,
            _directory: directory,
        }
    }

    /// Kills the controller without notice, and starts another.
    pub async fn another_controller(self) -> Self {
        self.controller.kill().await;
        let (port, controller) = controller(self.bench, &self.kubeconfig, &self.name).await;
        Self { controller, port, ..self }
    }

    /// Process id of the controller.
    pub async fn pid(&self) -> u32 {
        self.controller.pid().await
    }

    pub async fn remove_guard(&self) {
        let cluster = self.bench.cluster().await;
        for kind in ["MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"] {
            let api = cluster.dynamic("admissionregistration.k8s.io/v1", kind, "").await;
            for guard in ["strict", "compat"] {
                let name = policy_name(guard, &self.name);
                if api.get_opt(&name).await.expect("an answer").is_some() {
                    cluster.delete(&api, &name, SOON).await;
                }
            }
        }
        eprintln!("{}: guard removed", self.name);
    }

    pub async fn wants(&self, wish: &Wish) {
        let repository = &self.bench.charts().await.url;
        let package = json!({
            "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": self.name},
            "spec": {
                "version": wish.version, "engine": self.engine, "rollback": wish.rollback,
                "upgrade": {"timeout": wish.timeout},
                "components": [{
                    "name": "agent",
                    "chart": {"repository": repository, "name": "agent", "version": wish.version},
                    "values": {"pool": self.name, "podAnnotations": wish.pods, "updateStrategy": wish.strategy},
                    "canary": wish.canary,
                }],
            },
        });
        self.bench.cluster().await.apply(&self.name, package).await;
    }

    /// Waits until a version runs.
    pub async fn runs(&self, version: &str, within: Duration) {
        self.sees(&format!("{version} runs"), within, |package| {
            let status = &package["status"];
            let ready = status["conditions"][0]["status"] == "True" && status["conditions"][0]["reason"] == "Ready";
            ready && status["version"] == version
        })
        .await;
    }

    /// Waits until the Package says `reason` of its present spec; gives the message.
    pub async fn says(&self, reason: &str, within: Duration) -> String {
        let package = self.sees(reason, within, |p| p["status"]["conditions"][0]["reason"] == reason).await;
        package["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the rollout of the only DaemonSet is in a phase, for a reason.
    pub async fn is_in(&self, phase: &str, reason: Option<&str>, within: Duration) -> Value {
        let package = self
            .sees(&format!("{phase} {reason:?}"), within, |package| {
                let rollout = &package["status"]["rollouts"][0];
                rollout["phase"] == phase && reason.is_none_or(|reason| rollout["reason"] == reason)
            })
            .await;
        package["status"]["rollouts"][0].clone()
    }

    pub async fn sees(&self, what: &str, within: Duration, holds: impl Fn(&Value) -> bool) -> Value {
        until(&self.packages, &self.name, within, what, |package| {
            let package = to_json(package.ok_or("no such Package")?);
            let of_this = package["status"]["observedGeneration"] == package["metadata"]["generation"];
            if of_this && holds(&package) {
                return Ok(package);
            }
            Err(format!("{} {}", package["status"]["summary"], package["status"]["rollouts"]))
        })
        .await
    }

    /// Waits until the pods on some nodes run a version, and are ready.
    pub async fn pods(&self, nodes: &[&String], version: &str) {
        let what = format!("{version} on {nodes:?}");
        self.recorder
            .until(SOON, &what, |log| {
                let story = Story { log: log.to_vec() };
                let runs = story.ready_on();
                let lacks = nodes.iter().find(|node| runs.get(**node).is_none_or(|found| found != version));
                lacks.map_or(Ok(()), |node| Err(format!("{node} runs {:?}", runs.get(*node))))
            })
            .await;
    }

    /// Deletes the Package and lets its release stay; waits until it is gone.
    pub async fn is_orphaned(&self, within: Duration) {
        let policy = json!({"spec": {"deletionPolicy": "Orphan"}});
        self.packages.patch(&self.name, &PatchParams::default(), &Patch::Merge(policy)).await.expect("a patch");
        self.bench.cluster().await.delete(&self.packages, &self.name, within).await;
    }

    pub async fn daemon_sets(&self) -> Api<DynamicObject> {
        self.bench.cluster().await.dynamic(DAEMON_SET.0, DAEMON_SET.1, &self.name).await
    }

    /// Patches the DaemonSet as an administrator does.
    pub async fn patch(&self, patch: Value) {
        let api = self.daemon_sets().await;
        api.patch("agent", &PatchParams::default(), &Patch::Merge(patch)).await.expect("a patch");
    }

    pub async fn daemon_set(&self) -> Value {
        to_json(&self.daemon_sets().await.get("agent").await.expect("a DaemonSet"))
    }

    /// What happened so far, with what was allowed checked.
    pub async fn story(&self, dead: usize) -> Story {
        let mut log = self.recorder.complete().await;
        log.retain(|entry| entry.kind != "Node" || self.nodes.contains(&entry.name));
        let story = Story { log };
        story.is_within_the_budget(dead);
        story
    }
}

async fn controller(bench: &Bench, kubeconfig: &Path, namespace: &str) -> (u16, Process) {
    let program = || {
        Program::new(&format!("controller-{namespace}"), PathBuf::from(env!("CARGO_BIN_EXE_windlass")))
            .env_path("KUBECONFIG", kubeconfig)
    };
    bench.controller_on_port(program, namespace, &["--lease-namespace="]).await
}

fn policy_name(kind: &str, namespace: &str) -> String {
    format!("windlass-canary-{kind}-{namespace}")
}

/// The guard as it is shipped, for one namespace.
pub async fn install(bench: &Bench, namespace: &str, guard: Guard) {
    let Some(kind) = guard.kind() else { return };
    let path = repository().join(format!("manifests/canary/{kind}.yaml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for mut object in documents(&text) {
        object["metadata"]["name"] = policy_name(kind, namespace).into();
        if object["kind"] == "MutatingAdmissionPolicyBinding" {
            object["spec"]["policyName"] = policy_name(kind, namespace).into();
            let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
            object["spec"]["matchResources"] = json!({"namespaceSelector": selector});
        }
        bench.cluster().await.apply("", object).await;
    }
}
