//! What an operator does: looks, asks why, tries again, goes back; and takes over what runs.

use std::time::Duration;

use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::processes::Process;
use crate::support::wait::{condition, until};
use crate::support::windlass::{Run, run};

const HELM: (&str, &str) = ("helm.toolkit.fluxcd.io/v2", "HelmRelease");
const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
/// Says which process of the stand-in a HelmRelease is for.
const INSTANCE: &str = "bench.windlass.dev/helm-controller";
/// What stays in Git.
const OTHER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}";
const SOON: Duration = Duration::from_secs(90);

pub async fn a_failed_upgrade_is_explained_and_taken_back_by_hand(bench: &Bench) {
    let stage = Stage::set(bench, "operate", "windlass.dev/package").await;
    stage.wants("1.0.0", json!({})).await;
    stage.is("Ready", "1.0.0").await;
    let never_ready = json!({"podAnnotations": {"bench.windlass.dev/behaviour": "never-ready"}});
    stage.wants("1.1.0", never_ready.clone()).await;
    stage.is("UpgradeFailed", "1.1.0").await;

    stage.helm_says("web", "UpgradeFailed").await;

    let shown = stage.windlass(&["status", &stage.name]).await;
    assert!(shown.success && shown.stdout.contains("UpgradeFailed"), "{shown:?}");
    assert!(shown.stdout.contains("Runs:      1.0.0 (revision 1)"), "{shown:?}");
    let listed = stage.windlass(&["status"]).await;
    assert!(listed.stdout.lines().any(|line| line.starts_with(&stage.name) && line.contains("1/2")), "{listed:?}");
    let why = stage.windlass(&["why", &stage.name]).await;
    let child = format!("HelmRelease/{}-web: Ready is False (UpgradeFailed)", stage.name);
    assert!(why.stdout.contains(&child) && why.stdout.contains("To do: Fix forward"), "{why:?}");
    let history = stage.windlass(&["history", &stage.name]).await;
    assert!(history.stdout.contains("1 *") && history.stdout.contains("Failed"), "{history:?}");

    let refused = stage.windlass(&["rollback", &stage.name, "--to", "2"]).await;
    assert!(!refused.success && refused.stderr.contains("never succeeded"), "{refused:?}");
    let refused = stage.windlass(&["rollback", &stage.name, "--to", "1"]).await;
    assert!(!refused.success && refused.stderr.contains("does not say rollback.safe: true"), "{refused:?}");
    // The controller refuses it as well, whoever asks.
    let request = json!({"metadata": {"annotations": {"windlass.dev/rollback-to": "1@by-hand"}}});
    stage.bench.cluster().await.merge(&stage.packages, &stage.name, request).await;
    stage.is("RollbackRefused", "1.1.0").await;
    let preview = stage.windlass(&["rollback", &stage.name, "--to", "1", "--force", "--dry-run"]).await;
    assert!(preview.success && preview.stdout.contains("web: chart 1.1.0 -> 1.0.0"), "{preview:?}");
    assert!(stage.windlass(&["rollback", &stage.name, "--to", "1", "--force"]).await.success);
    stage.is("RolledBack", "1.1.0").await;

    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("package.yaml");
    std::fs::write(&file, stage.package("2.0.0", &never_ready).to_string()).expect("a file");
    let difference = stage.windlass(&["diff", &file.display().to_string()]).await;
    assert!(!difference.success && difference.stdout.contains(r#"~ version: "1.1.0" -> "2.0.0""#), "{difference:?}");
    std::fs::write(&file, stage.package("1.1.0", &never_ready).to_string()).expect("a file");
    let same = stage.windlass(&["diff", &file.display().to_string()]).await;
    assert!(same.success && same.stdout.is_empty(), "{same:?}");
}

pub async fn a_running_release_is_taken_over_from_git(bench: &Bench) {
    let stage = Stage::set(bench, "adopt", INSTANCE).await;
    let url = &bench.charts().await.url;
    let repository = bench.repository(&stage.namespace).await;
    let release = release(&stage.namespace, url);
    repository.commit(&[("apps/web.yaml", &release), ("apps/other.yaml", OTHER)]);
    stage.follow_git(&repository.http_url(&bench.http().await.url)).await;
    let helm = bench.cluster().await.dynamic(HELM.0, HELM.1, &stage.namespace).await;
    let before = deployed(&helm, 1).await;
    let workload = stage.workload().await;

    let given = json!({"metadata": {"annotations": {
        "windlass.dev/adopt": format!("{}/{}/web", stage.namespace, stage.name),
    }}});
    bench.cluster().await.merge(&helm, "web", given).await;
    bench.cluster().await.apply(&stage.namespace, stage.taking_over(url, "1.0.0")).await;
    stage.is("Conflict", "").await;
    until(&helm, "web", SOON, "it is kept from being pruned", |release| {
        let annotations = to_json(release.ok_or("it is gone")?)["metadata"]["annotations"].clone();
        let kept = annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled";
        if kept { Ok(()) } else { Err(annotations.to_string()) }
    })
    .await;

    let commit = repository.remove(&["apps/web.yaml"]);
    stage.reconcile(&commit).await;
    stage.is("Ready", "1.0.0").await;
    let after = deployed(&helm, 1).await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(stage.workload().await, workload, "nothing of it was written");

    bench.cluster().await.apply(&stage.namespace, stage.taking_over(url, "1.1.0")).await;
    stage.is("Ready", "1.1.0").await;
    let moved = deployed(&helm, 2).await;
    assert_eq!(moved["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(moved["spec"]["upgrade"]["strategy"]["name"], "RetryOnFailure");
    assert!(moved["spec"]["upgrade"].get("remediation").is_none(), "{moved}");
}

/// Somebody's repository and release, as they stand in Git.
fn release(namespace: &str, url: &str) -> String {
    let repository = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
        "metadata": {"name": "charts", "namespace": namespace}, "spec": {"interval": "10m", "url": url},
    });
    let release = json!({
        "apiVersion": HELM.0, "kind": HELM.1,
        "metadata": {"name": "web", "namespace": namespace, "labels": {INSTANCE: namespace}},
        "spec": {
            "interval": "10m", "releaseName": "web",
            "chart": {"spec": {
                "chart": "app", "version": "1.0.0", "sourceRef": {"kind": "HelmRepository", "name": "charts"},
            }},
            "values": {"note": "theirs"},
            "upgrade": {"remediation": {"retries": 3}},
        },
    });
    format!("{repository}\n---\n{release}\n")
}

/// The release once Helm has deployed it at a revision.
async fn deployed(helm: &Api<DynamicObject>, revision: i64) -> Value {
    until(helm, "web", SOON, &format!("Helm's revision {revision}"), |release| {
        let release = to_json(release.ok_or("it is not there")?);
        let newest = &release["status"]["history"][0];
        let found = newest["version"] == revision && newest["status"] == "deployed";
        if found { Ok(release.clone()) } else { Err(release["status"].to_string()) }
    })
    .await
}

/// A namespace with a controller and a helm-controller of its own.
struct Stage<'a> {
    bench: &'a Bench,
    name: String,
    namespace: String,
    charts: String,
    packages: Api<DynamicObject>,
    _helm_controller: Process,
    _controller: Process,
}

impl<'a> Stage<'a> {
    async fn set(bench: &'a Bench, name: &str, label: &str) -> Self {
        bench.flux().await;
        bench.own_crds().await;
        let cluster = bench.cluster().await;
        let namespace = cluster.namespace(name).await;
        let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &namespace).await;
        let helm_controller = bench.helm_controller(&[&format!("--watch-label-selector={label}={namespace}")]).await;
        let controller = bench.controller(&namespace).await;
        Self {
            bench,
            name: namespace.clone(),
            namespace,
            charts: bench.charts().await.url.clone(),
            packages,
            _helm_controller: helm_controller,
            _controller: controller,
        }
    }

    fn package(&self, version: &str, values: &Value) -> Value {
        let chart = |name: &str| json!({"repository": self.charts, "name": name, "version": version});
        json!({
            "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "version": version, "engine": "flux",
                // What runs has time to be restored; what fails does so soon.
                "upgrade": {"timeout": if version == "1.0.0" { "60s" } else { "8s" }, "retries": 0},
                "components": [
                    {"name": "conf", "chart": chart("conf")},
                    {"name": "web", "chart": chart("app"), "values": values, "install": {"dependsOn": ["conf"]}},
                ],
            },
        })
    }

    fn taking_over(&self, url: &str, version: &str) -> Value {
        json!({
            "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": self.name},
            "spec": {
                "version": version, "engine": "flux",
                "components": [{
                    "name": "web", "chart": {"repository": url, "name": "app", "version": version},
                    "values": {"note": "theirs"},
                }],
            },
        })
    }

    async fn wants(&self, version: &str, values: Value) {
        let package = self.package(version, &values);
        self.bench.cluster().await.apply(&self.namespace, package).await;
    }

    /// The reason of Ready, and the version that was attempted; empty: none was.
    async fn is(&self, reason: &str, version: &str) {
        until(&self.packages, &self.name, SOON, &format!("{reason} at {version}"), |package| {
            let package = package.map(to_json).unwrap_or_default();
            let status = &package["status"];
            let attempted = status["attempted"]["version"].as_str().unwrap_or_default();
            let reached = status["conditions"][0]["reason"] == reason
                && attempted == version
                && status["observedGeneration"] == package["metadata"]["generation"];
            if reached { Ok(()) } else { Err(format!("{attempted} {}", status["summary"])) }
        })
        .await;
    }

    /// The reason of a HelmRelease's Ready.
    async fn helm_says(&self, component: &str, reason: &str) {
        let helm = self.bench.cluster().await.dynamic(HELM.0, HELM.1, &self.namespace).await;
        let name = format!("{}-{component}", self.name);
        until(&helm, &name, SOON, reason, |release| {
            let release = to_json(release.ok_or("it is not there")?);
            let found = condition(&release, "Ready").map(|(_, reason, _)| reason.to_owned());
            if found.as_deref() == Some(reason) { Ok(()) } else { Err(release["status"].to_string()) }
        })
        .await;
    }

    async fn windlass(&self, arguments: &[&str]) -> Run {
        let kubeconfig = self.bench.control_plane().await.kubeconfig.display().to_string();
        let cluster = ["-n", &self.namespace, "--kubeconfig", &kubeconfig];
        run(arguments.iter().chain(&cluster))
    }

    async fn follow_git(&self, url: &str) {
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "it"},
            "spec": {"interval": "10m", "url": url, "ref": {"branch": "main"}},
        });
        let kustomization = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "it"},
            "spec": {
                "interval": "10m", "path": "./apps", "prune": true, "targetNamespace": self.namespace,
                "sourceRef": {"kind": "GitRepository", "name": "it"},
            },
        });
        let cluster = self.bench.cluster().await;
        cluster.apply(&self.namespace, source).await;
        cluster.apply(&self.namespace, kustomization).await;
    }

    /// Git has changed.
    async fn reconcile(&self, token: &str) {
        let cluster = self.bench.cluster().await;
        let sources = cluster.dynamic("source.toolkit.fluxcd.io/v1", "GitRepository", &self.namespace).await;
        cluster.annotate(&sources, "it", "reconcile.fluxcd.io/requestedAt", token).await;
    }

    /// The Deployment of the release, but for its status.
    async fn workload(&self) -> Value {
        let deployments = self.bench.cluster().await.dynamic("apps/v1", "Deployment", &self.namespace).await;
        let deployment = to_json(&deployments.get("web").await.expect("a Deployment"));
        json!({"uid": deployment["metadata"]["uid"], "generation": deployment["metadata"]["generation"]})
    }
}
