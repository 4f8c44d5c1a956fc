//! `docs/security.md`: rights and limits.

use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::Value;
use windlass::ready::cel;

use crate::common::{read_yaml, root};
use crate::markdown::{fences, quoted, rows, section};

const DOCUMENT: &str = include_str!("../../docs/security.md");

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[rstest]
#[case::controller("controller/rbac.yaml", "windlass-controller", "What the controller may do")]
#[case::canary("tenant/canary.yaml", "windlass-canary", "What a canary needs")]
fn the_rights_of_the_controller_are_those_of_its_role(#[case] file: &str, #[case] name: &str, #[case] heading: &str) {
    let text = std::fs::read_to_string(root().join("manifests").join(file)).unwrap();
    let objects = read_yaml(&text);
    let is_role = |object: &&Value| object["kind"].as_str().is_some_and(|kind| kind.ends_with("Role"));
    let role = objects.iter().filter(is_role).find(|object| object["metadata"]["name"] == name);
    let mut rights: BTreeMap<&str, String> = BTreeMap::new();
    for rule in role.unwrap()["rules"].as_array().unwrap() {
        let verbs = texts(&rule["verbs"]).join(", ");
        for resource in texts(&rule["resources"]) {
            assert_eq!(rights.insert(resource, verbs.clone()), None, "{resource} is in two rules");
        }
    }
    let table = rows(section(DOCUMENT, 2, heading));
    let told: BTreeMap<&str, String> =
        table.iter().flat_map(|row| quoted(row[0]).into_iter().map(|name| (name, row[1].to_owned()))).collect();
    assert_eq!(told, rights);
}

#[test]
fn the_limits_of_expressions_are_those_of_the_code() {
    let limits = format!("{} bytes and {} levels", cel::MAX_BYTES, cel::MAX_LEVELS);
    assert!(DOCUMENT.contains(&limits), "{limits}");
    let seconds = format!("at most {} seconds", cel::WALL_CLOCK.as_secs());
    assert!(DOCUMENT.contains(&seconds), "{seconds}");
}

/// What the page tells tenants to apply is what the repository holds.
#[test]
fn the_tenants_role_is_that_of_the_manifests() {
    let text = std::fs::read_to_string(root().join("manifests/tenant/impersonation.yaml")).unwrap();
    let shown: Vec<Value> = fences(DOCUMENT, "yaml").into_iter().flat_map(read_yaml).collect();
    for mut object in read_yaml(&text) {
        object["metadata"]["namespace"] = "team-a".into();
        assert!(shown.contains(&object), "{object} is not shown");
    }
}
