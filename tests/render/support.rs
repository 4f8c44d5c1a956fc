//! Packages as definitions, and objects as text.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass::api::{Engine, PackageSpec};
use windlass::engine::{
    ArgoTarget, CanaryGuard, Destination, FluxTarget, HookRun, Manifest, Owner, PathPin, RenderContext, RenderError,
    Rendered, Target, render,
};
use windlass::package::definition::{Component, Definition, parse};
use windlass::package::digest::{ComponentDigest, digest};
use windlass::package::yaml::write::write;

/// The Package `app` in namespace `packages` with this spec.
pub fn definition(spec: Value) -> Definition {
    let spec: PackageSpec = serde_json::from_value(spec).unwrap();
    parse("app", "packages", &spec).unwrap()
}

/// One Package with one component named `one`, of chart `one` 1.0.0.
pub fn single(component: Value) -> Definition {
    let mut whole = serde_json::json!({"name": "one"});
    if component.get("path").is_none() {
        whole["chart"] =
            serde_json::json!({"repository": "https://charts.example.org", "name": "one", "version": "1.0.0"});
    }
    for (key, value) in component.as_object().unwrap() {
        whole[key] = value.clone();
    }
    definition(serde_json::json!({
        "version": "1.0.0",
        "sourceRef": {"kind": "GitRepository", "name": "packages"},
        "components": [whole],
    }))
}

/// A digest that is easy to tell from others.
pub fn fixed_digest() -> ComponentDigest {
    ComponentDigest::from_record(format!("v1:{}", "0".repeat(64)))
}

pub fn flux<'a>(package: &'a Definition, digest: &'a ComponentDigest) -> RenderContext<'a> {
    let target = Target::Flux(FluxTarget { path_pin: PathPin::Follow, depends_on: &[] });
    context(package, digest, target)
}

pub fn argo<'a>(
    package: &'a Definition,
    digest: &'a ComponentDigest,
    destination: &'a Destination,
) -> RenderContext<'a> {
    context(package, digest, Target::Argo(ArgoTarget { project: "default", destination }))
}

fn context<'a>(package: &'a Definition, digest: &'a ComponentDigest, target: Target<'a>) -> RenderContext<'a> {
    RenderContext {
        package,
        account: package.service_account.as_ref(),
        wave: 0,
        digest,
        hook: None,
        owner: Owner::Controller,
        guard: CanaryGuard::Rendered,
        annotations: BTreeMap::new(),
        target,
    }
}

/// The only component of a Package, rendered for an engine as the controller does.
pub fn rendered(package: &Definition, engine: Engine, hook: Option<HookRun<'_>>) -> Result<Rendered, RenderError> {
    let component: &Component = &package.components[0];
    let digest = digest(component, engine).unwrap_or_else(|_| fixed_digest());
    let destination = Destination::in_cluster();
    let mut context = match engine {
        Engine::Flux => flux(package, &digest),
        Engine::Argo => argo(package, &digest, &destination),
    };
    context.hook = hook;
    render(component, &context)
}

/// The release of the only component of a Package.
pub fn release(package: &Definition, engine: Engine) -> Manifest {
    rendered(package, engine, None).unwrap().release
}

pub fn text(objects: Vec<Manifest>) -> String {
    let values: Vec<Value> = objects.into_iter().map(Value::from).collect();
    write(&values).unwrap()
}

/// The value at a dotted path, `null` if there is none.
pub fn at(manifest: &Manifest, path: &str) -> Value {
    let path: Vec<&str> = path.split('.').collect();
    manifest.get(&path).cloned().unwrap_or_default()
}

/// A Package of namespace `packages` whose components are `name: [dependsOn]`.
pub fn package(name: &str, requires: &[&str], components: &[(&str, &[&str])]) -> Definition {
    let requires: Vec<Value> = requires.iter().map(|name| serde_json::json!({"package": name})).collect();
    let components: Vec<Value> = components
        .iter()
        .map(|(name, depends_on)| {
            serde_json::json!({
                "name": name,
                "chart": {"repository": "https://charts.example.org", "name": name, "version": "1.0.0"},
                "install": {"dependsOn": depends_on},
            })
        })
        .collect();
    let spec = serde_json::json!({"version": "1.0.0", "requires": requires, "components": components});
    parse(name, "packages", &serde_json::from_value(spec).unwrap()).unwrap()
}

/// Names of the releases of a stream, in order.
pub fn releases(objects: &[Manifest]) -> Vec<&str> {
    objects.iter().filter(|object| matches!(object.kind(), "HelmRelease" | "Application")).map(Manifest::name).collect()
}
