//! An Application of Argo CD over a repository, with our plugin.

use serde_json::{Value, json};

use crate::support::argocd::ArgoCd;
use crate::support::bench::Bench;
use crate::support::cluster;
use crate::support::git::Repository;

/// Keeps a directory in Git that holds no Package.
pub const README: (&str, &str) = ("packages/README.md", "Packages\n");

/// An Application of our plugin over `packages/` of a repository of its own.
pub struct Parent<'a> {
    pub argocd: &'a ArgoCd,
    /// Of the Application, the repository and the test's namespace.
    pub name: String,
    pub repository: Repository,
}

impl<'a> Parent<'a> {
    pub async fn new(bench: &'a Bench, prefix: &str) -> Self {
        let name = bench.cluster().await.namespace(prefix).await;
        Self::of(bench, &name).await
    }

    /// Called like a namespace that is the test's own.
    pub async fn of(bench: &'a Bench, name: &str) -> Self {
        let argocd = bench.argocd().await;
        let repository = bench.repository(name).await;
        Self { argocd, name: name.to_owned(), repository }
    }

    pub async fn create(&self, namespace: &str, parameters: Value) {
        let source = json!({
            "repoURL": self.repository.file_url(), "path": "packages", "targetRevision": "main",
            "plugin": {"name": "windlass", "parameters": parameters},
        });
        self.argocd.application(&self.name, source, namespace).await;
    }

    pub async fn commit(&self, files: &[(&str, &str)]) -> String {
        let commit = self.repository.commit(files);
        self.argocd.refresh(&self.name).await;
        commit
    }

    pub async fn revert(&self) -> String {
        let commit = self.repository.revert();
        self.argocd.refresh(&self.name).await;
        commit
    }

    pub async fn remove(&self, files: &[&str]) -> String {
        let commit = self.repository.remove(files);
        self.argocd.refresh(&self.name).await;
        commit
    }

    /// When its last operation began.
    pub async fn last_operation(&self) -> Value {
        let application = self.argocd.applications().await.get(&self.name).await.expect("the Application");
        cluster::to_json(&application)["status"]["operationState"]["startedAt"].clone()
    }
}
