//! Metrics are what the documentation, the alerts and the dashboard say they are.

use std::collections::{BTreeMap, BTreeSet};

use rstest::rstest;
use serde_json::Value;

use super::*;
use crate::api::{ComponentStatus, Condition, Reason, RolloutPhase, RolloutRecord};
use crate::package::yaml::{self, Node};

const OPERATING: &str = include_str!("../../../docs/operating.md");
const TROUBLESHOOTING: &str = include_str!("../../../docs/troubleshooting.md");
const ALERTS: &str = include_str!("../../../manifests/monitoring/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../manifests/monitoring/dashboard.json");

fn key() -> PackageKey {
    ("packages".to_owned(), "app".to_owned())
}

fn status(ready: &str, components: &[ComponentState]) -> PackageStatus {
    let mut status = PackageStatus::default();
    status.conditions.push(Condition {
        type_: "Ready".to_owned(),
        status: ready.to_owned(),
        reason: "Ready".to_owned(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: crate::api::Time(jiff::Timestamp::UNIX_EPOCH),
    });
    status.components = components
        .iter()
        .map(|state| ComponentStatus { name: "a".into(), state: *state, version: None, since: None, message: None })
        .collect();
    status
}

/// One of everything, so that every metric is written.
fn text() -> String {
    let metrics = Metrics::new();
    metrics.wrote("Apply");
    [Ended::Well, Ended::Stale, Ended::Failed].into_iter().for_each(|ended| metrics.reconciled(ended, 0.1));
    let mut status = status("True", &[ComponentState::Verified]);
    let record = RolloutRecord { daemon_set: "agents/agent".to_owned(), ..RolloutRecord::default() };
    status.rollouts.push(record.status());
    metrics.observe(&key(), &status);
    metrics.text()
}

/// Names of the labels of a sample; buckets are part of the type.
fn labels(sample: &str) -> Vec<&str> {
    let inner = sample.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(inner, _)| inner);
    let names = inner.split(',').filter_map(|label| label.split_once('=')).map(|(name, _)| name);
    names.filter(|name| *name != "le").collect()
}

#[test]
fn the_documentation_lists_every_metric_and_no_other() {
    let text = text();
    let documented: Vec<&str> = OPERATING.lines().filter(|line| line.starts_with("| `windlass_")).collect();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut known = 0;
    for (family, kind) in types {
        let name = if kind == "counter" { format!("{family}_total") } else { family.to_owned() };
        let row = documented.iter().find(|row| row.starts_with(&format!("| `{name}` | {kind} | ")));
        let row = row.unwrap_or_else(|| panic!("docs/operating.md lacks `{name}` ({kind})"));
        let sample = text.lines().find(|line| line.starts_with(family)).unwrap();
        for label in labels(sample) {
            assert!(row.contains(&format!("`{label}`")), "{name} has label {label}: {row}");
        }
        known += 1;
    }
    assert_eq!(known, documented.len(), "{text}");
}

#[rstest]
#[case::rollout(&[ComponentState::Verified, ComponentState::Progressing, ComponentState::Waiting], 1, 2)]
#[case::rollback(&[ComponentState::Restored, ComponentState::Restoring], 1, 1)]
#[case::uninstall(&[ComponentState::Removed, ComponentState::Removing, ComponentState::Failed], 1, 2)]
#[case::group(&[], 0, 0)]
fn components_are_done_or_open(#[case] states: &[ComponentState], #[case] done: usize, #[case] open: usize) {
    let metrics = Metrics::new();
    metrics.observe(&key(), &status("False", states));
    let sample = |state: &str, count: usize| {
        format!("windlass_package_components{{namespace=\"packages\",package=\"app\",state=\"{state}\"}} {count}\n")
    };
    let text = metrics.text();
    assert!(text.contains(&sample("done", done)) && text.contains(&sample("open", open)), "{text}");
}

#[test]
fn of_a_package_that_is_gone_nothing_is_left() {
    let metrics = Metrics::new();
    let mut status = status("True", &[ComponentState::Verified]);
    status.rollouts.push(RolloutRecord { daemon_set: "agents/agent".to_owned(), ..RolloutRecord::default() }.status());
    metrics.observe(&key(), &status);
    assert!(metrics.text().contains("packages"));
    metrics.forget(&key());
    assert!(!metrics.text().contains("packages"), "{}", metrics.text());
}

/// Labels of the samples by their name, as the registry writes them.
fn registered() -> BTreeMap<String, BTreeSet<String>> {
    let text = text();
    let mut samples: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let known = samples.entry(name.to_owned()).or_default();
        known.extend(labels(line).into_iter().map(str::to_owned));
        if name.ends_with("_bucket") {
            known.insert("le".to_owned());
        }
    }
    samples
}

/// An expression as far as metrics and labels are concerned.
#[derive(Debug, Default, PartialEq)]
struct Used {
    /// Each metric with the labels that its braces name, and their patterns.
    metrics: Vec<(String, Vec<(String, String)>)>,
    /// Labels that are grouped by or matched on.
    grouped: BTreeSet<String>,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What an expression of Prometheus uses.
fn used(expression: &str) -> Used {
    let mut found = Used::default();
    for (at, _) in expression.match_indices("windlass_") {
        let rest = &expression[at..];
        let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
        let braces = rest[name.len()..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let matchers = braces.map_or(vec![], |(inner, _)| {
            let matchers = inner.split(',').map(|matcher| {
                let label: String = matcher.trim().chars().take_while(|c| is_word(*c)).collect();
                let (_, pattern) = matcher.split_once('"').unwrap();
                (label, pattern.trim_end().trim_end_matches('"').to_owned())
            });
            matchers.collect()
        });
        found.metrics.push((name, matchers));
    }
    for word in ["by (", "on (", "without ("] {
        for part in expression.split(word).skip(1) {
            let (inner, _) = part.split_once(')').unwrap();
            found.grouped.extend(inner.split(',').map(|label| label.trim().to_owned()));
        }
    }
    found
}

/// What is wrong with the metrics and labels of an expression, and with those that
/// texts about its result name.
fn faults(expression: &str, told: &[&str]) -> Vec<String> {
    let registered = registered();
    let used = used(expression);
    let mut faults = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (metric, matchers) in &used.metrics {
        let Some(labels) = registered.get(metric) else {
            faults.push(format!("there is no {metric}"));
            continue;
        };
        known.extend(labels.iter().map(String::as_str));
        for (label, pattern) in matchers {
            if !labels.contains(label) {
                faults.push(format!("{metric} has no label {label}"));
            }
            faults.extend(values_of(metric, label).into_iter().flat_map(|values| {
                let unknown = pattern.split('|').filter(|value| !value.starts_with('$') && !values.contains(*value));
                unknown.map(|value| format!("{label} of {metric} is never {value}")).collect::<Vec<_>>()
            }));
        }
    }
    if used.metrics.is_empty() {
        faults.push("it uses no metric".to_owned());
    }
    let grouped = used.grouped.iter().map(String::as_str);
    let unknown = grouped.chain(told.iter().copied()).filter(|label| !known.contains(label));
    faults.extend(unknown.map(|label| format!("nothing has a label {label}")));
    faults
}

/// Values that a label can have, where the code has a list of them.
fn values_of(metric: &str, label: &str) -> Option<BTreeSet<String>> {
    match (metric, label) {
        (_, "reason") => Some(Reason::ALL.iter().map(Reason::to_string).collect()),
        ("windlass_rollout_info", "phase") => {
            let phases = [
                RolloutPhase::Started,
                RolloutPhase::Canary,
                RolloutPhase::Increasing,
                RolloutPhase::Waiting,
                RolloutPhase::Successful,
                RolloutPhase::Failed,
            ];
            Some(phases.iter().map(RolloutPhase::to_string).collect())
        }
        (_, "ready") => Some(["True", "False", "Unknown"].map(str::to_owned).into()),
        // All of them are in the text.
        (_, "state" | "result") => {
            let text = text();
            let start = format!("{label}=\"");
            let of_it = text.lines().filter(|line| line.starts_with(metric));
            let values = of_it.filter_map(|line| line.split_once(&start)?.1.split_once('"'));
            Some(values.map(|(value, _)| value.to_owned()).collect())
        }
        _ => None,
    }
}

struct Alert {
    name: String,
    expression: String,
    /// Its annotations as one text.
    told: String,
    runbook: String,
}

fn alerts() -> Vec<Alert> {
    let parsed = yaml::parse(ALERTS);
    assert_eq!(parsed.problems, []);
    let rule = parsed.documents.first().map(Node::to_value).unwrap();
    let groups = rule["spec"]["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned();
    rules
        .map(|rule| Alert {
            name: text(&rule["alert"]),
            expression: text(&rule["expr"]),
            told: rule["annotations"].to_string(),
            runbook: text(&rule["annotations"]["runbook"]),
        })
        .collect()
}

/// Labels that a text names as `START LABEL END`.
fn named<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.split(start).skip(1).filter_map(|rest| rest.split_once(end)).map(|(label, _)| label.trim()).collect()
}

/// Section of a document, from its heading to the next of the same rank or above.
fn section<'a>(document: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("\n{heading}\n"))?;
    let rank = heading.split(' ').next().unwrap().len();
    let ends = (1..=rank).filter_map(|rank| rest.find(&format!("\n{} ", "#".repeat(rank))));
    Some(&rest[..ends.min().unwrap_or(rest.len())])
}

#[test]
fn alerts_are_over_metrics_and_labels_that_there_are() {
    let alerts = alerts();
    assert!(alerts.len() >= 8, "{}", alerts.len());
    for alert in alerts {
        let told = named(&alert.told, "$labels.", "}}");
        assert_eq!(faults(&alert.expression, &told), Vec::<String>::new(), "{}: {}", alert.name, alert.expression);
    }
}

#[test]
fn every_reason_is_alerted_on_once_or_good() {
    const GOOD: [Reason; 3] = [Reason::Ready, Reason::RolledBack, Reason::Suspended];
    let alerts = alerts();
    let reasons = alerts.iter().flat_map(|alert| used(&alert.expression).metrics).flat_map(|(_, matchers)| matchers);
    let reasons = reasons.filter(|(label, _)| label == "reason");
    let mut found: Vec<String> =
        reasons.flat_map(|(_, p)| p.split('|').map(str::to_owned).collect::<Vec<_>>()).collect();
    found.extend(GOOD.iter().map(Reason::to_string));
    found.sort();
    let mut all: Vec<String> = Reason::ALL.iter().map(Reason::to_string).collect();
    all.sort();
    assert_eq!(found, all);
}

#[test]
fn every_alert_has_a_runbook_that_names_its_reasons() {
    for alert in alerts() {
        let anchor = alert.runbook.strip_prefix("docs/operating.md#").unwrap();
        assert_eq!(anchor, alert.name.to_lowercase());
        let runbook = section(OPERATING, &format!("### {}", alert.name));
        let runbook = runbook.unwrap_or_else(|| panic!("docs/operating.md has no section {}", alert.name));
        for (_, matchers) in used(&alert.expression).metrics {
            for reason in matchers.iter().filter(|(label, _)| label == "reason").flat_map(|(_, p)| p.split('|')) {
                let link = format!("[{reason}](troubleshooting.md#{})", reason.to_lowercase());
                assert!(runbook.contains(&link), "the section {} lacks {link}", alert.name);
                assert!(section(TROUBLESHOOTING, &format!("### {reason}")).is_some(), "{reason}");
            }
        }
    }
}

#[test]
fn the_documentation_has_no_other_alerts() {
    let alerts: Vec<String> = alerts().into_iter().map(|alert| format!("### {}", alert.name)).collect();
    let headings: Vec<&str> = OPERATING.lines().filter(|line| line.starts_with("### Windlass")).collect();
    assert_eq!(headings, alerts);
}

/// Expressions of a dashboard, each with the labels that its legend names.
fn expressions(value: &Value, found: &mut Vec<(String, Vec<String>)>) {
    match value {
        Value::Object(fields) => {
            let text = |key: &str| fields.get(key).and_then(Value::as_str);
            if let Some(expression) = text("expr") {
                let legend = named(text("legendFormat").unwrap_or_default(), "{{", "}}");
                found.push((expression.to_owned(), legend.into_iter().map(str::to_owned).collect()));
            }
            if let Some((metric, label)) = text("query")
                .and_then(|query| query.strip_prefix("label_values("))
                .and_then(|query| query.trim_end_matches(')').split_once(','))
            {
                found.push((metric.to_owned(), vec![label.trim().to_owned()]));
            }
            fields.values().for_each(|inner| expressions(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| expressions(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_dashboard_shows_metrics_and_labels_that_there_are() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut found = Vec::new();
    expressions(&dashboard, &mut found);
    assert!(found.len() >= 10, "{}", found.len());
    for (expression, legend) in &found {
        let told: Vec<&str> = legend.iter().map(String::as_str).collect();
        assert_eq!(faults(expression, &told), Vec::<String>::new(), "{expression}");
    }
    let shown: BTreeSet<String> = found.iter().flat_map(|(e, _)| used(e).metrics).map(|(name, _)| name).collect();
    let text = text();
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let missing: Vec<&str> = families
        .map(|(family, _)| family)
        .filter(|family| !shown.iter().any(|name| name.starts_with(family)))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "the dashboard shows every metric");
}

#[rstest]
#[case::right("max by (reason) (windlass_package_info{reason=\"Ready\", namespace=~\"$namespace\"}) == 1", &["reason"], &[])]
#[case::metric("windlass_packages_info == 1", &[], &["there is no windlass_packages_info"])]
#[case::label("windlass_package_info{name=\"a\"}", &[], &["windlass_package_info has no label name"])]
#[case::value("windlass_package_info{reason=~\"Ready|Broken\"}", &[], &["reason of windlass_package_info is never Broken"])]
#[case::state("windlass_package_components{state=\"closed\"}", &[], &["state of windlass_package_components is never closed"])]
#[case::group("sum by (node) (windlass_leader)", &[], &["nothing has a label node"])]
#[case::matching("windlass_leader unless on (pod) windlass_leader", &[], &["nothing has a label pod"])]
#[case::legend("windlass_leader", &["pod"], &["nothing has a label pod"])]
#[case::nothing("up == 1", &[], &["it uses no metric"])]
fn what_is_not_registered_is_found(#[case] expression: &str, #[case] told: &[&str], #[case] wanted: &[&str]) {
    assert_eq!(faults(expression, told), wanted);
}
