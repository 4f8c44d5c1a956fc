//! From a commit to workloads, and away again: Git, kustomize-controller, the Package, the
//! controller, HelmReleases.

use std::time::Duration;

use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use crate::rollouts_on_argo::volume;
use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::git::Repository;
use crate::support::processes::Process;
use crate::support::recorder::{Change, Entry, Recorder, describe, first};
use crate::support::wait::until;

const HELM: (&str, &str) = ("helm.toolkit.fluxcd.io/v2", "HelmRelease");
const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
const CLAIM: (&str, &str) = ("v1", "PersistentVolumeClaim");
const DEFINITION: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
const KUSTOMIZATION: (&str, &str) = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization");
const SOURCE: (&str, &str) = ("source.toolkit.fluxcd.io/v1", "GitRepository");
const SOON: Duration = Duration::from_secs(60);
const FILE: &str = "one/package.yaml";
const ACCOUNT: &str = "one/account.yaml";
/// A directory needs a file to be in Git.
const KEEP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: KEPT}}";

pub async fn a_package_goes_from_git_to_its_workloads_and_away(bench: &Bench) {
    let stage = Stage::set(bench, "gitops").await;
    stage.commits(&[(ACCOUNT, &stage.account()), (FILE, &stage.file("", "1.0.0", json!({})))]).await;
    stage.runs("", "1.0.0").await;
    stage.moved_in_order("1.0.0").await;

    stage.commits(&[(FILE, &stage.file("", "1.1.0", json!({})))]).await;
    stage.runs("", "1.1.0").await;
    stage.moved_in_order("1.1.0").await;

    // Values may be taken back, a version not.
    stage.commits(&[(FILE, &stage.file("", "1.1.0", json!({"note": "changed"})))]).await;
    stage.has_note("changed").await;
    stage.runs("", "1.1.0").await;
    stage.reverts().await;
    stage.has_note("").await;
    stage.runs("", "1.1.0").await;
    stage.commits(&[(FILE, &stage.file("", "1.0.0", json!({})))]).await;
    let message = stage.says("", "DowngradeRefused").await;
    assert!(message.contains("allowDowngrade"), "{message}");
    stage.reverts().await;
    stage.runs("", "1.1.0").await;

    let position = stage.recorder.complete().await.len();
    stage.commits(&[(FILE, &stage.without("roof", "2.0.0"))]).await;
    stage.runs("", "2.0.0").await;
    stage.has_no_deployment("roof").await;
    let log = stage.recorder.complete().await.split_off(position);
    let ready = first(&log, "the rest runs", |entry| shows(entry, "middle", "2.0.0")).version;
    assert!(ready < gone(&log, DEPLOYMENT.1, "roof"), "{}", describe(&log));

    // Its account is pruned with it: it waits, and goes on when the account is back.
    let position = stage.recorder.complete().await.len();
    stage.removes(&[FILE, ACCOUNT]).await;
    stage.says_at_last("", "Deleting", "ServiceAccount").await;
    stage.commits(&[(ACCOUNT, &stage.account())]).await;
    stage.is_gone("").await;
    let log = stage.recorder.complete().await.split_off(position);
    assert!(gone(&log, DEPLOYMENT.1, "middle") < gone(&log, "ConfigMap", "base-cm"), "{}", describe(&log));
    assert!(stage.uid(CLAIM, "base-data").await.is_some(), "a volume claim outlives its release");
    let definitions = bench.cluster().await.dynamic(DEFINITION.0, DEFINITION.1, "").await;
    definitions.get(&stage.definition()).await.expect("a definition outlives its release");
}

pub async fn a_package_is_moved_and_renamed_without_touching_workloads(bench: &Bench) {
    let stage = Stage::set(bench, "moving").await;
    let file = stage.file("", "1.0.0", json!({}));
    stage.commits(&[(ACCOUNT, &stage.account()), (FILE, &file)]).await;
    stage.runs("", "1.0.0").await;
    let before = stage.workloads().await;

    let renamed = file
        .replace("\"name\":\"roof\"", "\"name\":\"top\"")
        .replace("\"dependsOn\":[\"middle\"]", "\"dependsOn\":[\"middle\"],\"releaseName\":\"roof\"");
    assert_ne!(renamed, file);
    stage.commits(&[(FILE, &renamed)]).await;
    stage.has_child("", "top").await;
    stage.runs("", "1.0.0").await;
    assert_eq!(stage.workloads().await, before, "a renamed component");

    let other = renamed.replace(&format!("\"name\":\"{}\"", stage.name), &format!("\"name\":\"{}-b\"", stage.name));
    assert_ne!(other, renamed);
    stage.commits(&[(FILE, &other)]).await;
    stage.is_gone("").await;
    stage.runs("-b", "1.0.0").await;
    assert_eq!(stage.workloads().await, before, "a renamed Package");

    // The new owner applies it before the old one lets go.
    stage.suspends("one", true).await;
    stage.moves(FILE, "two/package.yaml").await;
    stage.is_owned_by("-b", "two").await;
    stage.suspends("one", false).await;
    stage.applied("one").await;
    stage.runs("-b", "1.0.0").await;
    assert_eq!(stage.workloads().await, before, "applied, then pruned");
}

fn gone(log: &[Entry], kind: &str, name: &str) -> u64 {
    let is = |entry: &Entry| entry.kind == kind && entry.name == name && entry.change == Change::Deleted;
    first(log, &format!("{kind} {name} gone"), is).version
}

/// All pods of a Deployment are of a version.
fn shows(entry: &Entry, name: &str, version: &str) -> bool {
    let (spec, status) = (&entry.object["spec"], &entry.object["status"]);
    entry.kind == DEPLOYMENT.1
        && entry.name == name
        && spec["template"]["metadata"]["labels"]["version"] == version
        && status["observedGeneration"] == entry.object["metadata"]["generation"]
        && status["availableReplicas"] == spec["replicas"]
        && status["updatedReplicas"] == spec["replicas"]
}

/// A repository that two Kustomizations follow, and a controller with a helm-controller.
struct Stage<'a> {
    bench: &'a Bench,
    name: String,
    charts: String,
    repository: Repository,
    recorder: Recorder,
    packages: Api<DynamicObject>,
    _controller: Process,
    _helm_controller: Process,
}

impl<'a> Stage<'a> {
    async fn set(bench: &'a Bench, prefix: &str) -> Self {
        tokio::join!(bench.flux(), bench.own_crds(), bench.charts());
        let cluster = bench.cluster().await;
        let name = cluster.namespace(prefix).await;
        let kinds = [HELM, PACKAGE, DEPLOYMENT, ("v1", "ConfigMap")];
        let recorder = Recorder::start(cluster, &name, &kinds).await;
        let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &name).await;
        let selector = format!("--watch-label-selector=windlass.dev/package in ({name},{name}-b)");
        let helm_controller = bench.helm_controller(&[&selector]).await;
        let controller = bench.controller(&name).await;
        let repository = bench.repository(&name).await;
        let stage = Self {
            bench,
            charts: bench.charts().await.url.clone(),
            repository,
            recorder,
            packages,
            _controller: controller,
            _helm_controller: helm_controller,
            name,
        };
        volume(bench, &stage.name, "base-data").await;
        stage.follow().await;
        stage
    }

    async fn follow(&self) {
        let cluster = self.bench.cluster().await;
        let keep = |name: &str| KEEP.replace("KEPT", name);
        self.repository.commit(&[("one/keep.yaml", &keep("one")), ("two/keep.yaml", &keep("two"))]);
        let source = json!({
            "apiVersion": SOURCE.0, "kind": SOURCE.1, "metadata": {"name": "it"},
            "spec": {
                "interval": "10m", "url": self.repository.http_url(&self.bench.http().await.url),
                "ref": {"branch": "main"},
            },
        });
        cluster.apply(&self.name, source).await;
        for name in ["one", "two"] {
            let kustomization = json!({
                "apiVersion": KUSTOMIZATION.0, "kind": KUSTOMIZATION.1, "metadata": {"name": name},
                "spec": {
                    "interval": "10m", "path": format!("./{name}"), "prune": true, "targetNamespace": self.name,
                    "sourceRef": {"kind": SOURCE.1, "name": "it"},
                },
            });
            cluster.apply(&self.name, kustomization).await;
        }
    }

    fn account(&self) -> String {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer"}});
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("{}-installer", self.name)},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": self.name}],
        });
        format!("{account}\n---\n{binding}\n")
    }

    fn definition(&self) -> String {
        format!("{}.bench.windlass.dev", self.plural())
    }

    /// Of a kind that no other test has.
    fn plural(&self) -> String {
        format!("{}s", self.name.replace(|letter: char| !letter.is_ascii_alphabetic(), ""))
    }

    /// Components `base`, `middle` and `roof`, each on top of the one before.
    fn spec(&self, version: &str, values: Value) -> Value {
        let chart = |name: &str, version: &str| json!({"repository": self.charts, "name": name, "version": version});
        json!({
            "version": version, "engine": "flux", "serviceAccountName": "installer",
            "components": [
                {"name": "base", "chart": chart("store", "1.0.0"), "values": {"plural": self.plural()}},
                {"name": "middle", "chart": chart("app", version), "values": values, "install": {"dependsOn": ["base"]}},
                {"name": "roof", "chart": chart("app", version), "install": {"dependsOn": ["middle"]}},
            ],
        })
    }

    fn file(&self, suffix: &str, version: &str, values: Value) -> String {
        self.package(suffix, self.spec(version, values))
    }

    fn without(&self, component: &str, version: &str) -> String {
        let mut spec = self.spec(version, json!({}));
        spec["components"].as_array_mut().expect("components").retain(|found| found["name"] != component);
        self.package("", spec)
    }

    fn package(&self, suffix: &str, spec: Value) -> String {
        let name = format!("{}{suffix}", self.name);
        json!({"apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": name}, "spec": spec}).to_string()
    }

    async fn commits(&self, files: &[(&str, &str)]) {
        let commit = self.repository.commit(files);
        self.fetch(&commit).await;
    }

    async fn removes(&self, files: &[&str]) {
        let commit = self.repository.remove(files);
        self.fetch(&commit).await;
    }

    async fn reverts(&self) {
        let commit = self.repository.revert();
        self.fetch(&commit).await;
    }

    async fn moves(&self, from: &str, to: &str) {
        let content = std::fs::read_to_string(self.repository.path.join(from)).expect("the file");
        std::fs::remove_file(self.repository.path.join(from)).expect("the file");
        self.commits(&[(to, &content)]).await;
    }

    async fn fetch(&self, commit: &str) {
        let cluster = self.bench.cluster().await;
        let sources = cluster.dynamic(SOURCE.0, SOURCE.1, &self.name).await;
        cluster.annotate(&sources, "it", "reconcile.fluxcd.io/requestedAt", commit).await;
    }

    async fn suspends(&self, kustomization: &str, suspend: bool) {
        let cluster = self.bench.cluster().await;
        let api = cluster.dynamic(KUSTOMIZATION.0, KUSTOMIZATION.1, &self.name).await;
        cluster.merge(&api, kustomization, json!({"spec": {"suspend": suspend}})).await;
    }

    /// A Kustomization has applied what Git has now.
    async fn applied(&self, kustomization: &str) {
        let api = self.bench.cluster().await.dynamic(KUSTOMIZATION.0, KUSTOMIZATION.1, &self.name).await;
        let head = self.repository.head();
        until(&api, kustomization, SOON, "applied", |object| {
            let revision = to_json(object.ok_or("it is gone")?)["status"]["lastAppliedRevision"].to_string();
            if revision.contains(&head) { Ok(()) } else { Err(revision) }
        })
        .await;
    }

    /// Waits until the Package is as `check` wants it.
    async fn package_is<T>(&self, suffix: &str, what: &str, check: impl Fn(&Value) -> Option<T>) -> T {
        let name = format!("{}{suffix}", self.name);
        until(&self.packages, &name, SOON, what, |package| {
            let package = to_json(package.ok_or("no such Package")?);
            check(&package)
                .ok_or_else(|| format!("{} {}", package["status"]["summary"], package["status"]["components"]))
        })
        .await
    }

    async fn runs(&self, suffix: &str, version: &str) {
        self.package_is(suffix, &format!("{version} runs"), |package| {
            let status = &package["status"];
            let runs = status["observedGeneration"] == package["metadata"]["generation"]
                && status["conditions"][0]["reason"] == "Ready"
                && status["version"] == version
                && package["metadata"]["deletionTimestamp"].is_null();
            runs.then_some(())
        })
        .await;
    }

    /// The message of a reason comes to name something.
    async fn says_at_last(&self, suffix: &str, reason: &str, what: &str) {
        let packages = self.bench.cluster().await.dynamic(PACKAGE.0, PACKAGE.1, &self.name).await;
        let name = format!("{}{suffix}", self.name);
        until(&packages, &name, SOON, &format!("{reason} for want of {what}"), |package| {
            let condition = to_json(package.ok_or("not there")?)["status"]["conditions"][0].clone();
            let message = condition["message"].as_str().unwrap_or_default();
            if condition["reason"] == reason && message.contains(what) { Ok(()) } else { Err(condition.to_string()) }
        })
        .await;
    }

    async fn says(&self, suffix: &str, reason: &str) -> String {
        self.package_is(suffix, reason, |package| {
            let ready = &package["status"]["conditions"][0];
            let said = ready["reason"] == reason
                && package["status"]["observedGeneration"] == package["metadata"]["generation"];
            said.then(|| ready["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    async fn is_owned_by(&self, suffix: &str, kustomization: &str) {
        self.package_is(suffix, &format!("applied by {kustomization}"), |package| {
            (package["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] == kustomization).then_some(())
        })
        .await;
    }

    async fn is_gone(&self, suffix: &str) {
        let name = format!("{}{suffix}", self.name);
        until(&self.packages, &name, SOON, "gone", |package| match package {
            None => Ok(()),
            Some(package) => Err(to_json(package)["status"]["summary"].to_string()),
        })
        .await;
    }

    async fn has_no_deployment(&self, name: &str) {
        let deployments = self.bench.cluster().await.dynamic(DEPLOYMENT.0, DEPLOYMENT.1, &self.name).await;
        until(&deployments, name, SOON, "gone", |found| match found {
            None => Ok(()),
            Some(deployment) => Err(to_json(deployment)["metadata"].to_string()),
        })
        .await;
    }

    async fn has_child(&self, suffix: &str, component: &str) {
        let releases = self.bench.cluster().await.dynamic(HELM.0, HELM.1, &self.name).await;
        let name = format!("{}{suffix}-{component}", self.name);
        until(&releases, &name, SOON, "made", |release| release.map(drop).ok_or("not there".to_owned())).await;
    }

    async fn has_note(&self, note: &str) {
        let maps = self.bench.cluster().await.dynamic("v1", "ConfigMap", &self.name).await;
        until(&maps, "middle-cm", SOON, &format!("note {note:?}"), |map| {
            let found = to_json(map.ok_or("not there")?)["data"]["note"].clone();
            if found == note { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
    }

    async fn moved_in_order(&self, version: &str) {
        let log = self.recorder.complete().await;
        let runs = first(&log, "middle runs", |entry| shows(entry, "middle", version));
        let written = first(&log, "roof is written", |entry| {
            entry.kind == DEPLOYMENT.1
                && entry.name == "roof"
                && entry.object["spec"]["template"]["metadata"]["labels"]["version"] == version
        });
        assert!(runs.version < written.version, "{}", describe(&log));
    }

    /// uids of everything that the releases have, and generations of their Deployments.
    async fn workloads(&self) -> Value {
        let mut found = Vec::new();
        for (kind, name) in
            [(DEPLOYMENT, "middle"), (DEPLOYMENT, "roof"), (CLAIM, "base-data"), (("v1", "ConfigMap"), "base-cm")]
        {
            found.push(json!({"name": name, "uid": self.uid(kind, name).await}));
        }
        found.into()
    }

    async fn uid(&self, kind: (&str, &str), name: &str) -> Option<String> {
        let api = self.bench.cluster().await.dynamic(kind.0, kind.1, &self.name).await;
        api.get_opt(name).await.expect("an answer").and_then(|object| object.metadata.uid)
    }
}
