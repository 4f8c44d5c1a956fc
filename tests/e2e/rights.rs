//! What the controller may do: exactly its role, and what a Package's account may do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::{documents, to_json};
use crate::support::tools::repository;
use crate::support::wait::{until, until_true};
use crate::support::windlass::run;

const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const RBAC: &str = "rbac.authorization.k8s.io/v1";
pub const SYSTEM: &str = "windlass-system";
/// The account that `manifests/tenant` names.
const ACCOUNT: &str = "packages";
const SOON: Duration = Duration::from_secs(60);

pub async fn the_controller_works_with_exactly_its_role(bench: &Bench) {
    bench.flux().await;
    bench.own_crds().await;
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("rights").await;
    for file in ["controller/namespace.yaml", "controller/rbac.yaml", "controller/users.yaml"] {
        apply_file(bench, "", file).await;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = kubeconfig_of(bench, directory.path().join("kubeconfig"), SYSTEM, "windlass").await;
    let selector = format!("--watch-label-selector=windlass.dev/package={namespace}");
    let _helm_controller = bench.helm_controller(&[&selector]).await;
    let lease = format!("--lease-namespace={SYSTEM}");
    let _controller = bench.controller_as(&kubeconfig, &namespace, &[&lease]).await;
    let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &namespace).await;

    // Without the tenant's role it cannot act as the account, and says so.
    tenant(bench, &namespace).await;
    cluster.apply(&namespace, package(bench, &namespace, "1.0.0").await).await;
    let message = reaches(&packages, &namespace, "AccessDenied", "").await;
    assert!(message.contains("see manifests/tenant"), "{message}");
    assert!(message.contains(&format!("ServiceAccount {namespace}/{ACCOUNT}")), "{message}");
    apply_file(bench, &namespace, "tenant/impersonation.yaml").await;

    // The account may not read what readyWhen names: the message tells nothing of its content.
    let message = until(&packages, &namespace, SOON, "another refusal", |package| {
        let message = to_json(package.ok_or("it is gone")?)["status"]["conditions"][0]["message"].to_string();
        if message.contains("grant get, list and watch") { Ok(message) } else { Err(message) }
    })
    .await;
    assert!(message.contains("ClusterRole/edit may not be read"), "{message}");
    assert!(!message.contains("rules") && !message.contains("secrets"), "{message}");
    let reads = json!({
        "apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": format!("{namespace}-reads")},
        "rules": [{
            "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["get", "list", "watch"],
        }],
    });
    cluster.apply("", reads).await;
    cluster.apply("", binding("ClusterRoleBinding", &namespace, "reads", &format!("{namespace}-reads"))).await;
    reaches(&packages, &namespace, "Ready", "1.0.0").await;

    cluster.apply(&namespace, package(bench, &namespace, "1.1.0").await).await;
    reaches(&packages, &namespace, "Ready", "1.1.0").await;

    people_may_do_what_their_roles_say(bench, &namespace, directory.path()).await;

    // The account loses its rights before its Package goes: nothing is dropped in silence.
    let bindings = cluster.dynamic(RBAC, "RoleBinding", &namespace).await;
    cluster.delete(&bindings, &format!("{namespace}-installs"), SOON).await;
    packages.delete(&namespace, &DeleteParams::default()).await.expect("a deletion");
    until(&packages, &namespace, SOON, "the account is named", |package| {
        let message = to_json(package.ok_or("it is gone")?)["status"]["conditions"][0]["message"].to_string();
        if message.contains(&format!("its ServiceAccount {ACCOUNT} may no longer")) { Ok(()) } else { Err(message) }
    })
    .await;
    tenant(bench, &namespace).await;
    until(&packages, &namespace, SOON, "gone", |package| package.map_or(Ok(()), |_| Err("still there".to_owned())))
        .await;
    let maps = cluster.dynamic("v1", "ConfigMap", &namespace).await;
    assert!(maps.get_opt("conf-cm").await.expect("an answer").is_none(), "what the release had is gone");
}

/// Somebody with `view` looks, and is told what is left out; only `windlass-edit` may write.
async fn people_may_do_what_their_roles_say(bench: &Bench, namespace: &str, directory: &Path) {
    let cluster = bench.cluster().await;
    let person = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "person"}});
    cluster.apply(namespace, person).await;
    let allow = async |role: &str| {
        let mut allowed = binding("RoleBinding", namespace, role, role);
        allowed["subjects"][0]["name"] = "person".into();
        cluster.apply(namespace, allowed).await;
    };
    allow("view").await;
    let kubeconfig = kubeconfig_of(bench, directory.join("person"), namespace, "person").await.display().to_string();
    let windlass = |command: &str| run([command, namespace, "-n", namespace, "--kubeconfig", &kubeconfig]);
    let looked = until_true(SOON, "the role takes effect", async || {
        let looked = windlass("why");
        if looked.success { Ok(looked) } else { Err(looked.stderr) }
    })
    .await;
    assert!(looked.stdout.contains("is ready for ") && looked.stdout.contains(": Ready"), "{looked:?}");
    assert!(looked.stderr.contains(&format!("note: you may not list helmreleases in {namespace}")), "{looked:?}");
    for command in ["status", "history"] {
        let looked = windlass(command);
        assert!(looked.success && looked.stdout.contains("1.1.0"), "{looked:?}");
    }
    let patched = async || {
        let client = Client::try_from(config_of(&kubeconfig).await).expect("a client");
        let packages: Api<windlass::api::Package> = Api::namespaced(client, namespace);
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"windlass.dev/retry": "by-hand"}}}));
        packages.patch(namespace, &PatchParams::default(), &patch).await.map(drop).map_err(|error| error.to_string())
    };
    let refused = patched().await.expect_err("a refusal");
    assert!(refused.contains("cannot patch resource"), "{refused}");
    allow("windlass-edit").await;
    until_true(SOON, "the role takes effect", patched).await;
}

async fn config_of(kubeconfig: &str) -> Config {
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.expect("a configuration")
}

/// An account that Helm can install with.
async fn tenant(bench: &Bench, namespace: &str) {
    let cluster = bench.cluster().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    cluster.apply(namespace, account).await;
    cluster.apply(namespace, binding("RoleBinding", namespace, "installs", "admin")).await;
}

fn binding(kind: &str, namespace: &str, name: &str, role: &str) -> Value {
    json!({
        "apiVersion": RBAC, "kind": kind, "metadata": {"name": format!("{namespace}-{name}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    })
}

async fn package(bench: &Bench, name: &str, version: &str) -> Value {
    let repository = &bench.charts().await.url;
    json!({
        "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": name},
        "spec": {
            "version": version, "engine": "flux", "serviceAccountName": ACCOUNT,
            "components": [{
                "name": "conf", "chart": {"repository": repository, "name": "conf", "version": version},
                "install": {"readyWhen": [{
                    "apiVersion": RBAC, "kind": "ClusterRole", "name": "edit",
                    "expr": "version != '' && object.metadata.name == 'edit'",
                }]},
            }],
        },
    })
}

async fn reaches(packages: &Api<DynamicObject>, name: &str, reason: &str, version: &str) -> String {
    until(packages, name, SOON, &format!("{reason} {version}"), |package| {
        let status = package.map(|package| to_json(package)["status"].clone()).unwrap_or_default();
        let ready = &status["conditions"][0];
        let reached = ready["reason"] == reason && status["version"].as_str().unwrap_or_default() == version;
        if reached { Ok(ready["message"].as_str().unwrap_or_default().to_owned()) } else { Err(ready.to_string()) }
    })
    .await
}

pub async fn apply_file(bench: &Bench, namespace: &str, name: &str) {
    let path = repository().join("manifests").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for object in documents(&text) {
        let own = object["metadata"]["namespace"].as_str().unwrap_or(namespace).to_owned();
        bench.cluster().await.apply(&own, object).await;
    }
}

/// A kubeconfig with a token of a service account.
pub async fn kubeconfig_of(bench: &Bench, path: PathBuf, namespace: &str, account: &str) -> PathBuf {
    let control_plane = bench.control_plane().await;
    let accounts: Api<ServiceAccount> = Api::namespaced(control_plane.client.clone(), namespace);
    let spec = TokenRequestSpec { audiences: Vec::new(), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await.expect("a token");
    let token = answer.status.expect("a status").token;
    let text = std::fs::read_to_string(&control_plane.kubeconfig).expect("a kubeconfig");
    let mut kubeconfig: Value = serde_json::from_str(&text).expect("JSON");
    kubeconfig["users"][0]["user"] = json!({"token": token});
    std::fs::write(&path, kubeconfig.to_string()).expect("a file");
    path
}
