//! Files found, read and told apart.

use rstest::rstest;

use super::*;
use crate::package::tree::testing::Files;

const PACKAGE: &str =
    "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: db, namespace: apps}\nspec: {version: 1.0.0}\n";

fn rule() -> NamespaceRule {
    NamespaceRule::Default(Namespace::parse("default").unwrap())
}

fn load_text(text: &str) -> Loaded {
    load(&[Input::Text { bytes: text.as_bytes().to_vec(), shown: "-".into() }], &rule()).unwrap()
}

fn load_directory(files: &Files) -> Result<Loaded, LoadError> {
    load(&[Input::Directory { tree: files, path: String::new(), shown: "dir".into(), search: Search::Below }], &rule())
}

fn messages(loaded: &Loaded) -> Vec<String> {
    let of = |diagnostic: &Diagnostic| {
        let source = &loaded.sources[diagnostic.source];
        let at = source.position(diagnostic.span.start);
        format!(
            "{} {}:{}:{} {} {}",
            diagnostic.severity.as_str(),
            source.path(),
            at.line,
            at.column,
            diagnostic.code,
            diagnostic.message
        )
    };
    loaded.diagnostics.iter().map(of).collect()
}

#[test]
fn a_package_is_kept_as_written_and_as_understood() {
    let loaded = load_text(&format!("# about\n{PACKAGE}"));
    assert_eq!(messages(&loaded), Vec::<String>::new());
    let package = &loaded.packages[0];
    assert_eq!((package.name.as_str(), package.namespace.as_str()), ("db", "apps"));
    assert_eq!(
        package.root.entries().unwrap().iter().map(|entry| &entry.key).collect::<Vec<_>>(),
        ["apiVersion", "kind", "metadata", "spec"]
    );
    assert_eq!(package.definition.as_ref().unwrap().version.to_string(), "1.0.0");
    assert_eq!(loaded.sources[package.source].slice(package.root.locate("/spec/version")), "1.0.0");
}

#[test]
fn the_namespace_is_named_given_or_forced() {
    let without = PACKAGE.replace(", namespace: apps", "");
    assert_eq!(load_text(&without).packages[0].namespace, "default");
    let forced = NamespaceRule::Forced(Namespace::parse("forced").unwrap());
    let input = Input::Text { bytes: PACKAGE.as_bytes().to_vec(), shown: "-".into() };
    let loaded = load(&[input], &forced).unwrap();
    assert_eq!(loaded.packages[0].definition.as_ref().unwrap().namespace.as_str(), "forced");
}

#[test]
fn directories_are_searched_in_order() {
    let second = PACKAGE.replace("name: db", "name: b");
    let files = Files::new([
        ("z.yaml", PACKAGE),
        ("a/b.yml", second.as_str()),
        ("a/notes.txt", "{{"),
        (".hidden/x.yaml", "{{"),
        (".x.yaml", "{{"),
        ("charts/db/Chart.yaml", "name: db"),
        ("charts/db/templates/a.yaml", "{{ x }}"),
        ("kustomization.yaml", "resources: [z.yaml]"),
    ]);
    let loaded = load_directory(&files).unwrap();
    assert_eq!(messages(&loaded), Vec::<String>::new());
    assert_eq!(loaded.packages.iter().map(|package| package.name.as_str()).collect::<Vec<_>>(), ["b", "db"]);
    assert_eq!(loaded.sources[loaded.packages[0].source].path(), "dir/a/b.yml");
}

#[test]
fn a_directory_need_not_be_searched_deeply() {
    let files = Files::new([("a.yaml", PACKAGE), ("b/c.yaml", "{{")]);
    let input = Input::Directory { tree: &files, path: String::new(), shown: String::new(), search: Search::Here };
    let loaded = load(&[input], &rule()).unwrap();
    assert_eq!((loaded.packages.len(), loaded.sources[0].path()), (1, "a.yaml"));
}

#[test]
fn a_file_that_is_named_is_read_once() {
    let files = Files::new([("a.yaml", PACKAGE)]);
    let file = || Input::File { tree: &files, path: "a.yaml".into(), shown: "dir/a.yaml".into() };
    let directory =
        || Input::Directory { tree: &files, path: String::new(), shown: "dir".into(), search: Search::Below };
    for inputs in [[file(), file()], [file(), directory()], [directory(), file()]] {
        let loaded = load(&inputs, &rule()).unwrap();
        assert_eq!((loaded.packages.len(), loaded.sources.len()), (1, 1));
    }
}

#[test]
fn links_out_of_the_directory_are_errors() {
    let files = Files::new([("a.yaml", PACKAGE)]).link("b.yaml", None).link("c.yaml", Some("a.yaml"));
    let loaded = load_directory(&files).unwrap();
    assert_eq!(
        messages(&loaded),
        ["error dir/b.yaml:1:1 WL016 the symbolic link `dir/b.yaml` leads out of the directory, or nowhere"]
    );
    assert_eq!(loaded.packages.len(), 1);
}

#[test]
fn links_out_of_the_part_that_is_searched_are_errors_too() {
    let files = Files::new([("sub/a.yaml", PACKAGE), ("top.yaml", PACKAGE)]).link("sub/b.yaml", Some("top.yaml"));
    let input = Input::Directory { tree: &files, path: "sub".into(), shown: "sub".into(), search: Search::Below };
    let loaded = load(&[input], &rule()).unwrap();
    assert_eq!(messages(&loaded).len(), 1);
}

#[test]
fn what_is_not_there_is_no_finding_but_an_error() {
    let missing = Files::default();
    assert_eq!(load_directory(&missing).unwrap_err().to_string(), "cannot read dir");
    let input = Input::File { tree: &missing, path: "x.yaml".into(), shown: "p/x.yaml".into() };
    assert_eq!(load(&[input], &rule()).unwrap_err().to_string(), "cannot read p/x.yaml");
}

#[test]
fn other_kinds_are_kept_apart() {
    let loaded = load_text(&format!("kind: ConfigMap\napiVersion: v1\nmetadata: {{name: x}}\n---\n{PACKAGE}---\n"));
    assert_eq!(messages(&loaded), Vec::<String>::new());
    let other = &loaded.others[0];
    assert_eq!((other.api_version.as_str(), other.kind.as_str(), other.name.as_str()), ("v1", "ConfigMap", "x"));
    assert_eq!(other.value.as_object().unwrap().keys().next().unwrap(), "kind");
    assert_eq!(loaded.packages.len(), 1);
}

#[rstest]
#[case::scalar("just text", "error -:1:1 WL022 this document is no Kubernetes object: this is text")]
#[case::list("- a", "error -:1:3 WL022 this document is no Kubernetes object: this is a list")]
#[case::values(
    "a: 1\nb: 2",
    "error -:1:1 WL022 this document is no Kubernetes object: apiVersion and kind are missing"
)]
#[case::no_kind(
    "apiVersion: windlass.dev/v1alpha1",
    "error -:1:1 WL022 this document is no Kubernetes object: kind is missing"
)]
#[case::number(
    "apiVersion: 1\nkind: Package",
    "error -:1:1 WL022 this document is no Kubernetes object: apiVersion and kind must be text"
)]
#[case::misspelt(
    "apiVersion: windlass.dev/v1alpha1\nkind: Pakage",
    "error -:2:7 WL023 windlass.dev/v1alpha1 has no kind `Pakage`"
)]
#[case::later_version(
    "apiVersion: windlass.dev/v1\nkind: Package",
    "error -:1:13 WL023 this Windlass does not know `windlass.dev/v1`"
)]
#[case::misspelt_group(
    "apiVersion: windlas.dev/v1alpha1\nkind: Package",
    "error -:1:13 WL023 this Windlass does not know `windlas.dev/v1alpha1`"
)]
#[case::misspelt_group_in_a_list(
    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: windlas.dev/v1alpha1\n  kind: Package",
    "error -:4:3 WL023 Packages in a List are not read"
)]
#[case::revision(
    "apiVersion: windlass.dev/v1alpha1\nkind: PackageRevision",
    "error -:2:7 WL023 a PackageRevision is written by the controller alone"
)]
#[case::in_a_list(
    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: windlass.dev/v1alpha1",
    "error -:4:3 WL023 Packages in a List are not read"
)]
#[case::template("apiVersion: v1\nkind: {{ .Kind }}", "error -:2:8 WL001 a map cannot be a key")]
#[case::binary("a\n\0b", "error -:1:1 WL021 the file is binary: there is a NUL in line 2")]
fn documents_that_are_nothing_to_us_say_why(#[case] text: &str, #[case] message: &str) {
    assert_eq!(messages(&load_text(text))[0], message);
}

#[rstest]
#[case::crossplane("pkg.crossplane.io/v1")]
#[case::kubepkg("kubepkg.dev/v1alpha1")]
#[case::cozystack("cozystack.io/v1alpha1")]
fn packages_of_others_are_other_manifests(#[case] api_version: &str) {
    let loaded = load_text(&format!("apiVersion: {api_version}\nkind: Package\nmetadata: {{name: a}}\n"));
    assert_eq!((messages(&loaded).len(), loaded.others.len()), (0, 1));
}

#[test]
fn stray_documents_in_a_directory_are_only_warned_of() {
    let loaded = load_directory(&Files::new([("values.yaml", "a: 1")])).unwrap();
    assert_eq!(
        messages(&loaded),
        ["warning dir/values.yaml:1:1 WL022 this document is no Kubernetes object: apiVersion and kind are missing"]
    );
}

#[rstest]
#[case::latin1(b"a: \xe4".to_vec(), "WL021")]
#[case::utf16(b"\xff\xfea\0".to_vec(), "WL021")]
#[case::ten_megabytes(vec![b'#'; 10 << 20], "WL019")]
#[case::ten_megabyte_scalar([b"a: ".to_vec(), vec![b'x'; 7 << 20]].concat(), "WL019")]
fn bytes_that_cannot_be_a_package_are_one_error(#[case] bytes: Vec<u8>, #[case] code: &str) {
    let loaded = load(&[Input::Text { bytes, shown: "-".into() }], &rule()).unwrap();
    assert_eq!(loaded.diagnostics.iter().map(|diagnostic| diagnostic.code.to_string()).collect::<Vec<_>>(), [code]);
}

#[test]
fn an_empty_file_is_empty() {
    for text in ["", "\n", "---\n", "# nothing\n", "---\n---\n"] {
        let loaded = load_text(text);
        assert_eq!((messages(&loaded), loaded.packages.len()), (vec![], 0), "{text:?}");
    }
}

#[test]
fn shape_and_meaning_are_checked_together_and_each_place_once() {
    let text = "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: DB}\nspec:\n  version: \"1.9\"\n  upgrade: {timeout: 5 minutes}\n  components:\n  - name: a\n    chart: 5\n  - name: b\n    chart: {repository: \"https://x\", name: b, version: ^1}\n    install: {dependsOn: [c]}\n";
    let expected = [
        "error -:9:12 WL003 `chart` must be a map, this is an integer",
        "error -:3:18 WL006 the name of a Package `DB` must be lower-case letters, digits and `-` and `.`, starting and ending with a letter or digit",
        "error -:5:12 WL007 `1.9` is no exact version: write all three numbers, such as `1.4.0`",
        "error -:6:22 WL009 `5 minutes` is no duration: write a number and a unit (ms, s, m, h), such as `90s` or `1h30m`",
        "error -:11:56 WL007 `^1` is no exact version: write all three numbers, such as `1.4.0`",
        "error -:12:27 WL013 there is no component `c`",
    ];
    assert_eq!(messages(&load_text(text)), expected);
}

/// What was meant is not known where a `- ` is missing: one finding for it.
#[test]
fn where_a_key_is_doubled_nothing_else_is_said() {
    let chart = "chart: {repository: \"https://x\", name: a, version: 1.0.0}";
    let text = format!(
        "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: db}}\nspec:\n  version: 1.0.0\n  components:\n  - name: a\n    {chart}\n    name: b\n  - name: c\n    {chart}\n    install: {{dependsOn: [b]}}\n"
    );
    assert_eq!(messages(&load_text(&text)), ["error -:9:5 WL020 the key `name` is there twice"]);
}

#[test]
fn what_is_depended_on_twice_is_an_error() {
    let chart = "chart: {repository: \"https://x\", name: a, version: 1.0.0}";
    let text = format!(
        "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: db}}\nspec: {{version: 1.0.0, components: [{{name: a, {chart}}}, {{name: b, {chart}, install: {{dependsOn: [a, a]}}}}]}}\n"
    );
    assert_eq!(messages(&load_text(&text)), ["error -:4:201 WL005 `a` is there twice"]);
}

#[rstest]
#[case::range("from: >=2.0", "text that begins with `>` or `|` is put in quotes")]
#[case::any("from: *", "text that begins with `*` or `&` is put in quotes")]
fn ranges_without_quotes_are_told_what_to_do(#[case] line: &str, #[case] help: &str) {
    let text = format!("spec:\n  upgrade:\n    {line}\n    retries: 1\n");
    let loaded = load_text(&text);
    assert_eq!(loaded.diagnostics[0].help, help, "{:?}", loaded.diagnostics);
}

#[test]
fn findings_name_package_and_component() {
    let loaded = load_text(
        "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: db}\nspec: {version: 1.0.0, components: [{name: a, path: ../x}]}\n",
    );
    let diagnostic = &loaded.diagnostics[0];
    assert_eq!(
        (diagnostic.package.as_deref(), diagnostic.component.as_deref(), diagnostic.code),
        (Some("db"), Some("a"), Code::PathEscapes)
    );
    assert!(loaded.has_errors());
}

/// A Package that lost its `kind` must not go missing among others: an applier
/// that prunes would uninstall it.
#[rstest]
#[case::kind(&PACKAGE.replace("kind: Package\n", ""), "kind is missing", true)]
#[case::api_version(&PACKAGE.replace("apiVersion: windlass.dev/v1alpha1\n", ""), "apiVersion is missing", true)]
#[case::both("metadata: {name: db}\nspec: {version: 1.0.0}", "apiVersion and kind are missing", true)]
#[case::values("kind: DaemonSet\nreplicas: 1", "apiVersion is missing", false)]
#[case::other_values("replicas: 1", "apiVersion and kind are missing", false)]
fn a_document_that_looks_like_a_package_is_an_error_in_a_directory_too(
    #[case] text: &str,
    #[case] missing: &str,
    #[case] error: bool,
) {
    let files = Files::new([("a.yaml", PACKAGE), ("b.yaml", text)]);
    let loaded = load_directory(&files).unwrap();
    let severity = if error { "error" } else { "warning" };
    assert_eq!(
        messages(&loaded),
        [format!("{severity} dir/b.yaml:1:1 WL022 this document is no Kubernetes object: {missing}")]
    );
}

/// A link to what is not read where it is would leave a Package out.
#[rstest]
#[case::hidden("p.yaml", "..data/p.yaml", true)]
#[case::hidden_directory("linked", "..data", true)]
#[case::other_name("p.yaml", "real.txt", true)]
#[case::in_a_chart("p.yaml", "chart/templates/p.yaml", true)]
#[case::chart("linked", "chart", false)]
#[case::read_elsewhere("p.yaml", "sub/q.yaml", false)]
#[case::directory_read_elsewhere("linked", "sub", false)]
#[case::name_that_is_not_read("README", "real.txt", false)]
fn a_link_to_what_is_not_read_is_refused(#[case] link: &str, #[case] target: &str, #[case] refused: bool) {
    let files = Files::new([
        ("a.yaml", PACKAGE),
        ("..data/p.yaml", PACKAGE),
        ("real.txt", PACKAGE),
        ("chart/Chart.yaml", "name: c"),
        ("chart/templates/p.yaml", PACKAGE),
        ("sub/q.yaml", "{apiVersion: v1, kind: ConfigMap}"),
    ]);
    let loaded = load_directory(&files.link(link, Some(target))).unwrap();
    let expected = format!(
        "error dir/{link}:1:1 WL016 the symbolic link `dir/{link}` stands for `{target}`, which is not read there"
    );
    assert_eq!(messages(&loaded), Vec::from_iter(refused.then_some(expected)));
}
