//! What the chosen engine makes of a Package.

use super::Findings;
use crate::api::{Component, Engine};
use crate::package::definition::engine_rules;
use crate::package::load::LoadedPackage;
use crate::package::violation::{Code, Violation};

pub fn check(package: &LoadedPackage, engine: Option<Engine>, findings: &mut Findings<'_>) {
    let (Some(engine), Some(typed)) = (engine, &package.package) else { return };
    // With an engine of its own the Package was judged by that when it was loaded.
    if typed.spec.engine.is_none() {
        for violation in engine_rules(&typed.spec, engine) {
            findings.error(package, violation);
        }
    }
    if engine == Engine::Argo {
        for (index, component) in typed.spec.components.iter().enumerate() {
            ignored_on_argo(package, &format!("/spec/components/{index}"), component, findings);
        }
    }
}

/// Fields that Argo CD has other means for.
fn ignored_on_argo(package: &LoadedPackage, at: &str, component: &Component, findings: &mut Findings<'_>) {
    let mut ignored = |field: &str, message: &str, help: &str| {
        let violation = Violation::new(Code::IgnoredOnEngine, format!("{at}/{field}"), message).help(help);
        findings.warning(package, violation);
    };
    if component.install.as_ref().is_some_and(|install| !install.health_check_exprs.is_empty()) {
        let help = "use readyWhen, which both engines wait for";
        ignored("install/healthCheckExprs", "healthCheckExprs are ignored on engine argo", help);
    }
    if component.chart.as_ref().is_some_and(|chart| chart.secret_ref.is_some()) {
        let help = "give Argo CD the credentials of the repository, `argocd repo add`, and remove it here";
        ignored("chart/secretRef", "chart.secretRef is ignored on engine argo", help);
    }
}
