//! The chart repository: the test charts packaged by helm, with an index.

use std::path::PathBuf;

use sha2::Digest as _;
use tokio::process::Command;
use tokio::sync::Mutex;

use super::tools::repository;

/// What is there from the start, as (source, versions). Charts show their version in what
/// they install.
const PUBLISHED: [(&str, &[&str]); 8] = [
    ("conf", &["1.0.0", "1.1.0", "2.0.0"]),
    ("conf-broken", &["1.2.0"]),
    ("app", &["1.0.0", "1.1.0", "2.0.0"]),
    ("agent", &["1.0.0", "1.1.0", "2.0.0"]),
    ("migrate", &["1.0.0", "1.1.0", "2.0.0"]),
    ("stuck", &["1.0.0", "1.1.0"]),
    ("invalid", &["1.0.0", "1.1.0"]),
    ("store", &["1.0.0", "1.1.0"]),
];

pub struct Charts {
    helm: PathBuf,
    directory: PathBuf,
    /// The repository's URL, for a HelmRepository or an Application.
    pub url: String,
    index: Mutex<()>,
}

impl Charts {
    pub async fn publish_all(helm: PathBuf, directory: PathBuf, server: &str) -> Self {
        let charts = Self { helm, directory, url: format!("{server}/charts"), index: Mutex::new(()) };
        for (name, versions) in PUBLISHED {
            let packages = versions.iter().map(|version| charts.package(name, version));
            futures_util::future::join_all(packages).await;
        }
        charts.write_index().await;
        charts
    }

    /// Adds a version to the repository and its index.
    pub async fn publish(&self, name: &str, version: &str) {
        self.package(name, version).await;
        self.write_index().await;
    }

    /// `sha256:…` of a packaged chart.
    pub fn digest(&self, name: &str, version: &str) -> String {
        let path = self.directory.join(format!("{name}-{version}.tgz"));
        let content = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let digest = sha2::Sha256::digest(content);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    }

    async fn package(&self, name: &str, version: &str) {
        let mut command = self.command("package");
        command
            .arg(source(name))
            .args(["--version", version, "--app-version", version])
            .arg("--destination")
            .arg(&self.directory);
        run(command).await;
    }

    async fn write_index(&self) {
        let _one_at_a_time = self.index.lock().await;
        let mut command = self.command("repo");
        command.arg("index").arg(&self.directory).args(["--url", &self.url]);
        run(command).await;
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.helm);
        command.arg(name).env("HELM_CACHE_HOME", &self.directory).kill_on_drop(true);
        command
    }
}

/// The source of a test chart.
pub fn source(name: &str) -> PathBuf {
    repository().join("tests/data/charts").join(name)
}

async fn run(mut command: Command) {
    let output = command.output().await.expect("helm");
    assert!(output.status.success(), "helm: {}", String::from_utf8_lossy(&output.stderr));
}
