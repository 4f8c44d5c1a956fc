//! Rules of one Package, broken one at a time.

use rstest::rstest;

use super::*;
use crate::api::PackageSpec;
use crate::package::violation::{Code, Violation};
use crate::package::yaml;

fn violations(spec: &str) -> Vec<Violation> {
    let root = yaml::parse(spec).documents.remove(0);
    let spec: PackageSpec = serde_json::from_value(root.to_value()).unwrap();
    parse("db", "apps", &spec).err().unwrap_or_default()
}

fn shown(spec: &str) -> Vec<String> {
    violations(spec).iter().map(Violation::to_string).collect()
}

/// A Package with these components, each of a chart unless it says otherwise.
fn with(components: &str) -> String {
    let chart = "chart: {repository: \"https://charts.example.org\", name: x, version: 1.0.0}";
    format!("{{version: 1.0.0, components: [{}]}}", components.replace("CHART", chart))
}

#[rstest]
#[case::deepest(yaml::MAX_DEPTH, &[])]
#[case::deeper(yaml::MAX_DEPTH + 1, &["WL019 /spec/components/0/values: nested deeper than 64 levels"])]
fn values_have_as_many_levels_as_a_file_may(#[case] levels: usize, #[case] expected: &[&str]) {
    let values = (1..levels).fold(serde_json::json!({"a": 1}), |below, _| serde_json::json!({"a": below}));
    let chart = serde_json::json!({"repository": "https://charts.example.org", "name": "x", "version": "1.0.0"});
    let components = serde_json::json!([{"name": "a", "chart": chart, "values": values}]);
    let spec = serde_json::from_value(serde_json::json!({"version": "1.0.0", "components": components})).unwrap();
    let found = parse("db", "apps", &spec).err().unwrap_or_default();
    assert_eq!(found.iter().map(Violation::to_string).collect::<Vec<_>>(), expected);
}

#[rstest]
#[case::port("oci://x.org:5000/charts")]
#[case::host_alone("oci://x.org:5000")]
#[case::at_sign_in_a_path("https://x.org/@team/charts")]
fn repositories_with_ports_and_odd_paths_are_accepted(#[case] repository: &str) {
    let chart = format!("chart: {{repository: '{repository}', name: x, version: 1.0.0}}");
    assert_eq!(shown(&with(&format!("{{name: a, {chart}}}"))), Vec::<String>::new());
}

#[rstest]
#[case::both(
    "{name: a, path: p, CHART}",
    "WL010 /spec/components/0: component `a` must have exactly one of chart and path"
)]
#[case::neither("{name: a}", "WL010 /spec/components/0: component `a` must have exactly one of chart and path")]
#[case::values_files_of_a_chart(
    "{name: a, CHART, valuesFiles: [x]}",
    "WL011 /spec/components/0/valuesFiles: valuesFiles goes with path, not with chart"
)]
#[case::twice(
    "{name: a, CHART}, {name: a, CHART, install: {releaseName: b}}",
    "WL012 /spec/components/1/name: two components are named `a`"
)]
#[case::edge_to_nowhere(
    "{name: a, CHART, install: {dependsOn: [zzzz]}}",
    "WL013 /spec/components/0/install/dependsOn/0: there is no component `zzzz`"
)]
#[case::edge_to_a_hook(
    "{name: a, CHART, install: {dependsOn: [h]}}, {name: h, CHART, install: {phase: PreUpgrade}}",
    "WL015 /spec/components/0/install/dependsOn/0: `h` is a hook"
)]
#[case::hook_with_edges(
    "{name: a, CHART}, {name: h, CHART, install: {phase: PreUpgrade, dependsOn: [a]}}",
    "WL015 /spec/components/1/install/dependsOn: hook `h` has dependsOn"
)]
#[case::cycle_of_one(
    "{name: a, CHART, install: {dependsOn: [a]}}",
    "WL014 /spec/components/0/install/dependsOn: component `a` depends on itself"
)]
#[case::cycle_of_two(
    "{name: a, CHART, install: {dependsOn: [b]}}, {name: b, CHART, install: {dependsOn: [a]}}",
    "WL014 /spec/components/0/install/dependsOn: components depend on each other in a circle: a -> b -> a"
)]
#[case::version_range(
    "{name: a, chart: {repository: 'oci://x/y', name: x, version: ^1.2}}",
    "WL007 /spec/components/0/chart/version: `^1.2` is no exact version: write all three numbers, such as `1.4.0`"
)]
#[case::digest(
    "{name: a, chart: {repository: 'https://x', name: x, version: 1.0.0, digest: 'sha256:ABC'}}",
    "WL005 /spec/components/0/chart/digest: `sha256:ABC` is no digest"
)]
#[case::repository(
    "{name: a, chart: {repository: 'git://x', name: x, version: 1.0.0}}",
    "WL005 /spec/components/0/chart/repository: `git://x` is no repository"
)]
#[case::credentials(
    "{name: a, chart: {repository: 'https://user:secret@x.org/charts', name: x, version: 1.0.0}}",
    "WL005 /spec/components/0/chart/repository: the repository's address holds credentials"
)]
#[case::tag(
    "{name: a, chart: {repository: 'oci://x.org/charts/x:1.0.0', name: x, version: 1.0.0}}",
    "WL005 /spec/components/0/chart/repository: `oci://x.org/charts/x:1.0.0` names a tag or a digest"
)]
#[case::capital_letters_of_a_registry(
    "{name: a, chart: {repository: 'oci://X.org/Charts', name: x, version: 1.0.0}}",
    "WL005 /spec/components/0/chart/repository: `oci://X.org/Charts` has capital letters in its path"
)]
#[case::capital_letters_in_a_registry(
    "{name: a, chart: {repository: 'oci://x.org/charts', name: App, version: 1.0.0}}",
    "WL005 /spec/components/0/chart/name: `App` has capital letters"
)]
#[case::path_up("{name: a, path: ../../x}", "WL016 /spec/components/0/path: `../../x` leads out of the source")]
#[case::path_of_windows("{name: a, path: 'charts\\a'}", "WL016 /spec/components/0/path: `charts\\a` has backslashes")]
#[case::path_absolute("{name: a, path: /etc}", "WL016 /spec/components/0/path: `/etc` leads out of the source")]
#[case::values_file_up(
    "{name: a, path: p, valuesFiles: [a/../../x]}",
    "WL016 /spec/components/0/valuesFiles/0: `a/../../x` leads out of the source"
)]
#[case::long_name(
    "{name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, CHART}",
    "WL006 /spec/components/0/name: the name of a component `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa` has 57 characters, at most 53 are allowed"
)]
#[case::substitution(
    "{name: '${x}', CHART}",
    "WL006 /spec/components/0/name: the name of a component `${x}` must be lower-case letters, digits and `-`, starting and ending with a letter or digit"
)]
#[case::one_release(
    "{name: a, CHART}, {name: b, CHART, install: {releaseName: a}}",
    "WL026 /spec/components/1/install/releaseName: components `a` and `b` are both release `a` in namespace `apps`"
)]
#[case::name_of_a_hook(
    "{name: h, CHART, install: {phase: PreUpgrade}}, {name: h-2, CHART}",
    "WL025 /spec/components/1/name: in revision 2 hook `h` has the same name in the cluster as component `h-2`"
)]
#[case::canary_of_a_hook(
    "{name: h, CHART, install: {phase: PreUpgrade}, canary: {}}",
    "WL011 /spec/components/0/canary: a hook has no canary: it runs once and leaves nothing to roll out"
)]
#[case::canary_step(
    "{name: a, CHART, canary: {steps: ['0%']}}",
    "WL005 /spec/components/0/canary/steps/0: `0%` is no step"
)]
#[case::canary_share(
    "{name: a, CHART, canary: {steps: ['101%']}}",
    "WL005 /spec/components/0/canary/steps/0: `101%` is no step"
)]
#[case::canary_soak(
    "{name: a, CHART, canary: {soak: 1d}}",
    "WL009 /spec/components/0/canary/soak: `1d` is no duration: write a number and a unit (ms, s, m, h), such as `90s` or `1h30m`"
)]
#[case::canary_daemon_set(
    "{name: a, CHART, canary: {daemonSets: ['a|b']}}",
    "WL006 /spec/components/0/canary/daemonSets/0: the name of an object `a|b` must be lower-case letters, digits and `-` and `.`, starting and ending with a letter or digit"
)]
#[case::canary_timeout(
    "{name: a, CHART, canary: {timeout: 0s}}",
    "WL009 /spec/components/0/canary/timeout: a timeout of nothing fails every rollout at once"
)]
#[case::ready_both(
    "{name: a, CHART, install: {readyWhen: [{apiVersion: v1, kind: A, name: a, condition: x, expr: 'y'}]}}",
    "WL010 /spec/components/0/install/readyWhen/0: a readyWhen entry has exactly one of condition and expr"
)]
#[case::ready_status(
    "{name: a, CHART, install: {readyWhen: [{apiVersion: v1, kind: A, name: a, expr: x, status: 'True'}]}}",
    "WL011 /spec/components/0/install/readyWhen/0/status: status goes with condition"
)]
fn a_component_breaks_a_rule(#[case] components: &str, #[case] expected: &str) {
    assert_eq!(shown(&with(components)), [expected]);
}

#[rstest]
#[case::version(
    "{version: 1.9}",
    "WL007 /spec/version: `1.9` is no exact version: write all three numbers, such as `1.4.0`"
)]
#[case::requires_nothing(
    "{version: 1.0.0, requires: [{}]}",
    "WL010 /spec/requires/0: a requirement names exactly one of package and kubernetes"
)]
#[case::requires_both(
    "{version: 1.0.0, requires: [{package: a, kubernetes: '>=1'}]}",
    "WL010 /spec/requires/0: a requirement names exactly one of package and kubernetes"
)]
#[case::requires_itself(
    "{version: 1.0.0, requires: [{package: db}]}",
    "WL027 /spec/requires/0/package: a Package cannot require itself"
)]
#[case::range(
    "{version: 1.0.0, requires: [{package: a, version: latest}]}",
    "WL008 /spec/requires/0/version: `latest` is no version range: `latest` is no version"
)]
#[case::empty_range(
    "{version: 1.0.0, upgrade: {from: '>2 <1'}}",
    "WL008 /spec/upgrade/from: no version is in the range `>2 <1`"
)]
#[case::timeout(
    "{version: 1.0.0, upgrade: {timeout: '600'}}",
    "WL009 /spec/upgrade/timeout: `600` is no duration: write a number and a unit (ms, s, m, h), such as `90s` or `1h30m`"
)]
#[case::no_timeout(
    "{version: 1.0.0, upgrade: {timeout: 0m0s}}",
    "WL009 /spec/upgrade/timeout: a timeout of nothing fails every component at once"
)]
fn a_package_breaks_a_rule(#[case] spec: &str, #[case] expected: &str) {
    // `1.9` is a number to YAML and text here.
    assert_eq!(shown(&spec.replace("version: 1.9}", "version: '1.9'}")), [expected]);
}

#[rstest]
#[case::values_from(
    "argo",
    "{name: a, CHART, valuesFrom: [{kind: Secret, name: x}]}",
    Code::NotOnEngine,
    "/spec/components/0/valuesFrom"
)]
#[case::digest(
    "argo",
    "{name: a, chart: {repository: 'oci://x', name: x, version: 1.0.0, digest: 'sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}}",
    Code::NotOnEngine,
    "/spec/components/0/chart/digest"
)]
#[case::create(
    "argo",
    "{name: a, CHART, install: {upgradeCRDs: Create}}",
    Code::NotOnEngine,
    "/spec/components/0/install/upgradeCRDs"
)]
#[case::chart_version("flux", "{name: a, path: p}", Code::NeededByEngine, "/spec/components/0/path")]
fn engines_differ(#[case] engine: &str, #[case] components: &str, #[case] code: Code, #[case] pointer: &str) {
    let source = "sourceRef: {kind: GitRepository, name: x}, ";
    let spec = |engine: &str| with(components).replacen('{', &format!("{{engine: {engine}, {source}"), 1);
    let found: Vec<_> = violations(&spec(engine)).into_iter().map(|v| (v.code, v.pointer)).collect();
    assert_eq!(found, [(code, pointer.to_owned())]);
    let other = if engine == "argo" { "flux" } else { "argo" };
    assert_eq!(violations(&spec(other)), []);
}

#[test]
fn flux_needs_a_source_for_paths() {
    let spec = with("{name: a, path: p, chartVersion: 1.0.0}").replacen('{', "{engine: flux, ", 1);
    assert_eq!(
        shown(&spec),
        ["WL028 /spec/components/0/path: component `a` has a path, but the Package has no sourceRef"]
    );
}

#[test]
fn a_cycle_of_fifty_is_named_from_end_to_end() {
    let components: Vec<String> =
        (0..50).map(|n| format!("{{name: c{n}, CHART, install: {{dependsOn: [c{}]}}}}", (n + 1) % 50)).collect();
    let found = shown(&with(&components.join(", ")));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("c0 -> c1 -> c2") && found[0].ends_with("c49 -> c0"), "{}", found[0]);
}

#[test]
fn a_mistake_elsewhere_does_not_hide_a_cycle() {
    let found = violations(&with("{name: BAD, CHART}, {name: a, CHART, install: {dependsOn: [a]}}"));
    assert_eq!(
        found.iter().map(|v| (v.code, v.pointer.as_str())).collect::<Vec<_>>(),
        [(Code::InvalidName, "/spec/components/0/name"), (Code::Cycle, "/spec/components/1/install/dependsOn"),]
    );
}

#[test]
fn the_same_release_name_in_two_namespaces_is_two_releases() {
    assert_eq!(
        violations(&with("{name: a, CHART}, {name: b, CHART, install: {releaseName: a, namespace: other}}")),
        []
    );
}

#[test]
fn a_group_has_no_components() {
    assert_eq!(violations("{version: 1.0.0, requires: [{package: a}]}"), []);
}
