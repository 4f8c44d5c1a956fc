//! The bench: parts that start when they are first asked for.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use libtest_mimic::Failed;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use super::argocd::{ArgoCd, Plugin};
use super::charts::Charts;
use super::cluster::{Cluster, documents};
use super::control_plane::ControlPlane;
use super::flux::{self, Flux};
use super::git::Repository;
use super::http::{self, HttpServer};
use super::kept;
use super::nodes::Nodes;
use super::processes::{Process, Processes, Program};
use super::tools::{Tools, repository};

/// How a bench is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Nodes for everybody.
    pub nodes: usize,
    /// What Argo CD's cmp-server offers, if anything.
    pub plugin: Option<Plugin>,
    /// A test that takes longer has failed.
    pub test_limit: Duration,
    /// The same for those that are not part of CI.
    pub long_test_limit: Duration,
    /// Where logs are kept when a test failed, in a directory per run.
    pub kept_logs: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        let configuration = repository().join("argocd-plugin/plugin.yaml");
        let plugin = configuration
            .exists()
            .then(|| Plugin { configuration, binary: PathBuf::from(env!("CARGO_BIN_EXE_windlass")) });
        Self {
            nodes: 5,
            plugin,
            test_limit: Duration::from_secs(600),
            long_test_limit: Duration::from_secs(2400),
            kept_logs: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("e2e-logs"),
        }
    }
}

/// Owns all programs and the directory of one run; `stop` ends it.
pub struct Bench {
    pub tools: Tools,
    pub processes: Processes,
    options: Options,
    runtime: Runtime,
    started: Instant,
    control_plane: OnceCell<(ControlPlane, Cluster)>,
    http: OnceCell<HttpServer>,
    charts: OnceCell<Charts>,
    own_crds: OnceCell<()>,
    flux: OnceCell<Flux>,
    argocd: OnceCell<ArgoCd>,
}

impl Bench {
    /// Starts the supervisor; the parts follow when asked for. Ctrl-C and SIGTERM end the
    /// bench and this process.
    pub fn start(tools: Tools, options: Options) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime");
        let processes = Processes::start_supervisor();
        runtime.spawn(end_on_signal(processes.clone()));
        Self {
            tools,
            processes,
            options,
            runtime,
            started: Instant::now(),
            control_plane: OnceCell::new(),
            http: OnceCell::new(),
            charts: OnceCell::new(),
            own_crds: OnceCell::new(),
            flux: OnceCell::new(),
            argocd: OnceCell::new(),
        }
    }

    /// Runs one test: it fails when it panics, takes too long, or a program ends.
    pub fn run(&self, name: &str, test: impl AsyncFnOnce(&Self)) -> Result<(), Failed> {
        self.run_within(self.options.test_limit, name, test)
    }

    /// The same for a test that takes its time.
    pub fn run_long(&self, name: &str, test: impl AsyncFnOnce(&Self)) -> Result<(), Failed> {
        self.run_within(self.options.long_test_limit, name, test)
    }

    fn run_within(&self, limit: Duration, name: &str, test: impl AsyncFnOnce(&Self)) -> Result<(), Failed> {
        let _time = Time::of(name);
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                message = self.processes.death() => Err(Failed::from(message)),
                result = tokio::time::timeout(limit, test(self)) => {
                    result.map_err(|_| Failed::from(format!("not done after {limit:?}")))
                }
            }
        })
    }

    /// Runs something on the bench's runtime.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Ends all programs and removes the directory.
    pub fn stop(&self, failed: bool) {
        let kept = failed.then(|| kept::make_room(&self.options.kept_logs, &kept::name_of_this_run()));
        self.processes.shut_down(kept.clone());
        say_where_the_time_went(self.started.elapsed());
        if let Some(kept) = kept {
            eprintln!("bench: logs are kept in {}", kept.display());
        }
    }

    pub async fn control_plane(&self) -> &ControlPlane {
        &self.kubernetes().await.0
    }

    /// The cluster with its nodes ready.
    pub async fn cluster(&self) -> &Cluster {
        &self.kubernetes().await.1
    }

    pub async fn nodes(&self) -> Nodes {
        Nodes::new(self.cluster().await.client.clone())
    }

    async fn kubernetes(&self) -> &(ControlPlane, Cluster) {
        self.control_plane
            .get_or_init(async || {
                let _time = Time::of("control plane and nodes");
                let control_plane = ControlPlane::start(&self.tools, &self.processes).await;
                let cluster = Cluster::new(control_plane.client.clone());
                let nodes = Nodes::new(cluster.client.clone());
                nodes.add("node", self.options.nodes).await;
                (control_plane, cluster)
            })
            .await
    }

    /// The server of Git repositories and charts.
    pub async fn http(&self) -> &HttpServer {
        self.http
            .get_or_init(async || {
                let git = self.tools.path("git");
                let repositories = self.processes.directory("git");
                let charts = self.processes.directory("charts");
                HttpServer::start(git, repositories, charts).await
            })
            .await
    }

    /// The chart repository.
    pub async fn charts(&self) -> &Charts {
        self.charts
            .get_or_init(async || {
                let _time = Time::of("charts packaged");
                let http = self.http().await;
                let helm = self.tools.path("helm");
                Charts::publish_all(helm, http.charts.clone(), &http.url).await
            })
            .await
    }

    /// A new Git repository; the name must be used by nobody else.
    pub async fn repository(&self, name: &str) -> Repository {
        let http = self.http().await;
        Repository::create(&self.tools.path("git"), &http.repositories, name)
    }

    /// Our own program as the administrator; the name is that of its log.
    pub async fn windlass(&self, name: &str) -> Program {
        let kubeconfig = &self.control_plane().await.kubeconfig;
        Program::new(name, PathBuf::from(env!("CARGO_BIN_EXE_windlass"))).env_path("KUBECONFIG", kubeconfig)
    }

    /// A controller for one namespace, ended when dropped. It is alone, so it holds no Lease.
    pub async fn controller(&self, namespace: &str) -> Process {
        let kubeconfig = &self.control_plane().await.kubeconfig;
        self.controller_as(kubeconfig, namespace, &["--lease-namespace="]).await
    }

    /// A controller for one namespace with a kubeconfig and arguments of its own.
    pub async fn controller_as(&self, kubeconfig: &Path, namespace: &str, arguments: &[&str]) -> Process {
        let binary = || {
            Program::new(&format!("controller-{namespace}"), PathBuf::from(env!("CARGO_BIN_EXE_windlass")))
                .env_path("KUBECONFIG", kubeconfig)
        };
        self.controller_of(binary, namespace, arguments).await
    }

    /// A controller for one namespace by another way of running our program.
    pub async fn controller_of(&self, binary: impl Fn() -> Program, namespace: &str, arguments: &[&str]) -> Process {
        self.controller_on_port(binary, namespace, arguments).await.1
    }

    /// The same, with the port of its metrics.
    pub async fn controller_on_port(
        &self,
        binary: impl Fn() -> Program,
        namespace: &str,
        arguments: &[&str],
    ) -> (u16, Process) {
        let program = |[port]: [u16; 1]| {
            binary()
                .argument("controller")
                .argument("--deletion-settle=1s")
                .arguments(arguments.iter().copied())
                .argument(format!("--watch-namespace={namespace}"))
                .argument(format!("--listen=127.0.0.1:{port}"))
        };
        let ready = async |[port]: [u16; 1]| http::get(port, "/readyz").await.map(drop);
        let ([port], process) = self.processes.start(program, ready).await;
        (port, process)
    }

    /// How long the bench has been up.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Our own kinds are served.
    pub async fn own_crds(&self) {
        let apply = async || {
            let cluster = self.cluster().await;
            let path = repository().join("manifests/crds/windlass.dev.yaml");
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            for crd in documents(&text) {
                let applied = cluster.apply("", crd).await;
                cluster.crd_is_served(&applied.name_any()).await;
            }
        };
        self.own_crds.get_or_init(apply).await;
    }

    /// source-controller and kustomize-controller.
    pub async fn flux(&self) -> &Flux {
        self.flux
            .get_or_init(async || {
                let (control_plane, cluster) = self.kubernetes().await;
                let _time = Time::of("Flux");
                Flux::start(&self.tools, &self.processes, control_plane, cluster).await
            })
            .await
    }

    /// A process of the stand-in for helm-controller, ended when dropped.
    pub async fn helm_controller(&self, arguments: &[&str]) -> Process {
        let kubeconfig = &self.control_plane().await.kubeconfig;
        flux::start_helm_controller(&self.tools, &self.processes, kubeconfig, arguments).await
    }

    pub async fn argocd(&self) -> &ArgoCd {
        self.argocd
            .get_or_init(async || {
                let (control_plane, cluster) = self.kubernetes().await;
                let _time = Time::of("Argo CD");
                let plugin = self.options.plugin.as_ref();
                ArgoCd::start(&self.tools, &self.processes, control_plane, cluster, plugin).await
            })
            .await
    }
}

async fn end_on_signal(processes: Processes) {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).expect("a handler");
    let mut terminate = signal(SignalKind::terminate()).expect("a handler");
    let mut hang_up = signal(SignalKind::hangup()).expect("a handler");
    let code = tokio::select! {
        _ = interrupt.recv() => 130,
        _ = terminate.recv() => 143,
        _ = hang_up.recv() => 129,
    };
    // What tests say from here on is a consequence.
    std::panic::set_hook(Box::new(|_| {}));
    eprintln!("\nbench: interrupted, ending all programs");
    processes.shut_down(None);
    std::process::exit(code);
}

/// Says how long something took, also when it failed.
struct Time<'a> {
    what: &'a str,
    started: Instant,
}

impl<'a> Time<'a> {
    fn of(what: &'a str) -> Self {
        Self { what, started: Instant::now() }
    }
}

/// All that took a second or more.
static TAKEN: Mutex<Vec<(f64, String)>> = Mutex::new(Vec::new());

impl Drop for Time<'_> {
    fn drop(&mut self) {
        let seconds = self.started.elapsed().as_secs_f64();
        eprintln!("bench: {seconds:6.1} s  {}", self.what);
        if seconds >= 1.0 {
            TAKEN.lock().expect("the times").push((seconds, self.what.to_owned()));
        }
    }
}

fn say_where_the_time_went(whole: Duration) {
    let mut taken = TAKEN.lock().expect("the times").clone();
    taken.sort_by(|a, b| b.0.total_cmp(&a.0));
    eprintln!("\nbench: {:6.1} s  in all; several things at a time, the longest first:", whole.as_secs_f64());
    for (seconds, what) in taken {
        eprintln!("bench: {seconds:6.1} s    {what}");
    }
}
