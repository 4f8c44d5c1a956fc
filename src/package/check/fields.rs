//! Fields that are allowed but probably not meant.

use super::Findings;
use super::conditions::stays_true;
use crate::api::{Canary, CanaryFailure, Component, Install, RolloutMode, wellknown};
use crate::package::load::LoadedPackage;
use crate::package::pointer::{Pointer, escape};
use crate::package::range::Range;
use crate::package::version::Version;
use crate::package::violation::{Code, Violation};
use crate::package::yaml::{Content, Node};

pub fn check(package: &LoadedPackage, findings: &mut Findings<'_>) {
    cluster_fields(package, findings);
    substitutions(package, findings);
    let Some(typed) = &package.package else { return };
    path_from_older_versions(package, findings);
    let hook = |component: &Component| component.install.as_ref().is_some_and(|install| install.phase.is_some());
    let safe = typed.spec.rollback.as_ref().is_some_and(|rollback| rollback.safe == Some(true));
    if let Some(hook) = typed.spec.components.iter().find(|component| safe && hook(component)) {
        let message = format!("a rollback is said to be safe, but hook `{}` will have run", hook.name);
        let help =
            "a rollback does not undo what a hook did: keep `safe: true` only if the version before works all the same";
        findings.warning(package, Violation::new(Code::HookAndSafe, "/spec/rollback/safe", message).help(help));
    }
    for (index, component) in typed.spec.components.iter().enumerate() {
        let at = format!("/spec/components/{index}");
        self::component(package, &at, component, findings);
        if let Some(canary) = &component.canary {
            without_effect_on_a_canary(package, &format!("{at}/canary"), canary, safe, findings);
        }
    }
}

fn component(package: &LoadedPackage, at: &str, component: &Component, findings: &mut Findings<'_>) {
    if component.source.is_some() {
        let message = "`source` is written by the Argo CD plugin alone";
        let help = "remove it: where the files come from is known when they are read";
        findings.error(package, Violation::new(Code::PluginField, format!("{at}/source"), message).help(help));
    }
    for (index, from) in component.values_from.iter().enumerate().filter(|(_, from)| !ends_in_a_hash(&from.name)) {
        let message = format!("the name `{}` does not change with its content", from.name);
        let help = "a change of the content would upgrade the release out of turn: end the name in a hash of the content, as kustomize's generators do";
        let pointer = format!("{at}/valuesFrom/{index}/name");
        findings.warning(package, Violation::new(Code::UnhashedValuesFrom, pointer, message).help(help));
    }
    if let Some(install) = component.install.as_ref().filter(|install| install.phase.is_some()) {
        without_effect_on_a_hook(package, at, install, findings);
        return;
    }
    let ready_when = component.install.iter().flat_map(|install| &install.ready_when).enumerate();
    for (index, entry) in ready_when {
        let Some(condition) =
            entry.condition.as_deref().filter(|_| entry.status.as_deref().unwrap_or("True") == "True")
        else {
            continue;
        };
        if let Some(known) = stays_true(&entry.api_version, &entry.kind, condition) {
            let message = format!("{condition} of a {} stays True while it is being updated", entry.kind);
            let help = format!("use `expr` and {}", known.instead);
            let pointer = format!("{at}/install/readyWhen/{index}/condition");
            findings.warning(package, Violation::new(Code::StaysTrue, pointer, message).help(help));
        }
    }
}

/// A hook runs once and is gone: its release alone says how it went, and nothing
/// is left that could be replaced.
fn without_effect_on_a_hook(package: &LoadedPackage, at: &str, install: &Install, findings: &mut Findings<'_>) {
    let mut no_effect = |field: &str, help: &str| {
        let message = format!("{field} has no effect on a hook");
        let violation = Violation::new(Code::NoEffect, format!("{at}/install/{field}"), message).help(help);
        findings.warning(package, violation);
    };
    if !install.ready_when.is_empty() {
        no_effect("readyWhen", "a hook is done when its release is: let a Job of the chart wait for what it needs");
    }
    if install.replace == Some(true) {
        no_effect("replace", "a hook is installed anew for each upgrade: remove it");
    }
}

/// In Compat the DaemonSet controller takes the first pod; and nothing goes back
/// that the author has not called safe.
fn without_effect_on_a_canary(
    package: &LoadedPackage,
    at: &str,
    canary: &Canary,
    safe: bool,
    findings: &mut Findings<'_>,
) {
    let mut no_effect = |field: &str, message: &str, help: &str| {
        let violation = Violation::new(Code::NoEffect, format!("{at}/{field}"), message).help(help);
        findings.warning(package, violation);
    };
    if canary.mode == Some(RolloutMode::Compat) && !canary.node_selector.is_empty() {
        let message = "nodeSelector has no effect in mode Compat: the DaemonSet controller chooses the first node";
        no_effect("nodeSelector", message, "remove it, or use `mode: Strict`");
    }
    if canary.on_failure == Some(CanaryFailure::Rollback) && !safe {
        let message = "onFailure: Rollback has no effect: the Package does not say that going back is safe";
        no_effect("onFailure", message, "add `rollback: {safe: true}` if it is, else use `Hold` or `Freeze`");
    }
}

/// Whether the last part of a name looks like a hash: kustomize's ten letters
/// and digits, or eight and more hex digits.
fn ends_in_a_hash(name: &str) -> bool {
    let Some((_, last)) = name.rsplit_once(['-', '.']) else { return false };
    let kustomize = last.len() == 10 && last.bytes().all(|byte| b"2456789bcdfghkmt".contains(&byte));
    let hex = last.len() >= 8
        && last.bytes().all(|byte| byte.is_ascii_hexdigit())
        && last.bytes().any(|b| b.is_ascii_digit());
    kustomize || hex
}

/// An `upgrade.from` or `rollback.to` that no older version is in says "never".
fn path_from_older_versions(package: &LoadedPackage, findings: &mut Findings<'_>) {
    let Some(typed) = &package.package else { return };
    let Ok(version) = Version::parse(&typed.spec.version) else { return };
    let upgrade = typed.spec.upgrade.as_ref();
    let newer_allowed = upgrade.is_some_and(|upgrade| upgrade.allow_downgrade == Some(true));
    let ranges = [
        ("/spec/upgrade/from", upgrade.and_then(|upgrade| upgrade.from.as_deref())),
        ("/spec/rollback/to", typed.spec.rollback.as_ref().and_then(|rollback| rollback.to.as_deref())),
    ];
    for (pointer, text) in ranges {
        let range = text.and_then(|text| Range::parse(text).ok()).filter(|range| !range.is_empty());
        if range.is_some_and(|range| range.excludes_below(&version)) && !newer_allowed {
            let message = format!("no version older than {version} is in the range");
            let help = "write the versions that come before this one, such as `>=1.7`";
            findings.warning(package, Violation::new(Code::InvalidRange, pointer, message).help(help));
        }
    }
}

/// What only a cluster writes, as `kubectl get -o yaml` shows it.
fn cluster_fields(package: &LoadedPackage, findings: &mut Findings<'_>) {
    const METADATA: [&str; 6] =
        ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "deletionTimestamp"];
    let present = |pointer: &str| package.root.find(pointer).is_some_and(|node| node.content != Content::Null);
    let metadata = METADATA.iter().map(|field| format!("/metadata/{field}"));
    for pointer in metadata.chain(["/status".to_owned()]).filter(|pointer| present(pointer)) {
        let message = format!("{} is written by the cluster", pointer.trim_start_matches('/').replace('/', "."));
        findings.warning(package, Violation::new(Code::ClusterField, pointer, message).help("remove it from the file"));
    }
}

/// `${…}` is replaced by Flux's post-build substitution, `{{ … }}` by nobody.
/// One finding per Package: where there is one there are many.
fn substitutions(package: &LoadedPackage, findings: &mut Findings<'_>) {
    let annotation = escape(wellknown::FLUX_SUBSTITUTE);
    let switched_off = package.root.find(&format!("/metadata/annotations/{annotation}")).and_then(Node::as_text);
    let flux = switched_off != Some(wellknown::FLUX_DISABLED);
    let mut found = Found::default();
    texts(&package.root, &mut Pointer::default(), &mut |pointer, text| {
        let in_values = || pointer.split('/').nth(4) == Some("values");
        if flux && has_variable(text) {
            found.variable(pointer);
        } else if text.contains("{{") && !in_values() {
            found.template(pointer);
        }
    });
    let reported = |pointer: &str| {
        let span = package.root.locate(pointer);
        findings.loaded.diagnostics.iter().any(|other| other.source == package.source && other.span == span)
    };
    let (variable, template) = (found.variable.filter(|at| !reported(at)), found.template.filter(|at| !reported(at)));
    if let Some(pointer) = variable {
        let more = if found.variables > 1 {
            format!(", and {} more in this Package", found.variables - 1)
        } else {
            String::new()
        };
        let message = format!("`${{…}}` is replaced where Flux substitutes after the build{more}");
        let help = format!(
            "annotate the Package with `{}: {}`, or write `$${{…}}`",
            wellknown::FLUX_SUBSTITUTE,
            wellknown::FLUX_DISABLED
        );
        findings.warning(package, Violation::new(Code::Substitution, pointer, message).help(help));
    }
    if let Some(pointer) = template {
        let message = "`{{` has no meaning here: a Package is no template";
        findings.warning(package, Violation::new(Code::Substitution, pointer, message).help("write the value itself"));
    }
}

#[derive(Default)]
struct Found {
    variable: Option<String>,
    variables: usize,
    template: Option<String>,
}

impl Found {
    fn variable(&mut self, pointer: &str) {
        self.variables += 1;
        self.variable.get_or_insert_with(|| pointer.to_owned());
    }

    fn template(&mut self, pointer: &str) {
        self.template.get_or_insert_with(|| pointer.to_owned());
    }
}

/// `${name}` as envsubst knows it, and not `$${name}`.
fn has_variable(text: &str) -> bool {
    text.match_indices("${").any(|(at, _)| {
        let escaped = text.get(..at).is_some_and(|before| before.ends_with('$'));
        let name = text.get(at + 2..).and_then(|rest| rest.chars().next());
        !escaped && name.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
    })
}

fn texts(node: &Node, at: &mut Pointer, visit: &mut impl FnMut(&str, &str)) {
    match &node.content {
        Content::Text(text) => visit(at.as_str(), text),
        Content::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                at.push_index(index);
                texts(item, at, visit);
                at.pop();
            }
        }
        Content::Mapping(entries) => {
            for entry in entries {
                at.push(&entry.key);
                visit(at.as_str(), &entry.key);
                texts(&entry.value, at, visit);
                at.pop();
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) => {}
    }
}
