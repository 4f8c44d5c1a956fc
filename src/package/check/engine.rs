//! What the chosen engine makes of a Package.

use super::Findings;
use crate::api::Engine;
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
            if component.install.as_ref().is_some_and(|install| !install.health_check_exprs.is_empty()) {
                let pointer = format!("/spec/components/{index}/install/healthCheckExprs");
                let message = "healthCheckExprs are ignored on engine argo";
                let help = "use readyWhen, which both engines wait for";
                findings.warning(package, Violation::new(Code::IgnoredOnEngine, pointer, message).help(help));
            }
        }
    }
}
