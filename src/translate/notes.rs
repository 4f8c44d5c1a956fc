//! What is asked for and not done, said aloud.

use super::{Note, Subject};
use crate::api::{Engine, UpgradeCrds};
use crate::package::definition::{ChartSource, Component, Definition};

/// What an engine does not do, in every mode.
pub(super) fn engine(package: &Definition, component: &Component, engine: Engine) -> Vec<Note> {
    match engine {
        Engine::Flux => Vec::new(),
        Engine::Argo => {
            let secret = match &component.chart {
                ChartSource::Repository(chart) => chart.secret.is_some(),
                ChartSource::Path(_) => false,
            };
            let skip = component.upgrade_crds == UpgradeCrds::Skip;
            let said = [
                (
                    !component.health_check_exprs.is_empty(),
                    "healthCheckExprs mean nothing to Argo CD: it judges by the health checks of argocd-cm",
                ),
                (skip, "with upgradeCRDs Skip Argo CD leaves the chart's crds/ out on the first install as well"),
                (
                    secret,
                    "chart.secretRef means nothing to Argo CD: it takes credentials from its own repository settings",
                ),
            ];
            collect(&Subject::component(package, component), &said)
        }
    }
}

/// What an engine does not do for a Package as a whole, in every mode.
pub(super) fn engine_package(package: &Definition, engine: Engine) -> Vec<Note> {
    match engine {
        Engine::Flux => Vec::new(),
        Engine::Argo => collect(
            &Subject::package(package),
            &[(
                package.service_account.is_some(),
                "Argo CD applies with the account of its project (destinationServiceAccounts), not with serviceAccountName",
            )],
        ),
    }
}

/// What needs a controller, for one component.
pub(super) fn native(package: &Definition, component: &Component, engine: Engine) -> Vec<Note> {
    let follows = match (&component.chart, engine) {
        (ChartSource::Path(_), Engine::Flux) => true,
        (ChartSource::Path(_), Engine::Argo) | (ChartSource::Repository(_), Engine::Flux | Engine::Argo) => false,
    };
    let said = [
        (
            !component.ready_when.is_empty(),
            "readyWhen needs the controller: what comes next waits for the release only",
        ),
        (component.canary.is_some(), "canary needs the controller: its DaemonSets are rolled out as the chart says"),
        (component.replace, "replace means nothing without the controller: the engine decides when to install anew"),
        (follows, "its chart follows the sourceRef as it is: a new commit can move it before its turn"),
    ];
    collect(&Subject::component(package, component), &said)
}

/// What needs a controller, for a Package as a whole.
pub(super) fn native_package(package: &Definition, outside: &[&str]) -> Vec<Note> {
    let about = Subject::package(package);
    let mut notes = collect(
        &about,
        &[
            (package.rollback.safe, "rollback needs the controller: a failed upgrade stays as it is"),
            (package.upgrade.from.is_some(), "upgrade.from needs the controller: any version may be upgraded"),
        ],
    );
    for name in outside {
        let message = format!("requires `{name}`, which is not among these files: nothing waits for it");
        notes.push(Note { about: about.clone(), message });
    }
    notes
}

fn collect(about: &Subject, said: &[(bool, &str)]) -> Vec<Note> {
    let said = said.iter().filter(|(applies, _)| *applies);
    said.map(|(_, message)| Note { about: about.clone(), message: (*message).to_owned() }).collect()
}
