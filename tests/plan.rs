//! `windlass plan` as reviewers and workflows use it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Output;

use git2::{ObjectType, Signature};
use serde_json::{Value, json};
use tempfile::TempDir;

use common::text;

const CHANGES: i32 = 4;

/// A repository that is written file by file, without a work tree.
struct Repository {
    directory: TempDir,
    git: git2::Repository,
}

/// What an entry of a commit is.
#[derive(Clone, Copy)]
enum File<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Link(&'a str),
    Submodule,
}

impl Repository {
    fn bare() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path()).unwrap();
        Self { directory, git }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A commit that has exactly these files, and a branch that points at it.
    fn commit(&self, branch: &str, files: &[(&str, File<'_>)]) -> String {
        let mut index = git2::Index::new().unwrap();
        for (path, file) in files {
            let blob = |bytes: &[u8]| self.git.blob(bytes).unwrap();
            let (mode, id) = match file {
                File::Text(content) => (0o100_644, blob(content.as_bytes())),
                File::Bytes(content) => (0o100_644, blob(content)),
                File::Link(target) => (0o120_000, blob(target.as_bytes())),
                File::Submodule => (0o160_000, git2::Oid::from_bytes(&[7; 20]).unwrap()),
            };
            let time = git2::IndexTime::new(0, 0);
            let entry = git2::IndexEntry {
                ctime: time,
                mtime: time,
                dev: 0,
                ino: 0,
                mode,
                uid: 0,
                gid: 0,
                file_size: 0,
                id,
                flags: 0,
                flags_extended: 0,
                path: path.as_bytes().to_vec(),
            };
            index.add(&entry).unwrap();
        }
        let tree = self.git.find_tree(index.write_tree_to(&self.git).unwrap()).unwrap();
        let author = Signature::now("Test", "test@windlass.dev").unwrap();
        let reference = format!("refs/heads/{branch}");
        if let Ok(mut old) = self.git.find_reference(&reference) {
            old.delete().unwrap();
        }
        self.git.commit(Some(&reference), &author, &author, "Change", &tree, &[]).unwrap().to_string()
    }

    fn plan(&self, arguments: &[&str]) -> Output {
        let repository = self.path().display().to_string();
        plan(&[&["--repo", &repository], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        parse(&self.plan(&[arguments, &["--format", "json"]].concat()))
    }

    /// The plan between two commits with one file each.
    fn between(&self, from: &str, to: &str) -> Value {
        self.commit("from", &[("packages.yaml", File::Text(from))]);
        self.commit("to", &[("packages.yaml", File::Text(to))]);
        self.json(&["from", "to"])
    }
}

fn plan(arguments: &[&str]) -> Output {
    common::windlass(["plan"].iter().chain(arguments))
}

fn parse(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// A Package of components, each of a chart named like it.
fn package(name: &str, version: &str, more: &str, components: &[(&str, &str)]) -> String {
    let mut text = format!(
        "---\napiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: {name}, namespace: packages}}\n\
         spec:\n  version: {version}\n{more}  components:\n"
    );
    for (component, more) in components {
        text.push_str(&format!(
            "  - name: {component}\n    chart: {{repository: https://charts.example.org, name: {component}, \
             version: {version}}}\n{more}"
        ));
    }
    text
}

const AFTER: &str = "    install: {dependsOn: [operator]}\n";

fn names(plan: &Value) -> Vec<&str> {
    plan["packages"].as_array().unwrap().iter().map(|package| text(package, "/name")).collect()
}

/// `action component` of the steps of a package.
fn steps(package: &Value) -> Vec<String> {
    let steps = package["steps"].as_array().unwrap().iter();
    steps.map(|step| format!("{} {}", text(step, "/action"), text(step, "/component"))).collect()
}

fn only(plan: &Value) -> &Value {
    let packages = plan["packages"].as_array().unwrap();
    assert_eq!(packages.len(), 1, "{plan:#}");
    &packages[0]
}

#[test]
fn an_upgrade_is_told_in_the_order_in_which_it_happens_with_its_gates() {
    let hook = ("migrate", "    install: {phase: PreUpgrade}\n");
    let ready = "    install:\n      dependsOn: [operator]\n      readyWhen:\n      - {apiVersion: example.org/v1, kind: Thing, name: it, \
                 expr: \"object.status.version == version\"}\n";
    let components = [("thing", ready), ("operator", ""), hook];
    let plan = Repository::bare()
        .between(&package("shop", "1.0.0", "", &components), &package("shop", "1.1.0", "", &components));
    let package = only(&plan);
    assert_eq!(text(package, "/change"), "upgraded");
    assert_eq!((text(package, "/fromVersion"), text(package, "/toVersion")), ("1.0.0", "1.1.0"));
    assert_eq!(steps(package), ["runHook migrate", "upgrade operator", "upgrade thing"]);
    let thing = &package["steps"][2];
    assert_eq!(thing["gate"], json!(["`operator` runs 1.1.0, and its release is ready"]));
    assert_eq!(thing["changes"], json!([{"path": "chart.version", "from": "1.0.0", "to": "1.1.0"}]));
    assert_eq!(package["steps"][1]["gate"], json!(["hook `migrate` has succeeded"]));
    assert_eq!(package["refused"], Value::Null);
}

#[test]
fn what_a_failure_does_is_what_the_author_allows() {
    let repository = Repository::bare();
    let before = package("shop", "1.0.0", "", &[("api", "")]);
    let action = |more: &str| {
        let plan = repository.between(&before, &package("shop", "1.1.0", more, &[("api", "")]));
        let failure = &only(&plan)["onFailure"];
        (text(failure, "/action").to_owned(), text(failure, "/why").to_owned())
    };
    let (stop, why) = action("");
    assert!(stop == "stop" && why.contains("does not say rollback.safe: true"), "{why}");
    let (back, why) = action("  rollback: {safe: true}\n");
    assert!(back == "rollBack" && why.contains("1.0.0 may run again"), "{why}");
    let (stop, why) = action("  rollback: {safe: true, to: '>=1.0.5'}\n");
    assert!(stop == "stop" && why.contains(">=1.0.5"), "{why}");
    let plan = repository.between("", &before);
    assert_eq!(text(only(&plan), "/onFailure/action"), "retry");
    assert_eq!(text(only(&plan), "/change"), "installed");
}

#[test]
fn a_hook_that_fails_is_told_apart_from_a_component() {
    let hook = ("migrate", "    install: {phase: PreUpgrade}\n");
    let both = |more| package("shop", "1.1.0", more, &[hook, ("api", "")]);
    let repository = Repository::bare();
    repository.commit("from", &[("packages.yaml", File::Text(&package("shop", "1.0.0", "", &[("api", "")])))]);
    for more in ["", "  rollback: {safe: true}\n"] {
        repository.commit("to", &[("packages.yaml", File::Text(&both(more)))]);
        let plan = repository.json(&["from", "to"]);
        let failure = &only(&plan)["onFailure"];
        let hook = text(failure, "/hook");
        assert!(hook.contains("HookFailed") && hook.contains("no component has changed"), "{hook}");
        assert!(!text(failure, "/why").contains("hook"), "{failure}");
        let shown = repository.plan(&["from", "to"]);
        assert!(stdout(&shown).contains("   if a hook fails: it stands at HookFailed, and no component"), "{shown:?}");
        assert!(stdout(&shown).contains("   if a component fails: "), "{shown:?}");
        assert!(!stdout(&shown).contains("if it fails"), "{shown:?}");
        let markdown = repository.plan(&["from", "to", "--format", "markdown"]);
        assert!(stdout(&markdown).contains("| of a hook: it stands at HookFailed"), "{markdown:?}");
        assert!(stdout(&markdown).contains("- if a hook fails: it stands at HookFailed"), "{markdown:?}");
    }
    let plan = repository
        .between(&package("shop", "1.0.0", "", &[("api", "")]), &package("shop", "1.1.0", "", &[("api", "")]));
    assert_eq!(only(&plan)["onFailure"]["hook"], Value::Null);
}

#[test]
fn an_engine_that_is_assumed_is_said() {
    let (before, after) = (package("shop", "1.0.0", "", &[("api", "")]), package("shop", "1.1.0", "", &[("api", "")]));
    let repository = Repository::bare();
    let notes = |plan: &Value| {
        plan["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let plan = repository.between(&before, &after);
    let told = "packages/shop names no engine: planned for flux; --engine argo plans for Argo CD";
    assert_eq!(notes(&plan), [told]);
    assert_eq!(only(&plan)["engine"], "flux");
    for format in ["text", "markdown"] {
        let shown = repository.plan(&["from", "to", "--format", format]);
        assert!(stdout(&shown).contains(&told.replace('`', "")), "{shown:?}");
    }
    let named = repository.json(&["from", "to", "--engine", "argo"]);
    assert_eq!((notes(&named), &only(&named)["engine"]), (Vec::new(), &json!("argo")));
    let with = |version| package("shop", version, "  engine: flux\n", &[("api", "")]);
    assert_eq!(notes(&repository.between(&with("1.0.0"), &with("1.1.0"))), Vec::<String>::new());
    assert_eq!(notes(&repository.between(&after, &after)), Vec::<String>::new());
}

#[test]
fn what_only_is_verified_again_is_told() {
    let with = |values: &str| package("shop", "1.0.0", "", &[("operator", values), ("thing", AFTER)]);
    let plan = Repository::bare().between(&with(""), &with("    values: {replicas: 2}\n"));
    let package = only(&plan);
    assert_eq!(text(package, "/change"), "changed");
    assert_eq!(steps(package), ["upgrade operator", "verifyAgain thing"]);
    assert_eq!(package["steps"][0]["changes"], json!([{"path": "values", "from": null, "to": {"replicas": 2}}]));
}

#[test]
fn how_nodes_go_behind_a_canary_is_told_where_pods_are_replaced() {
    let agent = "    canary: {steps: [\"2\", \"25%\"], soak: 2m}\n";
    let of = |version: &str| package("p", version, "", &[("operator", ""), ("agent", agent)]);
    let repository = Repository::bare();
    let upgraded = repository.between(&of("1.0.0"), &of("1.1.0"));
    let rollout = &only(&upgraded)["steps"][1]["rollout"];
    assert_eq!(
        *rollout,
        "behind a canary: one node first, ready for 2m; then at most 2, then 25% of the nodes at once"
    );
    assert!(only(&upgraded)["steps"][0]["rollout"].is_null());
    let text = repository.plan(&["from", "to"]);
    assert!(stdout(&text).contains("rolled out behind a canary: one node first"), "{}", stdout(&text));
    let installed = repository.between("", &of("1.1.0"));
    assert!(only(&installed)["steps"][1]["rollout"].is_null(), "{installed:#}");
}

#[test]
fn lists_among_the_values_are_replaced_as_a_whole() {
    let with = |values: &str| package("shop", "1.0.0", "", &[("api", values)]);
    let plan = Repository::bare().between(
        &with("    values: {hosts: [a, b], deep: {size: 1}}\n"),
        &with("    values: {hosts: [a], deep: {size: 2}}\n"),
    );
    let step = &only(&plan)["steps"][0];
    assert_eq!(
        step["changes"],
        json!([
            {"path": "values.hosts", "from": ["a", "b"], "to": ["a"]},
            {"path": "values.deep.size", "from": 1, "to": 2},
        ])
    );
    assert_eq!(step["warnings"], json!(["the list at `values.hosts` is replaced as a whole"]));
}

#[test]
fn removed_and_renamed_components_are_told_apart() {
    let three = package("shop", "1.0.0", "", &[("operator", ""), ("old", AFTER), ("gone", AFTER)]);
    let renamed = "    install: {dependsOn: [operator], releaseName: old}\n";
    let new = package("shop", "1.0.0", "", &[("operator", ""), ("new", renamed)])
        .replace("name: new, version", "name: old, version");
    let plan = Repository::bare().between(&three, &new);
    let steps = steps(only(&plan));
    assert_eq!(steps, ["handOver new", "remove gone"], "{plan:#}");
}

#[test]
fn packages_come_in_the_order_of_their_requirements() {
    let set = |version: &str, range: &str| {
        let requires = format!("  requires: [{{package: base, version: '{range}'}}]\n");
        package("app", version, &requires, &[("app", "")]) + &package("base", version, "", &[("base", "")])
    };
    let repository = Repository::bare();
    let plan = repository.between(&set("1.0.0", ">=1"), &set("2.0.0", ">=2"));
    assert_eq!(names(&plan), ["base", "app"]);
    let requirement = &plan["packages"][1]["requirements"][0];
    assert_eq!((text(requirement, "/what"), text(requirement, "/state")), ("package base", "metAfter"));
    assert_eq!(plan["packages"][1]["warnings"], json!([]));

    let plan = repository.between(&set("1.0.0", ">=1"), &set("2.0.0", ">=1"));
    let warnings =
        plan["packages"].as_array().unwrap().iter().find(|p| p["name"] == "app").unwrap()["warnings"].to_string();
    assert!(warnings.contains("admits both: it orders nothing"), "{warnings}");

    let plan = repository.between(&set("1.0.0", ">=1"), &set("2.0.0", ">=3"));
    let app = plan["packages"].as_array().unwrap().iter().find(|package| package["name"] == "app").unwrap();
    assert_eq!(text(app, "/refused/reason"), "RequirementsNotMet");
    assert_eq!(text(app, "/requirements/0/state"), "notMet");
    assert_eq!(app["steps"], json!([]));
}

#[test]
fn a_requirement_that_is_not_among_the_files_holds_nothing_up() {
    let with = |version: &str| package("app", version, "  requires: [{package: elsewhere}]\n", &[("app", "")]);
    let plan = Repository::bare().between(&with("1.0.0"), &with("1.1.0"));
    assert_eq!(steps(only(&plan)), ["upgrade app"]);
    assert_eq!(text(only(&plan), "/requirements/0/state"), "unknown");
    assert!(plan["notes"].to_string().contains("package elsewhere is required"), "{plan:#}");
}

#[test]
fn refused_moves_are_told_with_their_reason() {
    let of = |version: &str, more: &str| package("shop", version, more, &[("api", "")]);
    let repository = Repository::bare();
    let plan = repository.between(&of("2.0.0", ""), &of("1.0.0", ""));
    assert_eq!(text(only(&plan), "/refused/reason"), "DowngradeRefused");
    let plan = repository.between(&of("1.0.0", ""), &of("3.0.0", "  upgrade: {from: '>=2'}\n"));
    assert_eq!(text(only(&plan), "/refused/reason"), "UpgradePathNotAllowed");
    assert_eq!(only(&plan)["steps"], json!([]));
}

/// A version in between leads upwards alone.
#[test]
fn a_downgrade_is_refused_as_one_whatever_may_be_upgraded() {
    let of =
        |version: &str, upgrade: &str| package("shop", version, &format!("  upgrade: {{{upgrade}}}\n"), &[("api", "")]);
    let repository = Repository::bare();
    let refused = |upgrade: &str| {
        let plan = repository.between(&of("1.15.0", ""), &of("1.14.0", upgrade));
        only(&plan)["refused"].clone()
    };
    let range = "from: '>=1.13 <1.15'";
    let found = refused(range);
    assert_eq!(text(&found, "/reason"), "DowngradeRefused");
    assert_eq!(
        text(&found, "/message"),
        "version 1.15.0 runs, 1.14.0 is older: set upgrade.allowDowngrade if that is meant, and let upgrade.from (>=1.13 <1.15) admit 1.15.0"
    );
    let found = refused(&format!("{range}, allowDowngrade: true"));
    assert_eq!(text(&found, "/reason"), "UpgradePathNotAllowed");
    assert_eq!(
        text(&found, "/message"),
        "version 1.15.0 runs, 1.14.0 is older and can only follow >=1.13 <1.15: let upgrade.from admit 1.15.0"
    );
    assert_eq!(refused("from: '>=1.13', allowDowngrade: true"), Value::Null);
    assert!(!text(&refused("from: '>=1.13'"), "/message").contains("upgrade.from"));
}

#[test]
fn a_removed_package_is_uninstalled_dependents_first() {
    let shop = package("shop", "1.0.0", "", &[("operator", ""), ("thing", AFTER)]);
    let plan = Repository::bare().between(&shop, "");
    let package = only(&plan);
    assert_eq!(
        (text(package, "/change"), steps(package)),
        ("removed", vec!["remove thing".to_owned(), "remove operator".to_owned()])
    );
    assert!(package["steps"][0]["warnings"].to_string().contains("stay"), "{package:#}");
}

fn chart_files<'a>(engine: &str, version: &str, template: &'a str) -> Vec<(&'static str, File<'a>)> {
    let package = format!(
        "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: shop}}\nspec:\n  version: 1.0.0\n  engine: {engine}\n  \
         sourceRef: {{kind: GitRepository, name: it}}\n  components:\n  - {{name: api, path: charts/api, chartVersion: {version}}}\n"
    );
    let chart = format!("apiVersion: v2\nname: api\nversion: {version}\n");
    vec![
        ("packages/shop.yaml", File::Text(Box::leak(package.into_boxed_str()))),
        ("charts/api/Chart.yaml", File::Text(Box::leak(chart.into_boxed_str()))),
        ("charts/api/templates/it.yaml", File::Text(template)),
    ]
}

#[test]
fn a_chart_whose_files_change_must_change_its_version() {
    let repository = Repository::bare();
    repository.commit("from", &chart_files("flux", "1.0.0", "a: 1\n"));
    repository.commit("to", &chart_files("flux", "1.0.0", "a: 2\n"));
    let output = repository.plan(&["from", "to"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(
        stdout(&output).contains("files of `charts/api` change, and its version stays 1.0.0"),
        "{}",
        stdout(&output)
    );
    let markdown = repository.plan(&["from", "to", "--format", "markdown"]);
    for said in [stdout(&output), stdout(&markdown)] {
        assert!(!said.contains("nothing moves") && !said.contains("nothing can fail"), "{said}");
        assert!(said.contains("shop: 1.0.0, to be mended first"), "{said}");
    }
    repository.commit("to", &chart_files("flux", "1.0.1", "a: 2\n"));
    let plan = repository.json(&["from", "to"]);
    assert_eq!(steps(only(&plan)), ["upgrade api"]);

    // Argo CD is told by the content.
    repository.commit("from", &chart_files("argo", "1.0.0", "a: 1\n"));
    repository.commit("to", &chart_files("argo", "1.0.0", "a: 2\n"));
    let plan = repository.json(&["from", "to"]);
    assert_eq!(steps(only(&plan)), ["upgrade api"]);
    assert!(only(&plan)["steps"][0]["warnings"].to_string().contains("its version stays"), "{plan:#}");
}

/// helm-controller tells by it whether a release is still the same one.
#[test]
fn a_chart_of_another_name_at_the_same_path_is_an_error_on_flux() {
    let repository = Repository::bare();
    repository.commit("from", &chart_files("flux", "1.0.0", ""));
    let mut files = chart_files("flux", "1.1.0", "");
    files[1].1 = File::Text("apiVersion: v2\nname: other\nversion: 1.1.0\n");
    repository.commit("to", &files);
    let output = repository.plan(&["from", "to"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let said = "error: component api: the chart at `charts/api` is named `other`, and was `api`";
    assert!(stdout(&output).contains(said), "{}", stdout(&output));
}

#[test]
fn a_chart_that_is_not_there_is_an_error_and_the_rest_is_planned() {
    let repository = Repository::bare();
    let mut files = chart_files("flux", "1.0.0", "");
    repository.commit("from", &files);
    files = chart_files("flux", "1.1.0", "");
    files.truncate(1);
    repository.commit("to", &files);
    let output = repository.plan(&["from", "to"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("error: component api: there is no directory `charts/api`"),
        "{}",
        stdout(&output)
    );
    assert!(stdout(&output).contains("1.1 upgrade api 1.0.0 → 1.1.0"), "{}", stdout(&output));
}

#[test]
fn files_may_move_and_nothing_changes() {
    let repository = Repository::bare();
    let shop = package("shop", "1.0.0", "", &[("api", "")]);
    repository.commit("from", &[("a/shop.yaml", File::Text(&shop)), ("note.txt", File::Text("1"))]);
    repository.commit("to", &[("b/c/other.yaml", File::Text(&shop)), ("note.txt", File::Text("2"))]);
    let output = repository.plan(&["from", "to"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "Nothing changes.\n"), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_a_package_at_one_of_the_revisions_only_is_installed_or_removed() {
    let repository = Repository::bare();
    let shop = package("shop", "1.0.0", "", &[("api", "")]);
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n";
    repository.commit("from", &[("shop.yaml", File::Text(map))]);
    repository.commit("to", &[("shop.yaml", File::Text(&shop))]);
    assert_eq!(text(only(&repository.json(&["from", "to"])), "/change"), "installed");
    assert_eq!(text(only(&repository.json(&["to", "from"])), "/change"), "removed");
}

#[test]
fn links_and_submodules_are_no_way_out() {
    let repository = Repository::bare();
    let shop = package("shop", "1.0.0", "", &[("api", "")]);
    repository.commit("from", &[]);
    let inside = [("real.yaml", File::Text(&shop)), ("link.yaml", File::Link("real.yaml")), ("sub", File::Submodule)];
    repository.commit("to", &inside);
    let output = repository.plan(&["from", "to"]);
    assert_eq!(output.status.code(), Some(CHANGES), "{}", stderr(&output));
    let note = "`sub` is a Git submodule: Packages in it are not looked at";
    assert!(stdout(&output).contains(note), "{}", stdout(&output));
    // What no Package could be in does no harm.
    let links = [("out", File::Link("../dir")), ("data", File::Link("/etc/passwd")), ("x.md", File::Link("gone.md"))];
    repository.commit("to", &[[("real.yaml", File::Text(&shop))].as_slice(), &links].concat());
    let output = repository.plan(&["from", "to"]);
    assert_eq!(output.status.code(), Some(CHANGES), "{}", stderr(&output));
    for target in ["../outside.yaml", "/etc/passwd", "link.yaml", "nowhere.yaml"] {
        repository.commit("to", &[("real.yaml", File::Text(&shop)), ("link.yaml", File::Link(target))]);
        let output = repository.plan(&["from", "to"]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{target}: {message}");
        assert!(
            message.contains("to:link.yaml") && message.contains("leads out of the directory, or nowhere"),
            "{message}"
        );
    }
}

#[test]
fn a_file_that_is_no_text_is_named_with_its_revision() {
    let repository = Repository::bare();
    repository.commit("from", &[]);
    repository.commit("to", &[("packages/it.yaml", File::Bytes(b"kind: Package\na: \xff\xfe\n"))]);
    let output = repository.plan(&["from", "to", "packages"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("to:packages/it.yaml") && stderr(&output).contains("UTF-8"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_is_no_revision_is_told_with_what_to_do() {
    let repository = Repository::bare();
    let shop = package("shop", "1.0.0", "", &[("api", "")]);
    let files = [("a", File::Text("a")), ("charts/x", File::Text("x")), ("shop.yaml", File::Text(&shop))];
    let commit = repository.commit("main", &files);
    let said = |arguments: &[&str], code: i32, message: &str| {
        let output = repository.plan(arguments);
        assert!(stderr(&output).contains(message), "{arguments:?}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    };
    said(&["main", "feature"], 3, "`feature` is neither a directory nor a revision of the Git repository at");
    said(&["main", "main:a"], 3, "`main:a` is no commit: give `main`, and `a` as PATH");
    said(&[":0", "main"], 3, "`:0` stands for something that is staged, not for a commit");
    said(&["", "main"], 2, "FROM is empty");
    said(&["main", ""], 2, "TO is empty");
    said(&["main", "main", "nowhere"], 1, "`nowhere` is in neither of the two");
    said(&["main", "main", "charts"], 1, "there is no Package in either of the two");
    said(&["main", "main", "../x"], 2, "leads out of what is compared");
    assert_eq!(repository.plan(&["main", &commit[..10]]).status.code(), Some(0));
    let empty = Repository::bare();
    let output = empty.plan(&["HEAD", "HEAD"]);
    assert!(stderr(&output).contains("nothing has been committed there yet"), "{}", stderr(&output));
    let elsewhere = tempfile::tempdir().unwrap();
    let output = plan(&["main", "HEAD", "--repo", &elsewhere.path().display().to_string()]);
    assert!(stderr(&output).contains("`main` is no directory, and no revision either"), "{}", stderr(&output));
    assert!(stderr(&output).contains("there is no Git repository at"), "{}", stderr(&output));
    std::fs::write(elsewhere.path().join("shop.yaml"), &shop).unwrap();
    let file = elsewhere.path().join("shop.yaml").display().to_string();
    let output = plan(&[&file, &file, "--repo", &elsewhere.path().display().to_string()]);
    assert!(stderr(&output).contains("is a file: give the directory that it is in"), "{}", stderr(&output));
}

/// A step of a pipeline that lets changes pass does not let these pass.
#[test]
fn what_would_be_refused_must_be_mended_first() {
    let (old, new) = (package("shop", "1.0.0", "", &[("api", "")]), package("shop", "2.0.0", "", &[("api", "")]));
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [old, new] = [(&directories[0], old), (&directories[1], new)].map(|(directory, text)| {
        std::fs::write(directory.path().join("shop.yaml"), text).unwrap();
        directory.path().display().to_string()
    });
    assert_eq!(plan(&[&old, &new]).status.code(), Some(4));
    let back = plan(&[&new, &old]);
    assert!(stdout(&back).contains("DowngradeRefused"), "{}", stdout(&back));
    assert_eq!(back.status.code(), Some(1));
}

#[test]
fn uncommitted_changes_are_no_part_of_it_and_it_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let git = git2::Repository::init(directory.path()).unwrap();
    let shop = package("shop", "1.0.0", "", &[("api", "")]);
    std::fs::write(directory.path().join("shop.yaml"), &shop).unwrap();
    let mut index = git.index().unwrap();
    index.add_path(Path::new("shop.yaml")).unwrap();
    index.write().unwrap();
    let tree = git.find_object(index.write_tree().unwrap(), Some(ObjectType::Tree)).unwrap().into_tree().unwrap();
    let author = Signature::now("Test", "test@windlass.dev").unwrap();
    git.commit(Some("HEAD"), &author, &author, "Change", &tree, &[]).unwrap();
    let repository = directory.path().display().to_string();
    let clean = plan(&["HEAD", "HEAD", "--repo", &repository]);
    assert_eq!((stderr(&clean), clean.status.code()), ("", Some(0)));
    std::fs::write(directory.path().join("shop.yaml"), package("shop", "2.0.0", "", &[("api", "")])).unwrap();
    let dirty = plan(&["HEAD", "HEAD", "--repo", &repository]);
    assert_eq!(dirty.status.code(), Some(0));
    assert!(stderr(&dirty).contains("uncommitted changes, which are not part of this plan"), "{}", stderr(&dirty));
    // A directory wins over a revision, and has what is not committed.
    let against = plan(&["HEAD", &repository, "--repo", &repository]);
    assert_eq!(against.status.code(), Some(CHANGES), "{}", stderr(&against));
}

/// The commit that mends them must not be held up by them.
#[test]
fn mistakes_before_the_commit_are_shown_and_the_rest_is_planned() {
    let repository = Repository::bare();
    let shop = |more: &str| package("shop", "1.0.0", more, &[("api", "")]);
    let web = |version: &str| package("web", version, "  requires: [{package: shop}]\n", &[("web", "")]);
    for broken in [shop("  timeuot: 1m\n"), shop("  a: [\n"), shop("").replace("kind: Package", "kin: Package")] {
        repository.commit("from", &[("shop.yaml", File::Text(&broken)), ("web.yaml", File::Text(&web("1.0.0")))]);
        repository.commit("to", &[("shop.yaml", File::Text(&shop(""))), ("web.yaml", File::Text(&web("1.1.0")))]);
        let output = repository.plan(&["from", "to"]);
        assert_eq!(output.status.code(), Some(CHANGES), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("note: there are errors in from,") && said.contains("from:shop.yaml:"), "{said}");
        let shown = stdout(&output);
        assert!(shown.contains("1. packages/web: upgrade 1.0.0 → 1.1.0"), "{shown}");
        assert!(shown.contains("note: what runs of packages/shop is not known") && !shown.contains("2. "), "{shown}");
        repository.commit("to", &[("shop.yaml", File::Text(&shop(""))), ("web.yaml", File::Text(&web("1.0.0")))]);
        let output = repository.plan(&["from", "to"]);
        assert_eq!(output.status.code(), Some(CHANGES), "{}", stderr(&output));
        assert!(stdout(&output).contains("note: what runs of packages/shop is not known"), "{}", stdout(&output));
        let told = "What changes cannot be told: what runs of packages/shop could not be read.";
        assert!(stdout(&output).ends_with(&format!("{told}\n")), "{}", stdout(&output));
        let markdown = repository.plan(&["from", "to", "--format", "markdown"]);
        assert!(stdout(&markdown).contains(told), "{}", stdout(&markdown));
        assert!(!stdout(&markdown).contains("Nothing changes"), "{}", stdout(&markdown));
        let json = repository.json(&["from", "to"]);
        assert_eq!((&json["packages"], &json["unknown"]), (&json!([]), &json!(["packages/shop"])), "{json:#}");
        let output = repository.plan(&["to", "from"]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""), "{}", stderr(&output));
    }
}

/// No Package was found in it, and the commit removes the file.
#[test]
fn what_went_with_a_file_that_could_not_be_read_is_not_known() {
    let repository = Repository::bare();
    let (shop, web) = (package("shop", "1.0.0", "  a: [\n", &[]), package("web", "1.0.0", "", &[("web", "")]));
    repository.commit("from", &[("shop.yaml", File::Text(&shop)), ("web.yaml", File::Text(&web))]);
    repository.commit("to", &[("web.yaml", File::Text(&web))]);
    let output = repository.plan(&["from", "to"]);
    assert_eq!(output.status.code(), Some(CHANGES), "{}", stdout(&output));
    assert!(stdout(&output).contains("what runs of shop.yaml could not be read"), "{}", stdout(&output));
}

#[test]
fn a_chart_in_a_submodule_is_named() {
    let repository = Repository::bare();
    let text = package("shop", "1.0.0", "", &[]);
    let text = text.replace("components:\n", "sourceRef: {kind: GitRepository, name: g}\n  components:\n  - {name: a, path: vendor/a, chartVersion: 1.0.0}\n");
    repository.commit("from", &[]);
    repository.commit("to", &[("shop.yaml", File::Text(&text)), ("vendor", File::Submodule)]);
    let output = repository.plan(&["from", "to"]);
    let shown = stdout(&output);
    assert!(
        shown.contains("component a: `vendor` is a Git submodule, whose files are not in this repository"),
        "{shown}"
    );
}

#[test]
fn mistakes_are_shown_as_validate_shows_them() {
    let repository = Repository::bare();
    repository.commit("from", &[]);
    let broken = package("shop", "1.0.0", "  timeuot: 1m\n", &[("api", "")]);
    repository.commit("to", &[("shop.yaml", File::Text(&broken))]);
    let output = repository.plan(&["from", "to"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("to:shop.yaml:7:") && stderr(&output).contains("timeuot"), "{}", stderr(&output));
}

#[test]
fn markdown_takes_nothing_of_a_package_for_markup() {
    let repository = Repository::bare();
    let with = |values: &str| package("shop", "1.0.0", "", &[("api", values)]);
    repository.commit("from", &[("shop.yaml", File::Text(&with("    values: {a: 1}\n")))]);
    repository.commit("to", &[("shop.yaml", File::Text(&with("    values: {a: '`@team <b>|'}\n")))]);
    let output = repository.plan(&["from", "to", "--format", "markdown"]);
    assert!(stdout(&output).contains("``values.a: 1 → \"`@team <b>\\|\"``"), "{}", stdout(&output));
    assert!(
        stdout(&output).contains("<details><summary>1. packages/shop: change 1.0.0</summary>"),
        "{}",
        stdout(&output)
    );
}

/// The corpus as Packages.
fn imported(corpus: &Path, directory: &Path, version: &str) -> PathBuf {
    let out = directory.join(version);
    common::printed([
        "import".as_ref(),
        "cozystack".as_ref(),
        corpus.join("cozystack").join(version).as_os_str(),
        "--version".as_ref(),
        version.trim_start_matches('v').as_ref(),
        "-o".as_ref(),
        out.as_os_str(),
    ]);
    out
}

/// What a person reads from the files of the two versions: what becomes of the
/// package, what it waits for, and its steps with what changes beside the version.
type Reading = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const NETWORKING: &str = "networking";
const READINGS: [Reading; 12] = [
    // The variant that installs nothing comes first.
    (NETWORKING, "upgraded", &[], &[]),
    // Its only component has no `install`.
    ("gateway-application", "upgraded", &["gateway-api-crds", "cert-manager", "cozystack-engine"], &[]),
    // The CRDs get a release of their own, before the operator.
    (
        "etcd-operator",
        "upgraded",
        &[NETWORKING, "cert-manager", "vertical-pod-autoscaler"],
        &["install etcd-operator-crds", "upgrade etcd-operator: install.dependsOn install.upgradeCRDs"],
    ),
    (
        "mongodb-operator",
        "upgraded",
        &[NETWORKING, "prometheus-operator-crds", "cert-manager"],
        &["upgrade mongodb-operator: install.upgradeCRDs"],
    ),
    ("velero", "upgraded", &[NETWORKING, "monitoring-agents"], &["upgrade velero: install.upgradeCRDs"]),
    // New requirements.
    (
        "vertical-pod-autoscaler",
        "upgraded",
        &[NETWORKING, "cert-manager"],
        &["upgrade vertical-pod-autoscaler-crds", "upgrade vertical-pod-autoscaler"],
    ),
    (
        "kubevirt-cdi",
        "upgraded",
        &[NETWORKING, "cozystack-basics"],
        &["upgrade kubevirt-cdi-operator", "upgrade kubevirt-cdi"],
    ),
    (
        "cozystack-basics",
        "upgraded",
        &["tenant-application", "cozystack-engine", "gateway-api-crds"],
        &["upgrade cozystack-basics"],
    ),
    (
        "kubevirt",
        "upgraded",
        &[NETWORKING, "prometheus-operator-crds"],
        &["upgrade kubevirt-operator", "upgrade kubevirt", "upgrade kubevirt-instancetypes"],
    ),
    (
        "linstor",
        "upgraded",
        &[NETWORKING, "cert-manager", "victoria-metrics-operator", "reloader", "snapshot-controller"],
        &["upgrade piraeus-operator-crds", "upgrade piraeus-operator", "upgrade linstor"],
    ),
    // New packages.
    ("securitygroup-controller", "installed", &[NETWORKING], &["install securitygroup-controller"]),
    (
        "kubernetes-nodes-application",
        "installed",
        &[
            NETWORKING,
            "capi-operator",
            "capi-provider-bootstrap-kubeadm",
            "capi-provider-core",
            "capi-provider-cp-kamaji",
            "capi-provider-infra-kubevirt",
            "cozystack-engine",
        ],
        &["install kubernetes-nodes-rd"],
    ),
];

fn step_with_changes(step: &Value) -> String {
    let changes = step["changes"].as_array().unwrap().iter().map(|change| text(change, "/path"));
    let changes: Vec<&str> = changes.filter(|path| *path != "chartVersion").collect();
    let said = format!("{} {}", text(step, "/action"), text(step, "/component"));
    if changes.is_empty() { said } else { format!("{said}: {}", changes.join(" ")) }
}

/// The real graphs: the upgrade is planned, and a dozen of its packages are as a
/// person reads them from the files.
#[test]
fn the_corpus_upgrade_is_planned() {
    let Some(corpus) = common::corpus("the_corpus_upgrade_is_planned") else { return };
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (imported(&corpus, directory.path(), "v1.5.0"), imported(&corpus, directory.path(), "v1.6.2"));
    let output = plan(&[from.to_str().unwrap(), to.to_str().unwrap(), "--format", "json"]);
    assert!(matches!(output.status.code(), Some(1 | CHANGES)), "{}", stderr(&output));
    let plan = parse(&output);
    let packages = plan["packages"].as_array().unwrap();
    assert_eq!(packages.len(), 98, "each has another version, and two are new");
    let place = |name: &str| packages.iter().position(|package| package["name"] == name);
    for package in packages {
        for requirement in package["requirements"].as_array().unwrap() {
            let required = text(requirement, "/what").trim_start_matches("package ");
            if requirement["state"] == "metAfter" && package["refused"].is_null() {
                assert!(place(required) < place(text(package, "/name")), "{required} before {}", package["name"]);
            }
        }
    }
    for (name, change, requirements, steps) in READINGS {
        let package = &packages[place(&format!("cozystack.{name}")).unwrap()];
        assert_eq!(package["change"], change, "{name}");
        assert!(package["refused"].is_null(), "{name}");
        let waits: Vec<&str> =
            package["requirements"].as_array().unwrap().iter().map(|one| text(one, "/what")).collect();
        let wanted: Vec<String> = requirements.iter().map(|one| format!("package cozystack.{one}")).collect();
        assert_eq!(waits, wanted, "{name}");
        let taken: Vec<String> = package["steps"].as_array().unwrap().iter().map(step_with_changes).collect();
        assert_eq!(taken, steps, "{name}");
        // Nobody said that an earlier version may run again.
        let on_failure = match (change, steps.len()) {
            ("installed", _) => "retry",
            (_, 0) => "nothing",
            _ => "stop",
        };
        assert_eq!(package["onFailure"]["action"], on_failure, "{name}");
    }
}

/// Nothing is uninstalled as long as something that stays requires it.
#[test]
fn a_package_that_another_one_still_requires_is_not_uninstalled() {
    let web = package("web", "1.0.0", "  requires: [{package: shop}]\n", &[("site", "")]);
    let shop = package("shop", "1.0.0", "", &[("api", "")]);
    let repository = Repository::bare();
    let plan = repository.between(&format!("{shop}{web}"), &web);
    let package = only(&plan);
    assert_eq!((text(package, "/name"), &package["steps"]), ("shop", &json!([])), "{plan:#}");
    assert!(text(package, "/refused/message").contains("required by web"), "{plan:#}");
    assert_eq!(repository.plan(&["from", "to"]).status.code(), Some(1), "it must be mended first");
}

#[test]
fn a_commit_that_only_removes_components_rolls_nothing_back() {
    let of = |components: &[(&str, &str)]| package("shop", "1.0.0", "", components);
    let plan = Repository::bare().between(&of(&[("db", ""), ("app", "")]), &of(&[("db", "")]));
    let package = only(&plan);
    assert_eq!(steps(package), ["remove app"]);
    assert_eq!(package["steps"][0]["gate"], json!(["all that stays is ready"]));
    assert_eq!(text(package, "/onFailure/action"), "retry", "{plan:#}");
}

/// A gate that goes is what a reviewer has to see.
#[test]
fn what_changes_without_a_move_is_told() {
    let ready = "    install: {readyWhen: [{apiVersion: v1, kind: Node, name: node1, condition: Ready}]}\n";
    let before = package("shop", "1.0.0", "  requires: [{package: base}]\n", &[("api", ready)]);
    let after = package("shop", "1.0.0", "", &[("api", "")])
        .replace("{name: shop, ", "{name: shop, annotations: {windlass.dev/rollback-to: 0.9.0}, ");
    let plan = Repository::bare().between(&before, &after);
    let changed = only(&plan);
    assert_eq!(steps(changed), ["verifyAgain api"]);
    let paths_of = |changes: &Value| -> Vec<String> {
        changes.as_array().unwrap().iter().map(|change| text(change, "/path").to_owned()).collect()
    };
    assert_eq!(paths_of(&changed["steps"][0]["changes"]), ["install"]);
    let paths = paths_of(&changed["changes"]);
    let told = |path: &str| paths.iter().any(|found| found.starts_with(path));
    assert!(told("requires.base"), "{paths:?}");
    assert!(told("metadata.annotations"), "{paths:?}");

    let canary = package("shop", "1.0.0", "", &[("api", "    canary: {soak: 2m}\n")]);
    let plan = Repository::bare().between(&canary, &package("shop", "1.0.0", "", &[("api", "")]));
    assert_eq!(paths_of(&only(&plan)["steps"][0]["changes"]), ["canary"], "{plan:#}");

    let [before, after] = [AFTER, ""].map(|edge| package("shop", "1.0.0", "", &[("operator", ""), ("api", edge)]));
    let plan = Repository::bare().between(&before, &after);
    assert_eq!(text(only(&plan), "/change"), "settings");
    assert_eq!(paths_of(&only(&plan)["changes"]), ["components.api.install"], "{plan:#}");
}

#[test]
fn a_package_whose_releases_stay_is_let_go() {
    let orphan = package("shop", "1.0.0", "  deletionPolicy: Orphan\n", &[("api", "")]);
    let repository = Repository::bare();
    let plan = repository.between(&orphan, "");
    assert_eq!((text(only(&plan), "/change"), text(only(&plan), "/onFailure/action")), ("letGo", "nothing"));
    let output = repository.plan(&["from", "to"]);
    assert!(stdout(&output).contains("let go 1.0.0, its releases stay"), "{}", stdout(&output));
}

#[test]
fn the_version_of_kubernetes_is_for_the_cluster_to_know() {
    let of = |version: &str| package("shop", version, "  requires: [{kubernetes: '>=1.99'}]\n", &[("api", "")]);
    let plan = Repository::bare().between(&of("1.0.0"), &of("1.1.0"));
    assert_eq!((steps(only(&plan)), &only(&plan)["refused"]), (vec!["upgrade api".to_owned()], &Value::Null));
    assert!(plan["notes"].to_string().contains("Kubernetes >=1.99 is required"), "{plan:#}");
}

#[test]
fn conditions_that_change_are_told_by_item_and_field() {
    let entry = |name: &str, expr: &str| {
        format!(
            "      - {{apiVersion: v1, kind: Thing, name: {name}, expr: \"{expr}\", failed: \"object.bad == true\"}}\n"
        )
    };
    let of =
        |entries: &str| package("shop", "1.0.0", "", &[("api", &format!("    install:\n      readyWhen:\n{entries}"))]);
    let (a, b) = (entry("a", "object.v == '17'"), entry("b", "object.ok == true"));
    let repository = Repository::bare();
    let told = |from: &str, to: &str| -> Vec<String> {
        let plan = repository.between(&of(from), &of(to));
        let package = only(&plan);
        let steps = package["steps"].as_array().unwrap().iter().flat_map(|step| step["changes"].as_array().unwrap());
        let all = package["changes"].as_array().unwrap().iter().chain(steps);
        all.map(|change| format!("{}: {} > {}", text(change, "/path"), change["from"], change["to"])).collect()
    };
    let at = "components.api.install.readyWhen";
    let changed = entry("a", "object.v == '18'");
    let one = format!("{at}[0].expr: \"object.v == '17'\" > \"object.v == '18'\"");
    assert_eq!(told(&format!("{a}{b}"), &format!("{changed}{b}")), std::slice::from_ref(&one));
    assert_eq!(
        told(&format!("{b}{a}"), &changed),
        [one, format!("{at}[0]: {} > null", told_entry("b", "object.ok == true"))]
    );
    assert_eq!(
        told(&a, &b.replace("name: b", "name: a"))[0],
        format!("{at}[0].expr: \"object.v == '17'\" > \"object.ok == true\"")
    );
    let order = told(&format!("{a}{b}"), &format!("{b}{a}"));
    assert!(order.len() == 1 && order[0].starts_with(&format!("{at}: [")), "{order:?}");
}

fn told_entry(name: &str, expr: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Thing", "name": name, "expr": expr, "failed": "object.bad == true"})
}

#[test]
fn two_revisions_may_be_written_as_a_range() {
    let of = |version: &str| package("shop", version, "", &[("api", "")]);
    let repository = Repository::bare();
    repository.between(&of("1.0.0"), &of("1.1.0"));
    let range = repository.json(&["from..to"]);
    assert_eq!(steps(only(&range)), ["upgrade api"]);
    let part = repository.json(&["from..to", "packages.yaml"]);
    assert_eq!(part, range);
    let output = repository.plan(&["from...to"]);
    assert!(stderr(&output).contains("have no commit in common"), "{}", stderr(&output));
    let output = repository.plan(&["from"]);
    assert!(stderr(&output).contains("Give FROM and TO, or FROM..TO"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_path_that_one_of_them_does_not_have_is_told() {
    let shop = package("shop", "1.0.0", "", &[("api", "")]);
    let repository = Repository::bare();
    repository.commit("from", &[("packages/shop.yaml", File::Text(&shop))]);
    repository.commit("to", &[("moved/shop.yaml", File::Text(&shop))]);
    let plan = repository.json(&["from", "to", "packages"]);
    assert!(plan["notes"].to_string().contains("`packages` is not in to: if it was moved"), "{plan:#}");
}

/// A repository has other things in it than Packages.
#[test]
fn files_that_are_about_something_else_are_left_alone() {
    let repository = Repository::bare();
    let template = "{{- if .Values.enabled }}\nkind: Deployment\n{{- end }}\n";
    for (branch, version) in [("from", "1.0.0"), ("to", "1.1.0")] {
        let shop = package("shop", version, "", &[("api", "")]);
        let files = [
            ("mkdocs.yml", File::Text("theme: !!python/name:material.extensions.emoji\n")),
            ("shop.yaml", File::Text(&shop)),
            ("templates/app.yaml", File::Text(template)),
            ("twice.yaml", File::Text("a: 1\na: 2\n")),
        ];
        repository.commit(branch, &files);
    }
    assert_eq!(steps(only(&repository.json(&["from", "to"]))), ["upgrade api"]);
}

#[test]
fn long_values_are_shown_from_where_they_begin_to_differ() {
    let with = |end: &str| {
        package("shop", "1.0.0", "", &[("api", &format!("    values: {{text: '{}{end}'}}\n", "a".repeat(200)))])
    };
    let repository = Repository::bare();
    repository.between(&with("one"), &with("two"));
    let output = repository.plan(&["from", "to"]);
    assert!(stdout(&output).contains("…aaaaaaaaaaaaone\" → …aaaaaaaaaaaatwo\""), "{}", stdout(&output));
}

/// Files that nobody reads as Packages do not hold up those that are.
#[test]
fn what_no_package_could_be_in_is_passed_over() {
    let repository = Repository::bare();
    let large = "a: 1\n".repeat(2 << 20);
    for (branch, version) in [("from", "1.0.0"), ("to", "1.1.0")] {
        let shop = package("shop", version, "", &[("api", "")]);
        let files = [
            ("image.png", File::Bytes(b"\x89PNG\xff")),
            ("large.yaml", File::Text(&large)),
            ("latin-1.yaml", File::Bytes(b"name: caf\xe9\n")),
            ("shop.yaml", File::Text(&shop)),
        ];
        repository.commit(branch, &files);
    }
    assert_eq!(steps(only(&repository.json(&["from", "to"]))), ["upgrade api"]);
    let large = format!("{large}kind: Package\n");
    repository.commit("to", &[("large.yaml", File::Text(&large))]);
    let output = repository.plan(&["from", "to"]);
    assert!(stderr(&output).contains("to:large.yaml") && stderr(&output).contains("WL019"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_text_are_passed_over_unless_a_package_could_be_there() {
    use std::os::unix::ffi::OsStrExt as _;
    let directory = tempfile::tempdir().unwrap();
    let named = |bytes: &[u8]| directory.path().join(std::ffi::OsStr::from_bytes(bytes));
    std::fs::write(directory.path().join("shop.yaml"), package("shop", "1.0.0", "", &[("api", "")])).unwrap();
    std::fs::write(named(b"image\xff.png"), "").unwrap();
    let path = directory.path().display().to_string();
    let output = plan(&[&path, &path]);
    assert_eq!((stderr(&output), output.status.code()), ("", Some(0)));
    std::fs::write(named(b"other\xff.yaml"), "").unwrap();
    let output = plan(&[&path, &path]);
    assert!(stderr(&output).contains("is no text in UTF-8, so that it cannot be read"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_name_of_a_directory_and_of_a_revision_is_refused_as_ambiguous() {
    let directory = tempfile::tempdir().unwrap();
    let git = git2::Repository::init(directory.path()).unwrap();
    let author = Signature::now("Test", "test@windlass.dev").unwrap();
    let tree = git.find_tree(git.index().unwrap().write_tree().unwrap()).unwrap();
    git.commit(Some("refs/heads/v1"), &author, &author, "Change", &tree, &[]).unwrap();
    for version in ["v1", "v2"] {
        std::fs::create_dir(directory.path().join(version)).unwrap();
        let shop = package("shop", &format!("{}.0.0", &version[1..]), "", &[("api", "")]);
        std::fs::write(directory.path().join(version).join("shop.yaml"), shop).unwrap();
    }
    let plan = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.current_dir(directory.path()).arg("plan").args(arguments).output().unwrap()
    };
    for arguments in [&["v1", "v2"][..], &["v1..v2"]] {
        let output = plan(arguments);
        let said = "`v1` is a directory and a revision of the Git repository: write `./v1` for the directory, or \
                    `refs/heads/v1` for the revision";
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(2));
    }
    assert!(stdout(&plan(&["./v1", "v2"])).contains("upgrade 1.0.0 → 2.0.0"));
    assert!(stdout(&plan(&["refs/heads/v1", "v2"])).contains("install 2.0.0"));
    // What left something is a revision.
    let output = plan(&["v1...v2"]);
    assert!(stderr(&output).contains("`v2` is neither a directory nor a revision"), "{}", stderr(&output));
}

#[test]
fn a_chart_that_one_of_the_two_lacks_has_not_changed_its_files() {
    let repository = Repository::bare();
    let whole = chart_files("flux", "1.0.0", "");
    repository.commit("without", &whole[..1]);
    repository.commit("with", &whole);
    let output = repository.plan(&["without", "with"]);
    assert!(stdout(&output).contains("component api: its chart was not at `charts/api` before"), "{}", stdout(&output));
    assert!(!stdout(&output).contains("error") && output.status.code() == Some(CHANGES), "{}", stdout(&output));
    let output = repository.plan(&["with", "without"]);
    assert!(stdout(&output).contains("there is no directory `charts/api`"), "{}", stdout(&output));
    assert!(!stdout(&output).contains("its version stays"), "{}", stdout(&output));
}

#[test]
fn a_version_that_only_the_chart_has_raised_is_told_once() {
    let repository = Repository::bare();
    repository.commit("from", &chart_files("flux", "1.0.0", ""));
    let mut files = chart_files("flux", "1.0.0", "");
    files[1].1 = File::Text("apiVersion: v2\nname: api\nversion: 1.1.0\n");
    repository.commit("to", &files);
    let output = repository.plan(&["from", "to"]);
    assert_eq!(stdout(&output).matches("error: ").count(), 1, "{}", stdout(&output));
    assert!(stdout(&output).contains("make them equal"), "{}", stdout(&output));
}

#[test]
fn a_path_that_is_a_link_or_a_submodule_is_told_with_what_to_do() {
    let repository = Repository::bare();
    let shop = package("shop", "1.0.0", "", &[("api", "")]);
    let files = [
        ("link", File::Link("real")),
        ("out", File::Link("../real")),
        ("real/shop.yaml", File::Text(&shop)),
        ("vendor/sub", File::Submodule),
    ];
    repository.commit("main", &files);
    let said = |path: &str, message: &str| {
        let output = repository.plan(&["main", "main", path]);
        assert!(stderr(&output).contains(message), "{path}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(3), "{path}");
    };
    said("link", "main:link is a symbolic link: give `real` as PATH");
    said("out", "main:out is a symbolic link that leads out of what is compared, or nowhere");
    for path in ["vendor/sub", "vendor/sub/packages"] {
        said(path, "`vendor/sub` is a Git submodule of main, whose files are not in this repository");
    }
}

/// As in a partial clone.
#[test]
fn a_file_that_was_not_fetched_is_told_with_what_fetches_it() {
    let repository = Repository::bare();
    let shop = package("shop", "1.0.0", "", &[("api", "")]);
    repository.commit("main", &[("shop.yaml", File::Text(&shop))]);
    let id = repository.git.blob(shop.as_bytes()).unwrap().to_string();
    std::fs::remove_file(repository.path().join("objects").join(&id[..2]).join(&id[2..])).unwrap();
    let output = repository.plan(&["main", "main"]);
    let said = stderr(&output);
    assert!(said.contains("main:shop.yaml") && said.contains("git fetch --refetch --no-filter"), "{said}");
    assert_eq!(output.status.code(), Some(3));
}

/// Its Chart.yaml may say the same as before: what stands for the chart is its directory.
#[test]
fn a_chart_whose_directory_is_renamed_is_refused_in_these_words() {
    let repository = Repository::bare();
    repository.commit("from", &chart_files("flux", "1.0.0", ""));
    let package = "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: shop}\nspec:\n  version: 1.0.0\n  \
                   engine: flux\n  sourceRef: {kind: GitRepository, name: it}\n  components:\n  - {name: api, path: PATH, \
                   chartVersion: 1.0.0}\n";
    let chart = "apiVersion: v2\nname: api\nversion: 1.0.0\n";
    let moved = |path: &str| {
        let (package, chart_file) = (package.replace("PATH", path), format!("{path}/Chart.yaml"));
        repository.commit("to", &[("shop.yaml", File::Text(&package)), (&chart_file, File::Text(chart))]);
        repository.plan(&["from", "to"])
    };
    let output = moved("charts/web");
    assert!(stdout(&output).contains("gets its chart from a directory of another name"), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(1));
    let output = moved("charts/elsewhere/api");
    assert_eq!(output.status.code(), Some(CHANGES), "{}", stdout(&output));
}

#[test]
fn a_repository_that_cannot_be_read_is_told_with_what_can_be_done() {
    let repository = Repository::bare();
    let config = repository.path().join("config");
    let settings = std::fs::read_to_string(&config).unwrap();
    let later = settings.replace("repositoryformatversion = 0", "repositoryformatversion = 1");
    std::fs::write(&config, format!("{later}[extensions]\n\tlaterThanThis = true\n")).unwrap();
    let output = repository.plan(&["main", "HEAD"]);
    assert!(stderr(&output).contains("compare two directories instead (`git worktree add`"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(3));
}
