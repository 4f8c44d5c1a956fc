//! What `windlass plan` prints is what happens: the order of its steps is that of
//! the writes in a simulated cluster to which the same commit is made.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::Value;

use windlass::api::Engine;
use windlass::chart::Library;
use windlass::package::load::{Input, NamespaceRule, load};
use windlass::package::names::Namespace;
use windlass::plan::{Action, PackagePlan, Plan, State, plan};
use windlass::rehearse::play::{Played, play};
use windlass::rehearse::scene::{Scene, read};
use windlass::sim::Verb;
use windlass::translate::Compiled;

/// A component in one state of the repository.
#[derive(Clone, Debug)]
struct Part {
    name: usize,
    hook: bool,
    /// Its chart's version.
    version: u8,
    /// Earlier ones that it depends on.
    after: Vec<usize>,
}

/// A Package in one state of the repository.
#[derive(Clone, Debug)]
struct Item {
    parts: Vec<Part>,
    /// Whether it requires the Package before it.
    requires: bool,
    version: u8,
}

type Items = Vec<Option<Item>>;

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (any::<bool>(), prop::bool::weighted(0.15), 1..3u8, prop::collection::btree_set(0..5usize, 0..3));
    prop::collection::vec(part, 1..5).prop_map(|drawn| {
        let there: Vec<usize> =
            drawn.iter().enumerate().filter(|(_, (is_there, hook, ..))| *is_there && !hook).map(|(at, _)| at).collect();
        let parts = drawn.iter().enumerate().filter(|(_, (is_there, ..))| *is_there);
        let part = |(name, (_, hook, version, after)): (usize, &(bool, bool, u8, BTreeSet<usize>))| Part {
            name,
            hook: *hook,
            version: *version,
            after: after.iter().copied().filter(|one| *one < name && !hook && there.contains(one)).collect(),
        };
        parts.map(part).collect()
    })
}

fn items() -> impl Strategy<Value = Items> {
    let item = (parts(), any::<bool>(), 1..4u8)
        .prop_filter("a Package has a component", |(parts, ..)| !parts.is_empty())
        .prop_map(|(parts, requires, version)| Item { parts, requires, version });
    prop::collection::vec(prop::option::weighted(0.85, item), 1..4)
}

/// The file of a state. Components stand in the reverse of their order.
fn file(items: &Items, offset: u8) -> String {
    let mut text = String::new();
    for (number, item) in items.iter().enumerate() {
        let Some(item) = item else { continue };
        let version = item.version + offset;
        let _ = write!(
            text,
            "---\napiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: p{number}, namespace: shop}}\n\
             spec:\n  version: 1.{version}.0\n  rollback: {{safe: true}}\n"
        );
        if let Some(required) = number.checked_sub(1).filter(|before| item.requires && items[*before].is_some()) {
            let _ = writeln!(text, "  requires: [{{package: p{required}}}]");
        }
        text.push_str("  components:\n");
        for part in item.parts.iter().rev() {
            let after: Vec<String> = part.after.iter().map(|one| format!("c{one}")).collect();
            let phase = if part.hook { ", phase: PreUpgrade" } else { "" };
            let _ = writeln!(
                text,
                "  - name: c{0}\n    chart: {{repository: https://charts.example.org, name: c{0}, version: 1.{1}.0}}\n    \
                 install: {{releaseName: p{number}-c{0}, dependsOn: [{2}]{phase}}}",
                part.name,
                part.version + offset * u8::from(part.hook),
                after.join(", "),
            );
        }
    }
    text
}

fn compiled(text: &str, engine: Engine, commit: u32) -> Option<Vec<Compiled>> {
    let rule = NamespaceRule::Default(Namespace::parse("shop").unwrap());
    let loaded =
        load(&[Input::Text { bytes: text.as_bytes().to_vec(), shown: "packages.yaml".into() }], &rule).unwrap();
    assert!(!loaded.has_errors(), "{text}\n{:?}", loaded.diagnostics);
    read(loaded.packages, engine, commit).ok()
}

/// What Windlass wrote, once per object: `move`, `hook` or `remove` and the release.
fn written(played: &Played) -> Vec<(String, String)> {
    let log = played.rehearsal.world.store.log();
    let mut specs: BTreeMap<String, Value> = BTreeMap::new();
    let mut found = Vec::new();
    for (position, change) in log.iter().enumerate() {
        if !matches!(change.key.kind.as_str(), "HelmRelease" | "Application") {
            continue;
        }
        let name = change.key.name.clone();
        let spec = change.object.get("spec").cloned().unwrap_or_default();
        let before = specs.insert(name.clone(), spec.clone());
        if change.verb == Verb::Deleted {
            specs.remove(&name);
        }
        let deleting = change.object.get("metadata").is_some_and(|metadata| !metadata["deletionTimestamp"].is_null());
        let what = match (deleting || change.verb == Verb::Deleted, before != Some(spec)) {
            (true, _) => "remove",
            (false, true) => "move",
            (false, false) => continue,
        };
        let entry = (what.to_owned(), name);
        if position >= played.position && change.actor == "windlass" && !found.contains(&entry) {
            found.push(entry);
        }
    }
    found
}

fn release(package: &PackagePlan, component: &str) -> String {
    format!("{}-{component}", package.name)
}

/// What the plan says will be written, in its order.
fn said(package: &PackagePlan) -> Vec<(String, String)> {
    let steps = package.steps.iter().filter_map(|step| {
        let what = match step.action {
            Action::Install | Action::Upgrade | Action::HandOver => "move",
            Action::Remove => "remove",
            // Hooks are told apart below: they also go when they are done.
            Action::RunHook | Action::VerifyAgain | Action::Replace => return None,
        };
        Some((what.to_owned(), release(package, &step.component)))
    });
    steps.collect()
}

fn judge(plan: &Plan, played: &Played, groups: &[Vec<String>]) -> Result<(), TestCaseError> {
    let written = written(played);
    for package in &plan.packages {
        let hooks: Vec<String> = package
            .steps
            .iter()
            .filter(|step| step.action == Action::RunHook)
            .map(|step| release(package, &step.component))
            .collect();
        let of = |name: &str| name.starts_with(&format!("{}-", package.name));
        let own: Vec<_> = written.iter().filter(|(_, name)| of(name)).cloned().collect();
        let moves: Vec<_> =
            own.iter().filter(|(_, name)| !hooks.iter().any(|hook| name.contains(hook.as_str()))).cloned().collect();
        prop_assert_eq!(&said(package), &moves, "{}", &package.name);
    }
    // What has nothing to do with each other goes side by side.
    for group in groups {
        let of_it = plan.packages.iter().filter(|package| group.contains(&package.name));
        let first = |package: &PackagePlan| {
            let prefix = format!("{}-", package.name);
            written.iter().position(|(_, name)| name.starts_with(&prefix))
        };
        let places: Vec<usize> = of_it.filter_map(first).collect();
        prop_assert!(places.is_sorted(), "{places:?} of {written:?}");
    }
    Ok(())
}

/// Names of Packages that require each other before or after.
fn groups(from: &Items, to: &Items) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    for number in 0..from.len().max(to.len()) {
        let requires = |items: &Items| {
            let item = items.get(number).and_then(Option::as_ref);
            number > 0 && item.is_some_and(|item| item.requires) && items[number - 1].is_some()
        };
        match groups.last_mut().filter(|_| requires(from) || requires(to)) {
            Some(group) => group.push(format!("p{number}")),
            None => groups.push(vec![format!("p{number}")]),
        }
    }
    groups
}

fn compare(from: &Items, to: &Items, engine: Engine) -> Result<(), TestCaseError> {
    let (Some(before), Some(after)) = (compiled(&file(from, 0), engine, 1), compiled(&file(to, 3), engine, 2)) else {
        return Err(TestCaseError::reject("refused"));
    };
    let charts = |_: &_| panic!("no chart is at a path");
    let library = Library::new(&[], &[]);
    let state = |packages| State { packages, charts: &charts, library: &library, faults: &[] };
    let plan = plan(state(&before), state(&after));
    let played = play(&Scene { before, after, ..Scene::default() });
    judge(&plan, &played, &groups(from, to))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_a_plan_is_the_order_of_what_happens(from in items(), to in items(), flux in any::<bool>()) {
        compare(&from, &to, if flux { Engine::Flux } else { Engine::Argo })?;
    }
}
