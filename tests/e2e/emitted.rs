//! What we emit is what the API server and Argo CD make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::ListParams;
use serde_json::{Value, json};
use windlass::api::wellknown::FINALIZER;
use windlass::api::{DeletionPolicy, Engine, PackageSpec, PackageStatus};
use windlass::engine::{
    ArgoTarget, CanaryGuard, Destination, FluxTarget, HookRun, Owner, PathPin, RenderContext, Target, render,
};
use windlass::package::definition::{Definition, parse};
use windlass::package::digest::digest;
use windlass::package::version::Version;
use windlass::rollout::{Action, Cluster, PackageView, Snapshot, decide};

use crate::support::bench::Bench;
use crate::support::cluster::{documents, to_json};
use crate::support::tools::repository;
use crate::support::{wait, windlass as program};

const ENGINES: [Engine; 2] = [Engine::Flux, Engine::Argo];
const URL: &str = "https://git.example.org/packages.git";
const COMMIT: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Every kind there is, by engine.
const KINDS: [(&str, &str); 11] = [
    ("argo", "Application"),
    ("argo", "Package"),
    ("argo", "PackageRevision"),
    ("flux", "GitRepository"),
    ("flux", "HelmChart"),
    ("flux", "HelmRelease"),
    ("flux", "HelmRepository"),
    ("flux", "Namespace"),
    ("flux", "OCIRepository"),
    ("flux", "Package"),
    ("flux", "PackageRevision"),
];

pub async fn api_server_takes_everything_we_emit(bench: &Bench) {
    tokio::join!(bench.own_crds(), bench.flux(), bench.argocd());
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("emitted").await;
    let mut kinds = BTreeSet::new();
    let mut refused = Vec::new();
    let misspelt = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Package", "metadata": {"name": "misspelt"},
        "spec": {"version": "1.0.0", "component": []},
    });
    cluster.dry_run(&namespace, &misspelt).await.expect_err("an unknown field");
    for (engine, from, object) in emitted(&namespace) {
        kinds.insert((engine.as_str(), object["kind"].as_str().expect("a kind").to_owned()));
        match cluster.dry_run(&namespace, &object).await {
            Ok(kept) => {
                let lost = lost(&object, &to_json(&kept), &from);
                refused.extend(lost.map(|place| format!("{place} is not kept\n{object:#}")));
            }
            Err(error) => refused.push(format!("{from}: {error}\n{object:#}")),
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    let expected = KINDS.map(|(engine, kind)| (engine, kind.to_owned()));
    assert_eq!(kinds, BTreeSet::from(expected));
}

/// Where something that was sent is not in what the API server would keep.
fn lost(sent: &Value, kept: &Value, place: &str) -> Option<String> {
    match (sent, kept) {
        (Value::Object(sent), Value::Object(kept)) => sent.iter().find_map(|(key, value)| {
            let place = format!("{place}.{key}");
            kept.get(key).map_or(Some(place.clone()), |kept| lost(value, kept, &place))
        }),
        (Value::Array(sent), Value::Array(kept)) if sent.len() == kept.len() => {
            let mut pairs = sent.iter().zip(kept).enumerate();
            pairs.find_map(|(index, (sent, kept))| lost(sent, kept, &format!("{place}[{index}]")))
        }
        // 10.0 may come back as 10.
        (Value::Number(sent), Value::Number(kept)) if sent.as_f64() == kept.as_f64() => None,
        (sent, kept) => (sent != kept).then(|| place.to_owned()),
    }
}

/// Objects with where they come from: both engines, every mode, all examples, Packages that
/// say everything, a hook's run, a revision.
fn emitted(namespace: &str) -> Vec<(Engine, String, Value)> {
    let mut all = Vec::new();
    for engine in ENGINES {
        let everything = everything(engine);
        let inputs = program::examples().into_iter().map(|state| (state.clone(), Some(state)));
        for (input, root) in inputs.chain([(everything.clone(), None)]) {
            for mode in ["managed", "native", "package"] {
                let from = format!("{} {mode} {}", input.display(), engine.as_str());
                let objects = rendered(&input, root.as_deref(), engine, mode, namespace);
                assert!(!objects.is_empty(), "{from}");
                all.extend(objects.into_iter().map(|object| (engine, from.clone(), object)));
            }
        }
        let whole = rendered(&everything, None, engine, "package", namespace).remove(0);
        let hook = hook(&definition(&whole), engine);
        all.extend(hook.into_iter().map(|object| (engine, "a hook".to_owned(), object)));
        let example = repository().join("examples/kubevirt/v1");
        let packages = match engine {
            Engine::Flux => rendered(&example, Some(&example), engine, "package", namespace),
            Engine::Argo => vec![whole],
        };
        let revision = revision(&definition(&packages[0]), engine);
        all.push((engine, "a revision".to_owned(), revision));
    }
    all
}

/// A Package that uses every field.
fn everything(engine: Engine) -> PathBuf {
    repository().join(format!("tests/data/packages/everything-{}.yaml", engine.as_str()))
}

fn rendered(input: &Path, root: Option<&Path>, engine: Engine, mode: &str, namespace: &str) -> Vec<Value> {
    let mut arguments = vec!["--engine", engine.as_str(), "--mode", mode, "-n", namespace];
    arguments.extend(["--repo-url", URL, "--revision", COMMIT]);
    if mode == "native" {
        arguments.push("--skip-hooks");
    }
    if let Some(root) = root {
        arguments.extend(["--chart-root", root.to_str().expect("text")]);
    }
    documents(&program::render(&[input], &arguments))
}

fn definition(package: &Value) -> Definition {
    let text = |key: &str| package["metadata"][key].as_str().expect("text");
    let spec: PackageSpec = serde_json::from_value(package["spec"].clone()).expect("a spec");
    parse(text("name"), text("namespace"), &spec).expect("a definition")
}

/// The objects of the Package's hook for one upgrade.
fn hook(package: &Definition, engine: Engine) -> Vec<Value> {
    let component = package.components.iter().find(|component| component.hook).expect("a hook");
    let digest = digest(component, engine).expect("a digest");
    let (from, to) = (Version::parse("1.0.0").expect("a version"), Version::parse("1.2.0").expect("a version"));
    let destination = Destination::in_cluster();
    let target = match engine {
        Engine::Flux => Target::Flux(FluxTarget { path_pin: PathPin::Follow, depends_on: &[] }),
        Engine::Argo => Target::Argo(ArgoTarget { project: "default", destination: &destination }),
    };
    let context = RenderContext {
        package,
        account: package.service_account.as_ref(),
        wave: 0,
        digest: &digest,
        hook: Some(HookRun { number: 2, from: &from, to: &to, migrated_to: None }),
        owner: Owner::Controller,
        guard: CanaryGuard::Rendered,
        annotations: BTreeMap::new(),
        target,
    };
    let rendered = render(component, &context).expect("a hook's objects");
    rendered.into_objects().into_iter().map(Value::from).collect()
}

/// The first revision that the controller would record.
fn revision(package: &Definition, engine: Engine) -> Value {
    let decision = decide(&snapshot(package, engine), Timestamp::UNIX_EPOCH);
    let spec = decision.actions.into_iter().find_map(|action| match action {
        Action::CreateRevision(spec) => Some(spec),
        _ => None,
    });
    let spec = spec.unwrap_or_else(|| panic!("no revision, but {:?}", decision.status));
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "PackageRevision",
        "metadata": {"name": format!("{}-1", package.name)}, "spec": spec,
    })
}

/// A Package that nothing is known of yet, in a cluster that has its engine.
fn snapshot(package: &Definition, engine: Engine) -> Snapshot {
    Snapshot {
        unreadable: Vec::new(),
        others: Vec::new(),
        daemon_sets: BTreeMap::new(),
        refusals: BTreeMap::new(),
        policies: BTreeMap::new(),
        rights: BTreeMap::new(),
        package: PackageView {
            name: package.name.clone(),
            namespace: package.namespace.to_string(),
            uid: "uid".to_owned(),
            resource_version: "1".to_owned(),
            generation: 1,
            deleting: false,
            finalizers: vec![FINALIZER.to_owned()],
            annotations: BTreeMap::new(),
            labels: BTreeMap::new(),
            definition: Ok(package.clone().into()),
            service_account: package.service_account.clone(),
            suspend: false,
            deletion_policy: DeletionPolicy::Uninstall,
            status: PackageStatus::default(),
            still_for: Duration::from_secs(60),
        },
        revisions: Vec::new(),
        children: Vec::new(),
        sources: Vec::new(),
        orphaned_sources: Default::default(),
        objects: BTreeMap::new(),
        peers: Vec::new(),
        cluster: Cluster {
            engines: BTreeSet::from([engine]),
            default_engine: None,
            kubernetes: Version::parse("1.36.3").ok(),
            namespace_terminating: false,
            crd_terminating: false,
            argo_project: "default".to_owned(),
            requirements_settle: Duration::ZERO,
            deletion_settle: Duration::ZERO,
            identity: None,
            guard_settles_in: None,
            default_service_account: None,
            require_service_account: false,
            watching_for: Duration::from_secs(60),
        },
    }
}

const SOON: Duration = Duration::from_secs(90);
/// Argo CD compares every 30 s on the bench.
const OBSERVED: Duration = Duration::from_secs(60);

pub async fn argo_cd_sees_no_difference_after_the_first_sync(bench: &Bench) {
    tokio::join!(bench.own_crds(), bench.flux(), bench.argocd());
    let cluster = bench.cluster().await;
    let argocd = bench.argocd().await;
    let prefix = cluster.namespace("same").await;
    let mut parents = Vec::new();
    for (output, engine) in
        [("package", Engine::Argo), ("package", Engine::Flux), ("native", Engine::Argo), ("native", Engine::Flux)]
    {
        let name = format!("{prefix}-{output}-{}", engine.as_str());
        cluster.named_namespace(&name).await;
        let package = match output {
            "package" => std::fs::read_to_string(everything(engine)).expect("a file"),
            _ => installable(bench, &name, engine).await,
        };
        let repository = bench.repository(&name).await;
        let git = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "packages"},
            "spec": {"interval": "10m", "ref": {"branch": "main"}, "url": repository.http_url(&bench.http().await.url)},
        });
        let commit = repository.commit(&files(&package, &git.to_string()));
        let parameters = json!([
            {"name": "output", "string": output}, {"name": "engine", "string": engine.as_str()},
            {"name": "path", "string": "packages"},
        ]);
        let source = json!({
            "repoURL": repository.file_url(), "path": ".", "targetRevision": "main",
            "plugin": {"name": "windlass", "parameters": parameters},
        });
        // Applications are looked for everywhere here.
        argocd.application(&name, source, &name).await;
        parents.push((name, commit));
    }
    for (name, commit) in &parents {
        let package = name.contains("-package-");
        // Nobody plays the controller, or Flux.
        let health = if package || name.ends_with("-flux") { "Progressing" } else { "Healthy" };
        argocd.synced_with_health(name, commit, health, SOON).await;
    }
    nulls_are_kept(bench, &prefix).await;
    stay_as_they_are(bench, &prefix).await;
}

/// A null in the values takes a chart's default away.
async fn nulls_are_kept(bench: &Bench, prefix: &str) {
    let cluster = bench.cluster().await;
    for (namespace, api_version, kind, name, values) in [
        ("package-argo", "windlass.dev/v1alpha1", "Package", "everything", "/spec/components/1/values"),
        ("native-argo", "argoproj.io/v1alpha1", "Application", "it-base", "/spec/source/helm/valuesObject"),
        ("native-flux", "helm.toolkit.fluxcd.io/v2", "HelmRelease", "it-base", "/spec/values"),
    ] {
        let namespace = format!("{prefix}-{namespace}");
        let object = cluster.dynamic(api_version, kind, &namespace).await.get(name).await.expect("the object");
        let values = to_json(&object).pointer(values).cloned().expect("values");
        assert_eq!(values.get("null"), Some(&Value::Null), "{kind} {values}");
    }
}

/// Applications whose names or namespaces begin so stay Synced without another operation, and
/// are compared meanwhile.
async fn stay_as_they_are(bench: &Bench, prefix: &str) {
    let cluster = bench.cluster().await;
    let argocd = bench.argocd().await;
    let (resource, _) = cluster.discover("argoproj.io/v1alpha1", "Application").await;
    let api = kube::Api::<kube::api::DynamicObject>::all_with(cluster.client.clone(), &resource);
    let mine = |object: &kube::api::DynamicObject| {
        let begins = |text: &Option<String>| text.as_ref().is_some_and(|text| text.starts_with(&format!("{prefix}-")));
        begins(&object.metadata.name) || begins(&object.metadata.namespace)
    };
    let state = |object: &kube::api::DynamicObject| {
        let object = to_json(object);
        let status = &object["status"];
        let (began, phase) = (&status["operationState"]["startedAt"], &status["operationState"]["phase"]);
        json!([object["metadata"]["name"], status["sync"]["status"], began, phase, object["operation"]])
    };
    let compared = |object: &kube::api::DynamicObject| to_json(object)["status"]["reconciledAt"].clone();
    let list = async || {
        let all = api.list(&ListParams::default()).await.expect("a list").items;
        all.into_iter().filter(mine).map(|object| (state(&object), compared(&object))).collect::<Vec<_>>()
    };
    let before = list().await;
    let states: BTreeSet<String> = before.iter().map(|(state, _)| state.to_string()).collect();
    assert!(states.iter().all(|state| state.contains(r#""Synced""#) && state.contains("Succeeded")), "{states:#?}");
    assert_eq!(before.len(), 6, "four, and the two that one of them made: {states:#?}");
    let parents = argocd.applications().await.list(&ListParams::default()).await.expect("a list");
    for parent in parents.iter().filter(|parent| mine(parent)) {
        // Generated anew, so that the plugin says the same twice.
        argocd.refresh(parent.metadata.name.as_deref().expect("a name")).await;
    }
    wait::throughout(&api, ListParams::default(), OBSERVED, "as after the first sync", |objects| {
        let now: BTreeSet<String> =
            objects.iter().filter(|object| mine(object)).map(|object| state(object).to_string()).collect();
        if now == states { Ok(()) } else { Err(format!("{now:#?}, before {states:#?}")) }
    })
    .await;
    let after = list().await;
    for ((state, before), (_, after)) in before.iter().zip(&after) {
        assert_ne!(before, after, "{state} was never compared");
    }
}

/// A Package whose releases Argo CD can install, with all that native output can say.
async fn installable(bench: &Bench, namespace: &str, engine: Engine) -> String {
    let charts = &bench.charts().await.url;
    let components = json!([
        {
            "name": "base", "path": "charts/conf", "chartVersion": "1.0.0", "valuesFiles": ["values.yaml"],
            "values": {"note": "10", "null": null, "whole": 1.0, "nested": {"list": [1, {}], "empty": {}}},
            "install": {"namespace": namespace, "releaseName": "base.one", "privileged": true, "deleteData": true},
        },
        {
            "name": "web", "chart": {"repository": charts, "name": "app", "version": "1.1.0"},
            "values": {"replicas": 2},
            "install": {
                "namespace": namespace, "dependsOn": ["base"], "upgradeCRDs": "Skip",
                "ignore": [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}],
            },
        },
    ]);
    let source = json!({"kind": "GitRepository", "name": "packages"});
    let spec = json!({
        "version": "1.0.0", "engine": engine.as_str(), "sourceRef": source, "components": components,
        "upgrade": {"timeout": "5m30s"},
    });
    program::package("it", spec)
}

/// A repository with the Package, the charts that it names by path, and where Flux gets them.
fn files<'a>(package: &'a str, git: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("packages/package.yaml", package),
        ("packages/source.yaml", git),
        ("charts/conf/Chart.yaml", include_str!("../data/charts/conf/Chart.yaml")),
        ("charts/conf/values.yaml", include_str!("../data/charts/conf/values.yaml")),
        ("charts/conf/templates/cm.yaml", include_str!("../data/charts/conf/templates/cm.yaml")),
        ("charts/agent/Chart.yaml", "apiVersion: v2\nname: agent\nversion: 1.2.0\n"),
        ("charts/agent/values.yaml", "{}\n"),
        ("charts/agent/values-production.yaml", "{}\n"),
    ]
}
