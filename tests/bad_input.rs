//! Input that is wrong in one way each: the binary says where and what to do,
//! exits with 1, and neither crashes nor takes long.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use rstest::rstest;
use serde_json::Value;

const HEAD: &str = "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: db, namespace: apps}\nspec:\n  version: 1.0.0\n";
const CHART: &str = "chart: {repository: \"https://charts.example.org\", name: x, version: 1.0.0}";

/// A Package with these lines below `spec`.
fn package(lines: &str) -> String {
    format!("{HEAD}{}\n", lines.replace("CHART", CHART))
}

/// A Package with one component that has this field.
fn component(field: &str) -> String {
    package(&format!("  components:\n  - name: a\n    CHART\n    {field}"))
}

fn ready(expr: &str) -> String {
    component(&format!("install: {{readyWhen: [{{apiVersion: v1, kind: A, name: a, expr: \"{expr}\"}}]}}"))
}

fn validate(path: &Path) -> (i32, Value) {
    let output = Command::cargo_bin("windlass")
        .unwrap()
        .args(["validate", "--format", "json"])
        .arg(path)
        .timeout(std::time::Duration::from_secs(60))
        .output()
        .unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().unwrap(), json)
}

fn errors_in(content: &[u8]) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("p.yaml");
    fs::write(&file, content).unwrap();
    let (exit, json) = validate(&file);
    let diagnostics = json["diagnostics"].as_array().unwrap().clone();
    let errors: Vec<Value> = diagnostics.into_iter().filter(|diagnostic| diagnostic["severity"] == "error").collect();
    assert_eq!(exit, 1, "{json}");
    assert_eq!(json["summary"]["errors"], errors.len());
    assert_eq!(fs::read(&file).unwrap(), content);
    errors
}

/// The one error: its code, its line and what its remedy says.
fn only_error(content: &[u8]) -> (String, u64, String) {
    let errors = errors_in(content);
    assert_eq!(errors.len(), 1, "{errors:?}");
    let text = |key: &str| errors[0][key].as_str().unwrap().to_owned();
    assert!(text("path").ends_with("p.yaml"));
    assert!(errors[0]["column"].as_u64().unwrap() >= 1 && errors[0]["endLine"].as_u64() >= errors[0]["line"].as_u64());
    (text("code"), errors[0]["line"].as_u64().unwrap(), format!("{} / {}", text("message"), text("help")))
}

#[rstest]
#[case::empty(String::new(), "WL045", 1, "a Package begins with")]
#[case::duplicate_keys(package("  suspend: true\n  suspend: false"), "WL020", 7, "remove one")]
#[case::unknown_field(package("  suspnd: true"), "WL002", 6, "did you mean `suspend`?")]
#[case::wrong_type(package("  suspend: \"yes\""), "WL003", 6, "write true or false, without quotes")]
#[case::wrong_type_of_a_list(component("install: {dependsOn: b}"), "WL003", 9, "write a list")]
#[case::edge_to_nowhere(
    package(
        "  components:\n  - name: database\n    CHART\n  - name: a\n    CHART\n    install: {dependsOn: [databse]}"
    ),
    "WL013",
    11,
    "did you mean `database`?"
)]
#[case::edge_to_a_hook(
    package(
        "  components:\n  - name: h\n    CHART\n    install: {phase: PreUpgrade}\n  - name: a\n    CHART\n    install: {dependsOn: [h]}"
    ),
    "WL015",
    12,
    "remove the edge"
)]
#[case::chart_version_range(
    package("  components:\n  - name: a\n    chart: {repository: \"https://x\", name: x, version: \">=1.0\"}"),
    "WL007",
    8,
    "write all three numbers"
)]
#[case::malformed_digest(
    package(
        "  components:\n  - name: a\n    chart: {repository: \"https://x\", name: x, version: 1.0.0, digest: \"sha256:xyz\"}"
    ),
    "WL005",
    8,
    "64 lower-case hex digits"
)]
#[case::chart_name_out(
    package("  components:\n  - name: a\n    chart: {repository: \"oci://x/y\", name: ../z, version: 1.0.0}"),
    "WL005",
    8,
    "`name` is malformed"
)]
#[case::values_key(
    component("valuesFrom: [{kind: Secret, name: a-3f2a9c1b, valuesKey: a b}]"),
    "WL005",
    9,
    "`valuesKey` is malformed"
)]
#[case::target_path(
    component("valuesFrom: [{kind: Secret, name: a-3f2a9c1b, targetPath: \"a[0\"}]"),
    "WL005",
    9,
    "`targetPath` is malformed"
)]
#[case::pattern_for_a_kind(
    component("install: {ignore: [{kind: \"X.*\", jsonPointers: [/a]}]}"),
    "WL005",
    9,
    "`kind` is malformed"
)]
#[case::pattern_for_a_group(
    component("install: {ignore: [{kind: X, group: \"a(b\", jsonPointers: [/a]}]}"),
    "WL005",
    9,
    "`group` is malformed"
)]
#[case::pattern_for_a_name(
    component("install: {ignore: [{kind: X, name: \"a|b\", jsonPointers: [/a]}]}"),
    "WL005",
    9,
    "`name` is malformed"
)]
#[case::pattern_for_a_namespace(
    component("install: {ignore: [{kind: X, namespace: \".*\", jsonPointers: [/a]}]}"),
    "WL005",
    9,
    "`namespace` is malformed"
)]
#[case::path_for_a_name(
    component("install: {readyWhen: [{apiVersion: v1, kind: A, name: \"../b\", condition: Ready}]}"),
    "WL005",
    9,
    "`name` is malformed"
)]
#[case::path_for_an_api_version(
    component("install: {readyWhen: [{apiVersion: a/../v1, kind: A, name: b, condition: Ready}]}"),
    "WL005",
    9,
    "`apiVersion` is malformed"
)]
#[case::path_out(package("  components:\n  - name: a\n    path: ../../x"), "WL016", 8, "without `..`")]
#[case::substituted_name(package("  serviceAccountName: \"${account}\""), "WL006", 6, "lower-case letters")]
#[case::templated_name(package("  serviceAccountName: \"{{ account }}\""), "WL006", 6, "lower-case letters")]
#[case::template(package("  serviceAccountName: {{ account }}"), "WL001", 6, "render the template first")]
#[case::cel_syntax(ready("object.status ="), "WL030", 9, "")]
#[case::cel_of_100_kb(ready(&"a".repeat(100 << 10)), "WL019", 9, "at most 4096")]
#[case::cel_of_1000_parentheses(ready(&format!("{}1{}", "(".repeat(1000), ")".repeat(1000))), "WL030", 9, "")]
fn one_error_with_place_and_remedy(#[case] text: String, #[case] code: &str, #[case] line: u64, #[case] remedy: &str) {
    let (found, at, said) = only_error(text.as_bytes());
    assert_eq!((found.as_str(), at), (code, line), "{said}");
    assert!(said.contains(remedy), "{said}");
}

#[test]
fn binary() {
    assert_eq!(only_error(b"\x7fELF\x02\x01\x01\0\0\xff\xfe").0, "WL021");
}

#[test]
fn ten_megabyte_file() {
    let (code, _, said) = only_error(package(&"  # comment\n".repeat(900_000)).as_bytes());
    assert_eq!(code, "WL019");
    assert!(said.contains("split the file"), "{said}");
}

#[test]
fn ten_megabyte_scalar() {
    assert_eq!(only_error(component(&format!("values: {{a: {}}}", "x".repeat(10 << 20))).as_bytes()).0, "WL019");
    // Below the limit of a file there is one for a scalar.
    let (code, line, _) = only_error(component(&format!("values: {{a: {}}}", "x".repeat(7 << 20))).as_bytes());
    assert_eq!((code.as_str(), line), ("WL019", 9));
}

#[test]
fn billion_laughs() {
    let mut text = package(
        "  components:\n  - name: a\n    CHART\n    values:\n      a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]",
    );
    for level in 1..15 {
        text.push_str(&format!("      a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(", ")));
    }
    let (code, line, said) = only_error(text.as_bytes());
    assert_eq!((code.as_str(), line > 10), ("WL019", true));
    assert!(said.contains("aliases multiply"), "{said}");
}

#[test]
fn deep_nesting() {
    for nested in ["[".repeat(100_000), "{a: ".repeat(100_000), format!("{}{}", "[".repeat(70), "]".repeat(70))] {
        let (code, line, said) = only_error(component(&format!("values: {{a: {nested}}}")).as_bytes());
        assert_eq!((code.as_str(), line), ("WL019", 9), "{said}");
        assert!(said.contains("on fewer levels"), "{said}");
    }
}

#[rstest]
#[case::indentation(package("   suspend: true"), 6, "indent the line like those beside it")]
#[case::colon(package("  serviceAccountName: a: b"), 6, "put it in quotes")]
#[case::quote(package("  serviceAccountName: \"a"), 6, "close it with the quote")]
#[case::control_character(package("  serviceAccountName: \"\u{1b}[31m\""), 6, "write it as an escape")]
fn the_commonest_mistakes_of_yaml(#[case] text: String, #[case] line: u64, #[case] remedy: &str) {
    let (code, at, said) = only_error(text.as_bytes());
    assert_eq!((code.as_str(), at), ("WL001", line), "{said}");
    assert!(said.contains(remedy), "{said}");
}

#[test]
fn two_packages_of_one_name() {
    let (code, line, said) = only_error(format!("{}---\n{}", package(""), package("")).as_bytes());
    assert_eq!((code.as_str(), line), ("WL024", 10));
    assert!(said.contains("p.yaml:3") && said.contains("remove one"), "{said}");
}

#[rstest]
#[case::one(1, "component `c0` depends on itself", "remove the edge")]
#[case::two(2, "c0 -> c1 -> c0", "remove one of these edges")]
#[case::fifty(50, "c48 -> c49 -> c0", "remove one of these edges")]
fn cycle_of_components(#[case] length: usize, #[case] path: &str, #[case] remedy: &str) {
    let entry = |n: usize| format!("  - name: c{n}\n    CHART\n    install: {{dependsOn: [c{}]}}\n", (n + 1) % length);
    let text = package(&format!("  components:\n{}", (0..length).map(entry).collect::<String>()));
    let (code, line, said) = only_error(text.as_bytes());
    assert_eq!((code.as_str(), line), ("WL014", 9), "{said}");
    assert!(said.contains(path) && said.contains(remedy), "{said}");
}

#[rstest]
#[case::component(component("").replace("name: a\n", &format!("name: {}\n", "a".repeat(54))), "at most 53")]
#[case::package(package("").replace("name: db", &format!("name: {}", "p".repeat(64))), "at most 63")]
#[case::namespace(package("").replace("namespace: apps", &format!("namespace: {}", "n".repeat(64))), "at most 63")]
#[case::release(component(&format!("install: {{releaseName: {}}}", "r".repeat(54))), "at most 53")]
fn names_too_long(#[case] text: String, #[case] limit: &str) {
    let (code, _, said) = only_error(text.as_bytes());
    assert_eq!(code, "WL006");
    assert!(said.contains(limit), "{said}");
}

#[test]
fn wrong_types_are_all_found_at_once() {
    let text = "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: 5}\nspec:\n  version: 1.0\n  suspend: 1\n  requires: {}\n  components: [5, {name: a, path: [], values: 1}]\n";
    let lines: Vec<u64> = errors_in(text.as_bytes()).iter().map(|error| error["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 5, 6, 7, 8, 8, 8]);
}

#[test]
fn substitutions_in_values_are_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("p.yaml");
    fs::write(&file, component("values: {a: \"${VERSION}\", b: \"{{ .Release.Name }}\"}")).unwrap();
    let (exit, json) = validate(&file);
    assert_eq!((exit, &json["summary"]), (0, &serde_json::json!({"errors": 0, "warnings": 1})));
    assert_eq!(json["diagnostics"][0]["code"], "WL043");
}

#[cfg(unix)]
#[test]
fn symlink_out() {
    let directory = tempfile::tempdir().unwrap();
    let packages = directory.path().join("packages");
    fs::create_dir(&packages).unwrap();
    fs::write(directory.path().join("outside.yaml"), package("")).unwrap();
    std::os::unix::fs::symlink("../outside.yaml", packages.join("p.yaml")).unwrap();
    let (exit, json) = validate(&packages);
    assert_eq!((exit, &json["diagnostics"][0]["code"]), (1, &Value::from("WL016")));
    assert!(json["diagnostics"][0]["help"].as_str().unwrap().contains("replace it"));
}

#[cfg(unix)]
#[test]
fn chart_behind_a_symlink() {
    let directory = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("Chart.yaml"), "name: a\nversion: 1.0.0\n").unwrap();
    std::os::unix::fs::symlink(outside.path(), directory.path().join("chart")).unwrap();
    fs::write(directory.path().join("p.yaml"), package("  components:\n  - name: a\n    path: chart")).unwrap();
    let output = Command::cargo_bin("windlass")
        .unwrap()
        .current_dir(directory.path())
        .args(["validate", "--format", "json", "--chart-root", ".", "p.yaml"])
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["diagnostics"][0]["code"], "WL016", "{json}");
}

/// Such a file would otherwise be left out.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_cannot_be_read() {
    use std::os::unix::ffi::OsStrExt as _;
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("p.yaml"), package("")).unwrap();
    fs::write(directory.path().join(std::ffi::OsStr::from_bytes(b"image\xff.png")), "").unwrap();
    assert_eq!(
        run(directory.path(), &["validate", "--engine", "flux", "."]),
        (0, "1 Package, no findings\n".to_owned())
    );
    fs::write(directory.path().join(std::ffi::OsStr::from_bytes(b"q\xff.yaml")), package("")).unwrap();
    let (exit, json) = validate(directory.path());
    assert_eq!((exit, &json["diagnostics"][0]["code"]), (1, &Value::from("WL021")), "{json}");
}

/// What can be no Package holds up nobody but those who apply all that is there.
#[rstest]
#[case::latin_1(b"a: caf\xe9\n".to_vec(), "WL021")]
#[case::large("a: 1\n".repeat(2 << 20).into_bytes(), "WL019")]
fn a_file_of_a_directory_that_is_no_package_is_warned_of(#[case] content: Vec<u8>, #[case] code: &str) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("p.yaml"), package("")).unwrap();
    fs::write(directory.path().join("q.yaml"), &content).unwrap();
    let (exit, json) = validate(directory.path());
    let found = &json["diagnostics"][0];
    assert_eq!((exit, &found["code"], &found["severity"]), (0, &Value::from(code), &Value::from("warning")));
    assert_eq!(run(directory.path(), &["render", "--engine", "flux", "."]).0, 1);
    fs::write(directory.path().join("q.yaml"), [&content, b"kind: Package\n".as_slice()].concat()).unwrap();
    let (exit, json) = validate(directory.path());
    assert_eq!((exit, &json["diagnostics"][0]["code"]), (1, &Value::from(code)));
}

/// Only what could be a Package, or hold one, is missed.
#[cfg(unix)]
#[test]
fn links_that_lead_out_to_something_else() {
    let (directory, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(directory.path().join("p.yaml"), package("")).unwrap();
    let link = |target: &Path, name: &str| std::os::unix::fs::symlink(target, directory.path().join(name)).unwrap();
    fs::write(outside.path().join("README"), "").unwrap();
    link(&outside.path().join("README"), "README");
    link(&outside.path().join("gone"), "gone");
    assert_eq!(
        run(directory.path(), &["validate", "--engine", "flux", "."]),
        (0, "1 Package, no findings\n".to_owned())
    );
    link(outside.path(), "result");
    let (exit, json) = validate(directory.path());
    let found = &json["diagnostics"][0];
    assert_eq!((exit, &found["code"], &found["severity"]), (0, &Value::from("WL016"), &Value::from("warning")));
    assert_eq!(run(directory.path(), &["render", "--engine", "flux", "."]).0, 1);
}

/// Much of the same does not take much of the time: all of these were once compared pair by pair.
#[rstest]
#[case::keys_beside_a_merge(
    component(&format!("values: {{<<: {{a: 1}}{}}}", (0..40_000).map(|n| format!(", key-{n}-of-many-keys-in-one-map: 1")).collect::<String>())),
    "WL034"
)]
#[case::merges(
    component(&format!("values: {{<<: [{}]}}", (0..30_000).map(|n| format!("{{key-{n}-of-many-keys-in-many-maps: 1}}")).collect::<Vec<_>>().join(","))),
    "WL034"
)]
#[case::unknown_fields(package(&(0..40_000).map(|n| format!("  unknown{n}: 1\n")).collect::<String>()), "WL002")]
#[case::hooks(
    package(&format!("  components:\n{}", (0..60_000).map(|n| format!("  - {{name: c{n}, path: p, install: {{phase: PreUpgrade}}}}\n")).collect::<String>())),
    "WL019"
)]
#[case::entries_of_a_wrong_type(package(&format!("  components: [{}]", vec!["5"; 50_000].join(","))), "WL019")]
fn hostile_repetition(#[case] text: String, #[case] code: &str) {
    let errors = errors_in(text.as_bytes());
    assert!(errors.iter().any(|error| error["code"] == code), "{:?}", errors.first());
    assert!(errors.len() <= 250, "{} errors", errors.len());
}

fn run(directory: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::cargo_bin("windlass").unwrap();
    let output = command.current_dir(directory).env("NO_COLOR", "1").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), said)
}

/// Whichever command reads a file, what is wrong with it is said alike.
#[rstest]
#[case::broken(format!("{HEAD}\t- x\n"))]
#[case::refused(package("  suspnd: true"))]
#[case::nothing("# only\n---\n# comments\n".to_owned())]
fn every_command_says_the_same_of_a_bad_file(#[case] text: String) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("p.yaml"), text).unwrap();
    let (exit, expected) = run(directory.path(), &["validate", "p.yaml"]);
    assert_eq!(exit, 1, "{expected}");
    for arguments in [
        &["render", "--engine", "flux", "p.yaml"][..],
        &["render", "--engine", "argo", "--mode", "native", "-o", "out", "p.yaml"],
        &["graph", "p.yaml"],
        &["rehearse", "p.yaml"],
    ] {
        assert_eq!(run(directory.path(), arguments), (1, expected.clone()), "{arguments:?}");
    }
    assert!(!directory.path().join("out").exists());
}

#[rstest]
#[case::byte_order_mark(format!("\u{feff}{HEAD}"))]
#[case::lines_of_windows(HEAD.replace('\n', "\r\n"))]
#[case::comments_around(format!("# a\n---\n# b\n---\n{HEAD}---\n# c\n"))]
#[case::no_line_end(HEAD.trim_end().to_owned())]
fn what_editors_do_to_files_is_no_error(#[case] text: String) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("p.yaml"), text).unwrap();
    assert_eq!(
        run(directory.path(), &["validate", "--engine", "flux", "p.yaml"]),
        (0, "1 Package, no findings\n".to_owned())
    );
}

#[rstest]
#[case::nul(b"a: 1\nb: \0\n", "there is a NUL in line 2")]
#[case::latin_1(b"a: 1\nb: caf\xe9\n", "no UTF-8 text, from line 2 on (byte 11)")]
#[case::utf_16(b"\xff\xfea\0", "it looks like UTF-16")]
fn a_file_that_is_no_text(#[case] content: &[u8], #[case] said: &str) {
    let (code, _, message) = only_error(content);
    assert_eq!(code, "WL021");
    assert!(message.contains(said) && message.contains("UTF-8"), "{message}");
}

#[rstest]
#[case::binary("a: !!binary aGVsbG8=", "the tag `!!binary` is not supported")]
#[case::own("a: !vault x", "the tag `!vault` is not supported")]
#[case::set("a: !!set {x}", "the tag `!!set` is not supported")]
#[case::alias("a: *nowhere", "")]
#[case::key_that_is_a_map("? {a: 1}\n      : b", "")]
fn yaml_that_readers_disagree_about(#[case] values: &str, #[case] said: &str) {
    let (code, line, message) = only_error(component(&format!("values:\n      {values}")).as_bytes());
    assert_eq!((code.as_str(), line), ("WL001", 10), "{message}");
    assert!(message.contains(said), "{message}");
}

#[test]
fn a_merge_cannot_be_there_twice() {
    let values = "values: {base: &b {x: 1}, c: {<<: *b, <<: *b}}";
    let (code, line, message) = only_error(component(values).as_bytes());
    assert_eq!((code.as_str(), line), ("WL020", 9), "{message}");
}

#[test]
fn a_path_of_windows() {
    let (code, line, message) = only_error(package("  components:\n  - name: a\n    path: charts\\a").as_bytes());
    assert_eq!((code.as_str(), line), ("WL016", 8));
    assert!(message.contains("write `/` between directories"), "{message}");
}

#[cfg(unix)]
#[test]
fn links_that_lead_in_a_circle() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("p.yaml"), package("")).unwrap();
    std::os::unix::fs::symlink("q.yaml", directory.path().join("q.yaml")).unwrap();
    let (exit, json) = validate(directory.path());
    assert_eq!((exit, &json["diagnostics"][0]["code"]), (1, &Value::from("WL016")));
    let (exit, said) = run(directory.path(), &["validate", "q.yaml"]);
    assert!(exit == 3 && said.starts_with("error: cannot read q.yaml: "), "{said}");
}

#[test]
fn what_is_no_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("p.yaml"), package("")).unwrap();
    for path in ["q.yaml", "p.yaml/q.yaml", "p.yaml/"] {
        let (exit, said) = run(directory.path(), &["validate", path]);
        assert!(exit == 3 && said.starts_with(&format!("error: cannot read {path}: ")), "{said}");
    }
}

/// A device that takes nothing, as a disk that is full.
#[cfg(target_os = "linux")]
#[rstest]
#[case::result("crds")]
#[case::help("--help")]
#[case::version("--version")]
fn output_that_cannot_be_written(#[case] argument: &str) {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
    let output = command.arg(argument).stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3));
    assert!(said.starts_with("error: cannot write to standard output: "), "{said}");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_takes_no_output() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("p.yaml"), package("")).unwrap();
    std::os::unix::fs::symlink("gone", directory.path().join("out")).unwrap();
    let (exit, said) = run(directory.path(), &["render", "--engine", "flux", "-o", "out", "p.yaml"]);
    assert_eq!(exit, 3, "{said}");
    assert!(said.contains("cannot write into out: it is a symbolic link that leads nowhere"), "{said}");
}

/// What the shape of the file says already is not said again of the expression.
#[rstest]
#[case::empty("''", "WL005")]
#[case::blank("' '", "WL030")]
fn an_expression_that_says_nothing(#[case] expression: &str, #[case] code: &str) {
    let entry = format!("install: {{readyWhen: [{{apiVersion: v1, kind: Node, name: node, expr: {expression}}}]}}");
    let (found, _, said) = only_error(component(&entry).as_bytes());
    assert_eq!(found, code, "{said}");
}

/// Go makes the text of a key of the number that it has read.
#[rstest]
#[case::large("99999999999999999999999", "1e+23")]
#[case::small("-9223372036854775809", "-9.223372e+18")]
#[case::digits("1.10", "1.1")]
fn a_key_that_loses_digits_is_warned_of(#[case] written: &str, #[case] read: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("p.yaml");
    fs::write(&file, component(&format!("values: {{{written}: 1, \"{written} \": 2, 7: 3}}"))).unwrap();
    let (exit, json) = validate(&file);
    assert_eq!((exit, &json["summary"]), (0, &serde_json::json!({"errors": 0, "warnings": 1})), "{json}");
    let message = json["diagnostics"][0]["message"].as_str().unwrap();
    assert_eq!(message, format!("the key `{written}` is a number, of which the key `{read}` is made"));
}

#[test]
fn nesting_beyond_what_is_read_is_told_in_levels() {
    let deep = format!("values: {}1{}", "{a: ".repeat(2_000), "}".repeat(2_000));
    let (code, _, said) = only_error(component(&deep).as_bytes());
    assert_eq!(code, "WL019");
    assert!(said.contains("nested deeper than 64 levels"), "{said}");
}
