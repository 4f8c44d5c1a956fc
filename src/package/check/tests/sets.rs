//! What several Packages are to each other.

use super::*;

#[test]
fn two_packages_of_one_name_are_an_error_within_a_namespace() {
    let twice = package("db", "") + &package("db", "");
    assert_eq!(found(&twice), ["error 9:18 WL024 Package `db` is there twice in namespace `apps`: also at p.yaml:4"]);
    let elsewhere = package("db", "") + &package("db, namespace: other", "");
    assert_eq!(found(&elsewhere), Vec::<String>::new());
}

#[test]
fn two_children_of_one_name_are_an_error() {
    let text = package("a-b", "components: [{name: c, CHART, install: {releaseName: x}}]")
        + &package("a", "components: [{name: b-c, CHART, install: {releaseName: z}}]");
    assert_eq!(
        found(&text),
        [
            "error 10:44 WL025 component `b-c` of Package `a` and component `c` of Package `a-b` are both `a-b-c` in the cluster"
        ]
    );
}

#[test]
fn the_numbered_children_of_hooks_count_too() {
    let text = package("a", "components: [{name: b, CHART, install: {releaseName: x, phase: PreUpgrade}}]")
        + &package("a-b", "components: [{name: \"7\", CHART, install: {releaseName: z}}]");
    let found = found(&text);
    assert!(found.len() == 1 && found[0].contains("are both `a-b-7` in the cluster"), "{found:?}");
}

#[test]
fn two_hooks_of_one_name_are_an_error() {
    let text = package("a-b", "components: [{name: c, CHART, install: {releaseName: x, phase: PreUpgrade}}]")
        + &package("a", "components: [{name: b-c, CHART, install: {releaseName: z, phase: PreUpgrade}}]");
    assert_eq!(
        found(&text),
        [
            "error 10:44 WL025 hook `b-c` of Package `a` and hook `c` of Package `a-b` are both `a-b-c-1` in the cluster in revision 1"
        ]
    );
    let elsewhere = text.replacen("{name: a}", "{name: a, namespace: other}", 1);
    assert_eq!(found(&elsewhere), Vec::<String>::new());
}

#[test]
fn two_packages_with_one_release_are_an_error() {
    let text = package("one", "components: [{name: a, CHART}]") + &package("two", "components: [{name: a, CHART}]");
    assert_eq!(
        found(&text),
        ["error 10:44 WL026 component `a` and component `a` of Package `one` are both release `a` in namespace `apps`"]
    );
}

#[test]
fn requirements_nobody_meets_are_warned_of() {
    let text = package(
        "app",
        "requires: [{package: databse}, {package: cache, optional: true}, {package: database, version: \">=2\"}, {kubernetes: \">=1.30\"}]",
    ) + &package("database", "");
    let report = report(&text, &Options::default());
    let shown: Vec<_> =
        report.diagnostics.iter().map(|d| (d.severity, d.code, d.message.as_str(), d.help.as_str())).collect();
    assert_eq!(
        shown,
        [
            (
                Severity::Warning,
                Code::UnmetRequirement,
                "no Package `databse` in namespace `apps` among these files",
                "did you mean `database`?"
            ),
            (
                Severity::Warning,
                Code::UnmetRequirement,
                "Package `database` is at 1.0.0 here, not in `>=2`",
                "widen the range, or change the version at p.yaml:10"
            ),
        ]
    );
}

#[test]
fn requirements_that_exclude_each_other_are_warned_of() {
    let text = package("a", "requires: [{package: db, version: ^1}]")
        + &package("b", "requires: [{package: db, version: ^2}]")
        + &package("db", "");
    let found = found(&text);
    assert!(
        found.iter().any(|line| line
            .contains("WL035 no version of Package `db` is both in `^2` and in `^1`, which Package `a` requires")),
        "{found:?}"
    );
}

#[rstest]
#[case::elsewhere(
    package("db", "requires: [{package: cache}]") + &package("cache", "").replace("name: cache", "name: cache, namespace: other"),
    "there is one in namespace `other`"
)]
#[case::itself(package("certificates", "requires: [{package: certificate}]"), "the Package will wait until")]
fn nobody_is_advised_to_require_what_cannot_be_met(#[case] text: String, #[case] help: &str) {
    let report = report(&text, &Options::default());
    let unmet = report.diagnostics.iter().find(|finding| finding.code == Code::UnmetRequirement).unwrap();
    assert!(unmet.help.starts_with(help), "{}", unmet.help);
}

#[test]
fn a_requirement_that_has_errors_of_its_own_is_there() {
    let text = package("app", "requires: [{package: db}]") + &package("db", "engine: x");
    assert_eq!(found(&text).iter().filter(|line| line.contains("WL036")).count(), 0);
}

#[rstest]
#[case(2)]
#[case(50)]
fn packages_that_require_each_other_are_an_error_with_the_path(#[case] length: usize) {
    let name = |n: usize| format!("p{:02}", n % length);
    let text: String =
        (0..length).map(|n| package(&name(n), &format!("requires: [{{package: {}}}]", name(n + 1)))).collect();
    let path: Vec<String> = (0..=length).map(name).collect();
    assert_eq!(
        found(&text),
        [format!("error 5:45 WL027 Packages require each other in a circle: {}", path.join(" -> "))]
    );
}

#[test]
fn a_package_that_requires_itself_is_an_error() {
    assert_eq!(
        found(&package("db", "requires: [{package: db}]")),
        ["error 5:45 WL027 a Package cannot require itself"]
    );
}

#[test]
fn a_circle_is_found_behind_a_tail_and_only_once() {
    let text = package("a", "requires: [{package: b}, {package: c}]")
        + &package("b", "requires: [{package: c}]")
        + &package("c", "requires: [{package: b}]");
    assert_eq!(found(&text), ["error 10:45 WL027 Packages require each other in a circle: b -> c -> b"]);
}
