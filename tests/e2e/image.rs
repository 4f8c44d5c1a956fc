//! What an image has in it: one static binary, and no other file.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::processes::{Process, Program};
use crate::support::tools::repository;
use crate::support::wait::until;
use crate::support::windlass::static_binary;

const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const INSIDE: &str = "/usr/local/bin/windlass";
const SOON: Duration = Duration::from_secs(60);

pub async fn one_static_binary_does_everything_in_an_empty_root(bench: &Bench) {
    bench.flux().await;
    bench.own_crds().await;
    let root = Root::with_the_binary();
    root.compiles_an_example();
    root.refuses_a_cluster_it_cannot_trust();

    let cluster = bench.cluster().await;
    let name = cluster.namespace("image").await;
    let selector = format!("--watch-label-selector=windlass.dev/package={name}");
    let _helm_controller = bench.helm_controller(&[&selector]).await;
    let _controller = root.controller(bench, &name).await;
    let repository = &bench.charts().await.url;
    let package = json!({
        "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": name},
        "spec": {
            "version": "1.0.0", "engine": "flux",
            "components": [{"name": "conf", "chart": {"repository": repository, "name": "conf", "version": "1.0.0"}}],
        },
    });
    cluster.apply(&name, package).await;
    let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &name).await;
    until(&packages, &name, SOON, "installed", |package| {
        let status = package.map(|package| to_json(package)["status"].clone()).unwrap_or_default();
        if status["version"] == "1.0.0" { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
}

/// A directory that becomes `/`.
struct Root(tempfile::TempDir);

impl Root {
    /// Made by `make static`, which `make e2e` runs before.
    fn with_the_binary() -> Self {
        let binary = static_binary();
        let size = binary.metadata().expect("its size").len();
        eprintln!("bench: the static binary has {size} bytes");
        let root = Self(tempfile::tempdir().expect("a directory"));
        root.put(INSIDE, &std::fs::read(&binary).expect("the binary"));
        let mode = binary.metadata().expect("its mode").permissions();
        std::fs::set_permissions(root.outside(INSIDE), mode).expect("a mode");
        root
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn put(&self, path: &str, content: &[u8]) {
        let path = self.outside(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, content).expect("a file");
    }

    /// As an image would run it: nothing else in `/`, no rights.
    fn arguments(&self) -> Vec<String> {
        let mut words = vec!["--root".to_owned(), self.0.path().display().to_string()];
        if !rustix::process::geteuid().is_root() {
            words.insert(0, "--map-root-user".to_owned());
        }
        words.push(INSIDE.to_owned());
        words
    }

    fn run(&self, words: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new("unshare");
        command.args(self.arguments()).args(words).env_clear().envs(environment.iter().copied());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).output().expect("unshare")
    }

    fn compiles_an_example(&self) {
        copy(&repository().join("examples/kubevirt/v1"), &self.outside("/app"));
        let environment = [
            ("ARGOCD_APP_NAMESPACE", "packages"),
            ("ARGOCD_APP_NAME", "packages"),
            ("ARGOCD_APP_PROJECT_NAME", "default"),
            ("ARGOCD_APP_SOURCE_REPO_URL", "https://git.example.org/packages.git"),
            ("ARGOCD_APP_REVISION", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"),
            ("ARGOCD_APP_PARAMETERS", r#"[{"name": "path", "string": "app"}]"#),
        ];
        let output = self.run(&["plugin", "generate"], &environment);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("kind: Package"), "{output:?}");
    }

    /// Without certificates of a system only those of the kubeconfig count.
    fn refuses_a_cluster_it_cannot_trust(&self) {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "it", "user": {"token": "it"}}],
        });
        self.put("/untrusted", kubeconfig.to_string().as_bytes());
        let output = self.run(&["status", "--kubeconfig", "/untrusted"], &[]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(message.contains("certificate-authority"), "{message}");
    }

    async fn controller(&self, bench: &Bench, namespace: &str) -> Process {
        let kubeconfig = std::fs::read(&bench.control_plane().await.kubeconfig).expect("a kubeconfig");
        let mut kubeconfig: Value = serde_json::from_slice(&kubeconfig).expect("JSON");
        let authority = kubeconfig["clusters"][0]["cluster"]["certificate-authority"].as_str().map(str::to_owned);
        if let Some(path) = authority {
            self.put("/ca.crt", &std::fs::read(path).expect("a certificate"));
            kubeconfig["clusters"][0]["cluster"]["certificate-authority"] = "/ca.crt".into();
        }
        self.put("/kubeconfig", kubeconfig.to_string().as_bytes());
        let program = || {
            Program::new(&format!("static-controller-{namespace}"), PathBuf::from("/usr/bin/unshare"))
                .arguments(self.arguments())
                .env("KUBECONFIG", "/kubeconfig")
        };
        bench.controller_of(program, namespace, &["--lease-namespace="]).await
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}
