//! etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::credentials::Credentials;
use super::processes::{Process, Processes, Program};
use super::tools::Tools;

/// A running Kubernetes without nodes.
pub struct ControlPlane {
    pub client: Client,
    pub kubeconfig: PathBuf,
    /// `https://127.0.0.1:<port>`
    pub server: String,
    /// `http://127.0.0.1:<port>`
    etcd: String,
    _programs: Vec<Process>,
}

impl ControlPlane {
    pub async fn start(tools: &Tools, processes: &Processes) -> Self {
        let directory = processes.directory("kubernetes");
        let credentials = Credentials::create(&directory);
        let (endpoint, etcd) = start_etcd(tools, processes).await;
        let kubeconfig = processes.root().join("kubeconfig");
        let (server, client, apiserver) = start_apiserver(tools, processes, &credentials, &endpoint, &kubeconfig).await;
        let stages = directory.join("stages.yaml");
        std::fs::write(&stages, STAGES.join("---\n")).expect("a file of the bench");
        let (manager, scheduler, kwok) = tokio::join!(
            start_controller_manager(tools, processes, &credentials, &kubeconfig),
            start_scheduler(tools, processes, &kubeconfig),
            start_kwok(tools, processes, &kubeconfig, &stages),
        );
        let programs = vec![etcd, apiserver, manager, scheduler, kwok];
        Self { client, kubeconfig, server, etcd: endpoint, _programs: programs }
    }

    /// Forgets the history of etcd up to now. What is watched from an older state is told that
    /// this state is gone.
    pub async fn compact(&self) {
        let port = self.etcd.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
        let status = super::http::post(port, "/v3/maintenance/status", "{}").await.expect("etcd's status");
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        let revision = status["header"]["revision"].clone();
        let asked = serde_json::json!({"revision": revision, "physical": true}).to_string();
        super::http::post(port, "/v3/kv/compaction", &asked).await.expect("a compaction");
    }
}

/// How kwok is configured, and what its nodes and pods do.
const STAGES: [&str; 5] = [
    include_str!("stages/kwok.yaml"),
    include_str!("stages/node.yaml"),
    include_str!("stages/pod-start.yaml"),
    include_str!("stages/pod-run.yaml"),
    include_str!("stages/pod-end.yaml"),
];

async fn start_etcd(tools: &Tools, processes: &Processes) -> (String, Process) {
    let data = processes.directory("etcd");
    let program = |[client, peer]: [u16; 2]| {
        let client = format!("http://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        Program::new("etcd", tools.path("etcd"))
            .argument("--unsafe-no-fsync")
            .argument("--log-level=warn")
            .argument(format!("--data-dir={}", data.display()))
            .argument(format!("--listen-client-urls={client}"))
            .argument(format!("--advertise-client-urls={client}"))
            .argument(format!("--listen-peer-urls={peer}"))
            .argument(format!("--initial-advertise-peer-urls={peer}"))
            .argument(format!("--initial-cluster=default={peer}"))
    };
    let ([client, _], process) =
        processes.start(program, async |[client, _]| super::http::get(client, "/health").await.map(drop)).await;
    (format!("http://127.0.0.1:{client}"), process)
}

async fn start_apiserver(
    tools: &Tools,
    processes: &Processes,
    credentials: &Credentials,
    etcd: &str,
    kubeconfig: &Path,
) -> (String, Client, Process) {
    let file = |path: &Path| path.display().to_string();
    let program = |[port]: [u16; 1]| {
        credentials.write_kubeconfig(kubeconfig, &format!("https://127.0.0.1:{port}"));
        Program::new("kube-apiserver", tools.path("kube-apiserver"))
            .argument(format!("--etcd-servers={etcd}"))
            .argument("--bind-address=127.0.0.1")
            .argument(format!("--secure-port={port}"))
            .argument(format!("--tls-cert-file={}", file(&credentials.certificate)))
            .argument(format!("--tls-private-key-file={}", file(&credentials.key)))
            .argument(format!("--token-auth-file={}", file(&credentials.tokens)))
            .argument("--service-account-issuer=https://kubernetes.default.svc")
            .argument(format!("--service-account-signing-key-file={}", file(&credentials.service_account_key)))
            .argument(format!("--service-account-key-file={}", file(&credentials.service_account_public_key)))
            .arguments([
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.96.0.0/16",
                // No service account tokens for pods that never run.
                "--disable-admission-plugins=ServiceAccount",
                "--endpoint-reconciler-type=none",
                "--max-requests-inflight=2000",
                "--max-mutating-requests-inflight=1000",
                "--profiling=false",
            ])
    };
    let ([port], process) = processes.start(program, async |_| api_is_ready(kubeconfig).await).await;
    let client = client(kubeconfig).await.expect("a client");
    (format!("https://127.0.0.1:{port}"), client, process)
}

/// A client for the administrator.
pub async fn client(kubeconfig: &Path) -> Result<Client, String> {
    let read = Kubeconfig::read_from(kubeconfig).map_err(|error| error.to_string())?;
    let mut config =
        Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.map_err(|error| error.to_string())?;
    config.connect_timeout = Some(Duration::from_secs(5));
    // Retries of its own would hide what the API server answers.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| error.to_string())
}

async fn api_is_ready(kubeconfig: &Path) -> Result<(), String> {
    let request = http_get("/readyz");
    let client = client(kubeconfig).await?;
    let answer = client.request_text(request);
    match tokio::time::timeout(Duration::from_secs(5), answer).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer from /readyz".to_owned()),
    }
}

fn http_get(path: &str) -> axum::http::Request<Vec<u8>> {
    axum::http::Request::get(path).body(Vec::new()).expect("a request")
}

async fn start_controller_manager(
    tools: &Tools,
    processes: &Processes,
    credentials: &Credentials,
    kubeconfig: &Path,
) -> Process {
    let name = "kube-controller-manager";
    let program = |[port]: [u16; 1]| {
        Program::new(name, tools.path(name))
            .argument(format!("--kubeconfig={}", kubeconfig.display()))
            .argument(format!("--service-account-private-key-file={}", credentials.service_account_key.display()))
            .argument(format!("--root-ca-file={}", credentials.authority.display()))
            .argument(format!("--secure-port={port}"))
            .arguments([
                "--bind-address=127.0.0.1",
                "--leader-elect=false",
                "--controllers=*,-nodeipam,-cloud-node-lifecycle,-service-lb-controller",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                "--node-monitor-period=1s",
                // Simulated nodes have no heartbeat: by default each would be taken for dead
                // after 50 s, and its pods for unready. What `Nodes::kill` does is seen all the same.
                "--node-monitor-grace-period=24h",
                "--node-startup-grace-period=24h",
            ])
            .env_path("TMPDIR", &processes.directory("tmp/kube-controller-manager"))
    };
    let ready = async |[port]: [u16; 1]| super::ports::connect(port).await;
    processes.start(program, ready).await.1
}

async fn start_scheduler(tools: &Tools, processes: &Processes, kubeconfig: &Path) -> Process {
    let name = "kube-scheduler";
    let program = |[port]: [u16; 1]| {
        Program::new(name, tools.path(name))
            .argument(format!("--kubeconfig={}", kubeconfig.display()))
            .argument(format!("--secure-port={port}"))
            .arguments(["--bind-address=127.0.0.1", "--leader-elect=false"])
    };
    let ready = async |[port]: [u16; 1]| super::ports::connect(port).await;
    processes.start(program, ready).await.1
}

async fn start_kwok(tools: &Tools, processes: &Processes, kubeconfig: &Path, stages: &Path) -> Process {
    let program = |[port]: [u16; 1]| {
        Program::new("kwok", tools.path("kwok"))
            .argument(format!("--kubeconfig={}", kubeconfig.display()))
            .argument(format!("--config={}", stages.display()))
            .argument(format!("--manage-nodes-with-label-selector={}", super::nodes::KUBELET))
            .argument(format!("--server-address=127.0.0.1:{port}"))
            .arguments(["--node-ip=127.0.0.1", "--cidr=10.0.0.1/16"])
    };
    let ready = async |[port]: [u16; 1]| super::http::get(port, "/healthz").await.map(drop);
    processes.start(program, ready).await.1
}
