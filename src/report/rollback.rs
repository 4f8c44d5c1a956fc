//! What a request to return to an earlier revision would come to, before it is made.

use std::fmt::Write as _;

use super::remedy::remedy;
use super::{full_name, ready};
use crate::api::{Package, Reason, RecordedComponent};
use crate::rollout::RevisionView;
use crate::rollout::history::History;
use crate::rollout::request::{self, Refusal};

/// What somebody asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Number of the revision; `None`: the one before.
    pub to: Option<u64>,
    /// Whatever the revisions since then say.
    pub force: bool,
}

/// Why nothing is asked for, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What stands against it.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// The revision that a request would lead to, by the rules of the controller.
///
/// # Errors
/// When the controller would refuse it, or not take it up.
pub fn judge<'a>(package: &Package, revisions: &'a [RevisionView], asked: Asked) -> Result<&'a RevisionView, Refused> {
    let history = History::new(revisions);
    let refused = |message: String, remedy: &str| Refused { message, remedy: remedy.to_owned() };
    if package.metadata.deletion_timestamp.is_some() {
        return Err(refused("it is being deleted".to_owned(), remedy(Reason::Deleting)));
    }
    let Some(latest) = history.latest() else {
        return Err(refused("it has no revision yet, so there is nothing to return to".to_owned(), NOTHING));
    };
    if let Some(pending) = pending(package, latest) {
        return Err(refused(pending, "Take the change of the spec back first, or wait until its revision has begun."));
    }
    let Some(number) = asked.to.or_else(|| request::before(history).map(RevisionView::number)) else {
        return Err(refused(
            "there is no earlier revision that succeeded, so there is nothing to return to".to_owned(),
            NOTHING,
        ));
    };
    if request::running(history) == Some(number) {
        return Err(refused(format!("revision {number} is what runs"), NOTHING));
    }
    request::target(history, number, asked.force).map_err(|refusal| match &refusal {
        Refusal::Unknown { .. } => refused(format!("{refusal}; {}", known(revisions)), CHOOSE),
        Refusal::NeverSucceeded { .. } => refused(refusal.to_string(), CHOOSE),
        Refusal::Unsafe { .. } => refused(refusal.to_string(), remedy(Reason::RollbackRefused)),
    })
}

const NOTHING: &str = "Fix forward: change the spec.";
const CHOOSE: &str = "Choose one that has succeeded: `windlass history` lists them.";

/// The spec asks for a version that no revision stands for: requests are not looked at.
fn pending(package: &Package, latest: &RevisionView) -> Option<String> {
    let wanted = package.spec.version.strip_prefix('v').unwrap_or(&package.spec.version);
    let reason = ready(package).map(|ready| format!(" ({})", ready.reason)).unwrap_or_default();
    (wanted != latest.spec.version).then(|| {
        format!("the spec asks for {wanted}, which has not begun{reason}; what runs is not taken back meanwhile")
    })
}

fn known(revisions: &[RevisionView]) -> String {
    let succeeded = revisions.iter().filter(|revision| revision.status.succeeded);
    let numbers: Vec<String> = succeeded.map(|revision| revision.number().to_string()).collect();
    format!("those that have succeeded: {}", numbers.join(", "))
}

/// What would go back, dependents first.
pub fn preview(package: &Package, revisions: &[RevisionView], target: &RevisionView) -> String {
    let mut text = format!(
        "Package {} would return to revision {} ({}):\n",
        full_name(package),
        target.number(),
        target.spec.version
    );
    let history = History::new(revisions);
    let from = request::running(history).and_then(|number| history.get(number)).or(history.latest());
    let lines = from.map(|from| changes(from, target)).unwrap_or_default();
    for line in &lines {
        let _ = writeln!(text, "  {line}");
    }
    if lines.is_empty() {
        text.push_str("  no component differs\n");
    }
    text.push_str("What runs then is held until the spec changes.\n");
    text
}

/// The component of a name, if it has a release of its own.
fn release<'a>(revision: &'a RevisionView, name: &str) -> Option<&'a RecordedComponent> {
    revision.component(name).filter(|component| !component.hook)
}

fn changes(from: &RevisionView, target: &RevisionView) -> Vec<String> {
    let differs = |component: &&RecordedComponent| {
        release(target, &component.name).is_none_or(|wanted| wanted.digest != component.digest)
    };
    let back = from.spec.components.iter().rev().filter(|component| !component.hook).filter(differs).map(|component| {
        match release(target, &component.name) {
            None => format!("{}: removed", component.name),
            Some(wanted) if wanted.chart_version == component.chart_version => {
                format!("{}: values, chart {} as it is", component.name, wanted.chart_version)
            }
            Some(wanted) => {
                format!("{}: chart {} -> {}", component.name, component.chart_version, wanted.chart_version)
            }
        }
    });
    let missing = target.spec.components.iter().filter(|c| !c.hook && release(from, &c.name).is_none());
    back.chain(missing.map(|component| format!("{}: installed, chart {}", component.name, component.chart_version)))
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::PackageRevision;

    fn package(version: &str) -> Package {
        serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "Package", "metadata": {"name": "app", "namespace": "packages"},
            "spec": {"version": version, "components": []},
        }))
        .unwrap()
    }

    /// A revision that moved something.
    fn revision(number: u64, safe: bool, status: Value) -> RevisionView {
        let version = format!("{number}.0.0");
        let component = |name: &str, version: &str| {
            json!({
                "name": name, "wave": 0, "digest": format!("{name}{version}"), "chartVersion": version,
                "release": {"storageNamespace": "n", "namespace": "n", "name": name},
            })
        };
        let revision: PackageRevision = serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "PackageRevision", "metadata": {"name": format!("app-{number}")},
            "spec": {
                "package": "app", "number": number, "version": version, "timeout": "1m", "retries": 0, "engine": "flux",
                "rollback": {"safe": safe},
                "components": [component("db", &version), component(&format!("only-{number}"), &version), component("web", &version)],
            },
            "status": status,
        }))
        .unwrap();
        revision.into()
    }

    fn done(number: u64, safe: bool) -> RevisionView {
        let moved = json!([{"name": "db", "moved": true}]);
        revision(number, safe, json!({"phase": "Succeeded", "succeeded": true, "components": moved}))
    }

    fn failed(number: u64) -> RevisionView {
        let moved = json!([{"name": "db", "moved": true}]);
        let mut failed = revision(number, false, json!({"phase": "Failed", "components": moved}));
        let mut spec = (*failed.spec).clone();
        spec.base = Some(number - 1);
        failed.spec = spec.into();
        failed
    }

    fn back(number: u64, to: u64) -> RevisionView {
        let status =
            json!({"phase": "RolledBack", "rollback": {"to": to}, "components": [{"name": "db", "moved": true}]});
        revision(number, true, status)
    }

    fn asked(revisions: &[RevisionView], to: Option<u64>, force: bool) -> Result<u64, String> {
        let latest = revisions.last().map_or("1.0.0".to_owned(), |latest| latest.spec.version.clone());
        let found = judge(&package(&latest), revisions, Asked { to, force });
        found.map(RevisionView::number).map_err(|refused| refused.message)
    }

    #[rstest]
    #[case::before_what_runs(vec![done(1, true), done(2, true)], 1)]
    #[case::over_one_that_failed(vec![done(1, true), failed(2), done(3, true)], 1)]
    #[case::before_what_runs_again(vec![done(1, true), done(2, true), back(3, 2)], 1)]
    fn without_a_number_it_is_the_one_that_succeeded_before(#[case] revisions: Vec<RevisionView>, #[case] found: u64) {
        assert_eq!(asked(&revisions, None, true), Ok(found));
    }

    #[test]
    fn a_failed_upgrade_is_taken_back_to_what_ran() {
        assert_eq!(asked(&[done(1, true), done(2, true), failed(3)], None, true), Ok(2));
    }

    #[rstest]
    #[case::unsafe_in_between(vec![done(1, true), done(2, false), done(3, true)], Some(1), "revision 2 (2.0.0) does not say rollback.safe: true")]
    #[case::unsafe_failure(vec![done(1, true), failed(2)], None, "revision 2 (2.0.0) does not say rollback.safe: true")]
    #[case::nothing_before(vec![done(1, true)], None, "no earlier revision that succeeded")]
    #[case::no_revision(Vec::new(), None, "it has no revision yet")]
    #[case::unknown(vec![done(1, true), done(2, true)], Some(7), "there is no revision 7 to return to; those that have succeeded: 1, 2")]
    #[case::never_succeeded(vec![done(1, true), failed(2)], Some(2), "never succeeded")]
    #[case::runs(vec![done(1, true), done(2, true)], Some(2), "revision 2 is what runs")]
    #[case::runs_again(vec![done(1, true), back(2, 1)], Some(1), "revision 1 is what runs")]
    fn what_the_controller_would_refuse_is_refused_at_once(
        #[case] revisions: Vec<RevisionView>,
        #[case] to: Option<u64>,
        #[case] message: &str,
    ) {
        let found = asked(&revisions, to, false).unwrap_err();
        assert!(found.contains(message), "{found}");
    }

    #[test]
    fn force_overrides_the_rollback_rule_alone() {
        let revisions = [done(1, true), done(2, false)];
        assert_eq!(asked(&revisions, Some(1), true), Ok(1));
        assert!(asked(&revisions, Some(2), true).is_err());
        let refused = judge(&package("2.0.0"), &revisions, Asked::default()).unwrap_err();
        assert_eq!(refused.remedy, remedy(Reason::RollbackRefused));
    }

    #[test]
    fn a_spec_that_waits_is_not_gone_around() {
        let refused = judge(&package("3.0.0"), &[done(1, true), done(2, true)], Asked::default()).unwrap_err();
        assert!(refused.message.contains("the spec asks for 3.0.0, which has not begun"), "{}", refused.message);
    }

    #[test]
    fn a_preview_lists_what_goes_back_dependents_first() {
        let revisions = [done(1, true), done(2, true)];
        insta::assert_snapshot!(preview(&package("2.0.0"), &revisions, &revisions[0]), @r"
        Package packages/app would return to revision 1 (1.0.0):
          web: chart 2.0.0 -> 1.0.0
          only-2: removed
          db: chart 2.0.0 -> 1.0.0
          only-1: installed, chart 1.0.0
        What runs then is held until the spec changes.
        ");
    }
}
