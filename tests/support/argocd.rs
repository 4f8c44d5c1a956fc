//! Argo CD: redis, repo-server, application-controller, and cmp-server with our binary as
//! the plugin.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::cluster::{Cluster, documents, to_json};
use super::control_plane::ControlPlane;
use super::http;
use super::ports;
use super::processes::{Process, Processes, Program};
use super::tools::{Tools, repository};
use super::wait;

/// Where Argo CD itself lives.
pub const NAMESPACE: &str = "argocd";

/// Where the plugin's configuration expects the binary in a container.
const INSTALLED: &str = "/usr/local/bin/windlass";

/// The plugin that cmp-server offers.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// A `ConfigManagementPlugin` whose commands are [`INSTALLED`].
    pub configuration: PathBuf,
    /// Takes their place.
    pub binary: PathBuf,
}

/// Its apiVersion and kind.
pub const APPLICATION: (&str, &str) = ("argoproj.io/v1alpha1", "Application");

/// A running Argo CD without API server and user interface.
pub struct ArgoCd {
    cluster: Cluster,
    /// What syncs Applications.
    pub application_controller: Process,
    _programs: Vec<Process>,
}

struct Installation<'a> {
    tools: &'a Tools,
    processes: &'a Processes,
    kubeconfig: &'a Path,
    directory: PathBuf,
}

impl ArgoCd {
    pub async fn start(
        tools: &Tools,
        processes: &Processes,
        control_plane: &ControlPlane,
        cluster: &Cluster,
        plugin: Option<&Plugin>,
    ) -> Self {
        let installation = Installation {
            tools,
            processes,
            kubeconfig: &control_plane.kubeconfig,
            directory: processes.directory("argocd"),
        };
        installation.write_files();
        cluster.apply_crds(&tools.path("crds").join("argocd")).await;
        cluster.named_namespace(NAMESPACE).await;
        for object in configuration() {
            cluster.apply(NAMESPACE, object).await;
        }
        let redis = installation.redis();
        let plugin = async {
            match plugin {
                Some(plugin) => Some(installation.cmp_server(plugin).await),
                None => None,
            }
        };
        // The repo-server looks for the plugin's socket when it is asked.
        let ((redis, redis_process), cmp_server) = tokio::join!(redis, plugin);
        let (repo_server, repo_process) = installation.repo_server(&redis).await;
        let application_controller = installation.application_controller(&redis, &repo_server).await;
        let mut programs = vec![redis_process, repo_process];
        programs.extend(cmp_server);
        Self { cluster: cluster.clone(), application_controller, _programs: programs }
    }

    /// Merges entries into `argocd-cm`.
    pub async fn configure(&self, data: Value) {
        let api: Api<ConfigMap> = self.cluster.api(NAMESPACE);
        let patch = json!({"data": data});
        api.patch("argocd-cm", &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap_or_else(|error| panic!("argocd-cm: {error}"));
    }

    /// Applies an Application that syncs by itself from a directory of a repository.
    pub async fn application(&self, name: &str, source: Value, namespace: &str) {
        let application = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name},
            "spec": {
                "project": "default",
                "source": source,
                "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
                "syncPolicy": {
                    "automated": {"prune": true, "selfHeal": true}, "syncOptions": ["ServerSideApply=true"],
                },
            },
        });
        self.cluster.apply(NAMESPACE, application).await;
    }

    /// The Applications beside Argo CD.
    pub async fn applications(&self) -> Api<DynamicObject> {
        self.cluster.dynamic(APPLICATION.0, APPLICATION.1, NAMESPACE).await
    }

    /// Asks for a comparison that reads the repository anew.
    pub async fn refresh(&self, name: &str) {
        self.cluster.annotate(&self.applications().await, name, "argocd.argoproj.io/refresh", "hard").await;
    }

    /// Waits until an Application is Synced and Healthy at a revision.
    pub async fn synced(&self, name: &str, revision: &str, deadline: Duration) {
        self.synced_with_health(name, revision, "Healthy", deadline).await;
    }

    /// Waits until an Application is Synced at a revision with that health.
    pub async fn synced_with_health(&self, name: &str, revision: &str, health: &str, deadline: Duration) {
        let api = self.applications().await;
        let what = format!("Synced and {health} at {revision}");
        wait::until(&api, name, deadline, &what, |application| {
            let application = to_json(application.ok_or("no such Application")?);
            let status = &application["status"];
            let is = (
                status["sync"]["status"].as_str().unwrap_or_default(),
                status["health"]["status"].as_str().unwrap_or_default(),
                status["sync"]["revision"].as_str().unwrap_or_default(),
            );
            if is == ("Synced", health, revision) {
                return Ok(());
            }
            Err(format!("{is:?}, conditions {}, {}", status["conditions"], status["operationState"]["message"]))
        })
        .await;
    }

    /// Waits until an Application cannot be compared, and gives what is said of it.
    pub async fn comparison_error(&self, name: &str, part: &str, deadline: Duration) -> String {
        let api = self.applications().await;
        let what = format!("ComparisonError with {part:?}");
        wait::until(&api, name, deadline, &what, |application| {
            let application = to_json(application.ok_or("no such Application")?);
            let conditions = application["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let errors = conditions.iter().filter(|condition| condition["type"] == "ComparisonError");
            let mut messages = errors.filter_map(|condition| condition["message"].as_str());
            let found = messages.find(|message| message.contains(part));
            found.map(str::to_owned).ok_or_else(|| format!("{conditions:?}"))
        })
        .await
    }
}

impl Installation<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn write_files(&self) {
        for name in ["plugins", "plugin-config", "cmp", "tls", "ssh", "bin"] {
            self.processes.directory(&format!("argocd/{name}"));
        }
        http::write_below(&self.directory, "ssh/ssh_known_hosts", "");
        // Signatures are not checked here; the repo-server asks for the program all the same.
        let wrapper = self.path("bin/git-verify-wrapper.sh");
        std::fs::write(&wrapper, "#!/bin/sh\nexit 0\n").expect("a file of the bench");
        std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).expect("its mode");
        let helm = self.path("bin/helm");
        // There already if an attempt before this one has failed.
        if !helm.exists() {
            symlink(self.tools.path("helm"), helm).expect("a link");
        }
    }

    fn program(&self, role: &str) -> Program {
        let path = std::env::var("PATH").unwrap_or_default();
        Program::new(role, self.tools.path("argocd"))
            .env("ARGOCD_BINARY_NAME", role)
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env_path("KUBECONFIG", self.kubeconfig)
            .env_path("ARGOCD_TLS_DATA_PATH", &self.path("tls"))
            .env_path("ARGOCD_SSH_DATA_PATH", &self.path("ssh"))
            .env_path("ARGOCD_PLUGINSOCKFILEPATH", &self.path("plugins"))
            .env("ARGOCD_GPG_ENABLED", "false")
            .env_path("TMPDIR", &self.processes.directory(&format!("tmp/{role}")))
    }

    async fn redis(&self) -> (String, Process) {
        let program = |[port]: [u16; 1]| {
            Program::new("redis", self.tools.path("redis-server"))
                .arguments(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
                .arguments(["--port".to_owned(), port.to_string()])
                .arguments(["--dir".to_owned(), self.directory.display().to_string()])
        };
        let ready = async |[port]: [u16; 1]| ports::connect(port).await;
        let ([port], process) = self.processes.start(program, ready).await;
        (format!("127.0.0.1:{port}"), process)
    }

    async fn cmp_server(&self, plugin: &Plugin) -> Process {
        let configuration = self.path("plugin-config");
        let text = read(&plugin.configuration);
        assert!(text.contains(INSTALLED), "{} does not run {INSTALLED}", plugin.configuration.display());
        let text = text.replace(INSTALLED, &plugin.binary.display().to_string());
        http::write_below(&configuration, "plugin.yaml", &text);
        let program = |[]: [u16; 0]| {
            self.program("argocd-cmp-server")
                .env_path("ARGOCD_CMP_WORKDIR", &self.path("cmp"))
                .arguments(["--config-dir-path".to_owned(), configuration.display().to_string()])
        };
        let sockets = self.path("plugins");
        let ready = async |[]: [u16; 0]| {
            for entry in std::fs::read_dir(&sockets).into_iter().flatten().flatten() {
                if tokio::net::UnixStream::connect(entry.path()).await.is_ok() {
                    return Ok(());
                }
            }
            Err(format!("no socket in {}", sockets.display()))
        };
        self.processes.start(program, ready).await.1
    }

    async fn repo_server(&self, redis: &str) -> (String, Process) {
        let program = |[port, metrics]: [u16; 2]| {
            self.program("argocd-repo-server")
                .arguments(["--redis", redis, "--disable-tls", "--client-ca-path="])
                .arguments(["--address=127.0.0.1", "--metrics-address=127.0.0.1"])
                .argument(format!("--port={port}"))
                .argument(format!("--metrics-port={metrics}"))
        };
        let ready = async |[port, metrics]: [u16; 2]| {
            http::get(metrics, "/healthz").await?;
            ports::connect(port).await
        };
        let ([port, _], process) = self.processes.start(program, ready).await;
        (format!("127.0.0.1:{port}"), process)
    }

    async fn application_controller(&self, redis: &str, repo_server: &str) -> Process {
        let program = |[metrics]: [u16; 1]| {
            self.program("argocd-application-controller")
                .env("ARGOCD_FAKE_IN_CLUSTER", "true")
                .arguments(["--namespace", NAMESPACE, "--redis", redis])
                .arguments(["--repo-server", repo_server, "--repo-server-plaintext"])
                .arguments(["--app-resync", "30", "--app-resync-jitter", "0"])
                .arguments(["--application-namespaces", "*"])
                .argument(format!("--metrics-port={metrics}"))
        };
        let ready = async |[metrics]: [u16; 1]| http::get(metrics, "/healthz").await.map(drop);
        self.processes.start(program, ready).await.1
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What `argocd-plugin/` puts into `argocd-cm`.
fn health() -> Value {
    let mut data = json!({});
    for file in ["health-package.yaml", "health-application.yaml"] {
        for patch in documents(&read(&repository().join("argocd-plugin").join(file))) {
            let entries = patch["data"].as_object().expect("data").clone();
            data.as_object_mut().expect("a map").extend(entries);
        }
    }
    data
}

fn configuration() -> Vec<Value> {
    let part = json!({"app.kubernetes.io/part-of": "argocd"});
    let named = |name: &str| json!({"name": name, "labels": part});
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("argocd-cm"), "data": health()}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("argocd-rbac-cm")}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": named("argocd-secret")}),
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": "default"},
            "spec": {
                "sourceRepos": ["*"], "sourceNamespaces": ["*"],
                "destinations": [{"namespace": "*", "server": "*"}],
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
            },
        }),
    ]
}
