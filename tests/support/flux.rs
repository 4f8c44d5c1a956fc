//! Flux's source-controller and kustomize-controller, and the place of helm-controller.

use std::path::Path;

use super::cluster::Cluster;
use super::control_plane::ControlPlane;
use super::http;
use super::processes::{Process, Processes, Program};
use super::tools::Tools;

/// The program that plays helm-controller, which cannot be had as a module.
pub const STAND_IN: &str = "helm-controller-stand-in";

/// Running Flux controllers and their CRDs.
pub struct Flux {
    _programs: [Process; 2],
}

impl Flux {
    pub async fn start(tools: &Tools, processes: &Processes, control_plane: &ControlPlane, cluster: &Cluster) -> Self {
        cluster.apply_crds(&tools.path("crds").join("flux")).await;
        cluster.named_namespace("flux-system").await;
        let kubeconfig = &control_plane.kubeconfig;
        let (source, kustomize) = tokio::join!(
            start_source_controller(tools, processes, kubeconfig),
            start_kustomize_controller(tools, processes, kubeconfig),
        );
        Self { _programs: [source, kustomize] }
    }
}

async fn start_source_controller(tools: &Tools, processes: &Processes, kubeconfig: &Path) -> Process {
    let storage = processes.directory("source-controller");
    let program = |[health, storage_port]: [u16; 2]| {
        controller(tools, processes, "source-controller", kubeconfig, health)
            .argument(format!("--storage-path={}", storage.display()))
            .argument(format!("--storage-addr=127.0.0.1:{storage_port}"))
            .argument(format!("--storage-adv-addr=127.0.0.1:{storage_port}"))
    };
    let ready = async |[health, storage]: [u16; 2]| {
        http::get(health, "/readyz").await?;
        super::ports::connect(storage).await
    };
    processes.start(program, ready).await.1
}

async fn start_kustomize_controller(tools: &Tools, processes: &Processes, kubeconfig: &Path) -> Process {
    let program = |[health]: [u16; 1]| {
        controller(tools, processes, "kustomize-controller", kubeconfig, health)
            .argument("--interval-jitter-percentage=0")
    };
    let ready = async |[health]: [u16; 1]| http::get(health, "/readyz").await.map(drop);
    processes.start(program, ready).await.1
}

/// Starts the stand-in for helm-controller, with further arguments. It gets KUBECONFIG and
/// `--health-addr`, where it answers `/readyz`.
pub async fn start_helm_controller(
    tools: &Tools,
    processes: &Processes,
    kubeconfig: &Path,
    arguments: &[&str],
) -> Process {
    let program = |[health]: [u16; 1]| {
        program(tools, processes, STAND_IN, kubeconfig, health).arguments(arguments.iter().copied())
    };
    let ready = async |[health]: [u16; 1]| http::get(health, "/readyz").await.map(drop);
    processes.start(program, ready).await.1
}

fn controller(tools: &Tools, processes: &Processes, name: &str, kubeconfig: &Path, health: u16) -> Program {
    program(tools, processes, name, kubeconfig, health).argument("--events-addr=").argument("--metrics-addr=0")
}

fn program(tools: &Tools, processes: &Processes, name: &str, kubeconfig: &Path, health: u16) -> Program {
    Program::new(name, tools.path(name))
        .argument(format!("--health-addr=127.0.0.1:{health}"))
        .env_path("KUBECONFIG", kubeconfig)
        .env("RUNTIME_NAMESPACE", "flux-system")
        .env_path("TMPDIR", &processes.directory(&format!("tmp/{name}")))
}
