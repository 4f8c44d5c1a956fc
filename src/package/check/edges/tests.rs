//! Edges that are missing.

use rstest::rstest;

use crate::chart::Library;
use crate::package::check::{Options, check};
use crate::package::diagnostic::Diagnostic;
use crate::package::load::{Input, NamespaceRule, load};
use crate::package::names::Namespace;
use crate::package::tree::testing::Files;
use crate::package::violation::Code;

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.org}\n\
                   spec: {group: example.org, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true}]}\n";
const WIDGET: &str = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: it}\n";
const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: tools}\n";
const ACCOUNT: &str = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n";
const POD: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: it}\nspec: {template: {spec: {serviceAccountName: robot}}}\n";

/// Charts with one file each.
fn charts(charts: &[(&str, &str, &str)]) -> Files {
    let files: Vec<(String, String)> = charts
        .iter()
        .flat_map(|(name, file, text)| {
            let chart = format!("name: {name}\nversion: 1.0.0\n");
            [(format!("{name}/Chart.yaml"), chart), (format!("{name}/{file}"), (*text).to_owned())]
        })
        .collect();
    Files::new(files.iter().map(|(path, text)| (path.as_str(), text.as_str())))
}

fn package(name: &str, more: &str, components: &[(&str, &str)]) -> String {
    let components: String = components
        .iter()
        .map(|(name, install)| {
            format!(
                "  - name: {name}\n    chart: {{repository: \"https://charts.example.org\", name: {name}, version: 1.0.0}}\n    \
                 install: {{namespace: apps{install}}}\n"
            )
        })
        .collect();
    format!(
        "---\napiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: {name}, namespace: packages}}\n\
         spec:\n  version: 1.0.0\n{more}  components:\n{components}"
    )
}

fn found(text: &str, charts: &Files) -> Vec<Diagnostic> {
    let rule = NamespaceRule::Default(Namespace::parse("packages").unwrap());
    let loaded = load(&[Input::Text { bytes: text.into(), shown: "p.yaml".into() }], &rule).unwrap();
    assert_eq!(loaded.diagnostics, [], "{text}");
    let library = Library::new(&[], &[charts]);
    let found = check(&loaded, &Options { library: Some(&library), ..Options::default() }).unwrap();
    found.into_iter().filter(|diagnostic| diagnostic.code == Code::MissingEdge).collect()
}

fn messages(text: &str, charts: &Files) -> Vec<String> {
    found(text, charts).iter().map(|diagnostic| format!("{}; {}", diagnostic.message, diagnostic.help)).collect()
}

const READY: &str = ", readyWhen: [{apiVersion: example.org/v1, kind: Widget, name: it, condition: Ready}]";

#[rstest]
#[case::kind(("crds/a.yaml", CRD), ("templates/a.yaml", WIDGET), "", "uses Widget of example.org (templates/a.yaml)")]
#[case::kind_of_a_template(("templates/a.yaml", CRD), ("templates/a.yaml", WIDGET), "", "uses Widget of example.org (templates/a.yaml)")]
#[case::kind_that_is_waited_for(("crds/a.yaml", CRD), ("a", ""), READY, "uses Widget of example.org (readyWhen)")]
#[case::namespace(("templates/a.yaml", NAMESPACE), ("a", ""), "NS", "uses Namespace `tools` (install.namespace)")]
#[case::account(("templates/a.yaml", ACCOUNT), ("templates/a.yaml", POD), "", "uses ServiceAccount `robot` in `apps` (templates/a.yaml)")]
fn what_another_component_brings_needs_an_edge(
    #[case] brings: (&str, &str),
    #[case] uses: (&str, &str),
    #[case] install: &str,
    #[case] expected: &str,
) {
    let charts = charts(&[("base", brings.0, brings.1), ("user", uses.0, uses.1)]);
    let with = |install: &str| package("app", "", &[("user", install), ("base", "")]).replacen("appsNS", "tools", 1);
    let message = format!("component `user` {expected}, which `base` brings, and does not depend on it");
    let help = "add `base` to install.dependsOn; `validate --fix` does";
    assert_eq!(messages(&with(install), &charts), [format!("{message}; {help}")]);
    assert_eq!(messages(&with(&format!("{install}, dependsOn: [base]")), &charts), Vec::<String>::new());
}

#[test]
fn a_way_over_others_is_an_edge() {
    let charts = charts(&[("base", "crds/a.yaml", CRD), ("middle", "a", ""), ("user", "templates/a.yaml", WIDGET)]);
    let components = [("base", ""), ("middle", ", dependsOn: [base]"), ("user", ", dependsOn: [middle]")];
    assert_eq!(messages(&package("app", "", &components), &charts), Vec::<String>::new());
}

#[test]
fn what_a_component_brings_itself_it_needs_of_nobody() {
    let charts = charts(&[("base", "crds/a.yaml", CRD), ("user", "templates/a.yaml", &format!("{CRD}---\n{WIDGET}"))]);
    assert_eq!(messages(&package("app", "", &[("base", ""), ("user", "")]), &charts), Vec::<String>::new());
}

#[test]
fn the_namespace_of_the_package_is_there() {
    let charts = charts(&[("base", "templates/a.yaml", &NAMESPACE.replace("tools", "packages")), ("user", "a", "")]);
    let text = package("app", "", &[("base", ""), ("user", "")]).replace("namespace: apps", "namespace: packages");
    assert_eq!(messages(&text, &charts), Vec::<String>::new());
}

#[test]
fn hooks_need_nothing_and_give_nothing() {
    let charts = charts(&[("base", "crds/a.yaml", CRD), ("user", "templates/a.yaml", WIDGET)]);
    for components in [[("base", ", phase: PreUpgrade"), ("user", "")], [("base", ""), ("user", ", phase: PreUpgrade")]]
    {
        assert_eq!(messages(&package("app", "", &components), &charts), Vec::<String>::new());
    }
}

#[test]
fn an_edge_that_would_close_a_circle_is_only_mentioned() {
    let charts = charts(&[("base", "crds/a.yaml", CRD), ("user", "templates/a.yaml", WIDGET)]);
    let text = package("app", "", &[("base", ", dependsOn: [user]"), ("user", "")]);
    let found = found(&text, &charts);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].fix, None);
    assert!(found[0].help.contains("would close a circle, user -> base -> user:"), "{}", found[0].help);
}

#[test]
fn of_two_that_need_each_other_neither_is_put_first() {
    let other = CRD.replace("widgets", "gadgets").replace("Widget", "Gadget");
    let gadget = WIDGET.replace("Widget", "Gadget");
    let charts = charts(&[
        ("a", "templates/a.yaml", &format!("{CRD}---\n{gadget}")),
        ("b", "templates/a.yaml", &format!("{other}---\n{WIDGET}")),
    ]);
    let found = found(&package("app", "", &[("a", ""), ("b", "")]), &charts);
    assert_eq!(found.iter().map(|diagnostic| diagnostic.fix.clone()).collect::<Vec<_>>(), [None, None]);
}

#[test]
fn everything_that_is_missing_is_added_at_once() {
    let other = CRD.replace("widgets", "gadgets").replace("Widget", "Gadget");
    let uses = format!("{WIDGET}---\n{}", WIDGET.replace("Widget", "Gadget"));
    let charts =
        charts(&[("a", "crds/a.yaml", CRD), ("b", "crds/a.yaml", &other), ("user", "templates/a.yaml", &uses)]);
    let found = found(&package("app", "", &[("a", ""), ("b", ""), ("user", "")]), &charts);
    let fixes: Vec<&str> = found.iter().map(|diagnostic| diagnostic.fix.as_ref().unwrap().text.as_str()).collect();
    assert_eq!(fixes, [", dependsOn: [a, b]"; 2]);
}

#[test]
fn between_packages_a_requirement_is_missing() {
    let charts = charts(&[("base", "crds/a.yaml", CRD), ("user", "templates/a.yaml", WIDGET)]);
    let set = |requires: &str, back: &str| {
        let group = "---\napiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: all, namespace: packages}\n\
                     spec: {version: 1.0.0, requires: [{package: base}]}\n";
        package("app", requires, &[("user", "")]) + &package("base", back, &[("base", "")]) + group
    };
    let message = "component `user` uses Widget of example.org (templates/a.yaml), which Package `base` brings, and this one does not require it";
    let missing = messages(&set("", ""), &charts);
    assert_eq!(missing, [format!("{message}; add `- package: base` to requires")]);
    for requires in ["base", "all"] {
        let requires = format!("  requires: [{{package: {requires}}}]\n");
        assert_eq!(messages(&set(&requires, ""), &charts), Vec::<String>::new());
    }
    let circle = messages(&set("", "  requires: [{package: app}]\n"), &charts);
    assert!(circle.len() == 1 && circle[0].contains("requiring it would close a circle"), "{circle:?}");
    let elsewhere = set("", "").replace("{name: base, namespace: packages}", "{name: base, namespace: other}");
    assert_eq!(messages(&elsewhere, &charts), Vec::<String>::new());
}

#[test]
fn of_several_that_bring_it_nobody_knows_which_is_meant() {
    let charts = charts(&[("a", "crds/a.yaml", CRD), ("b", "crds/a.yaml", CRD), ("user", "templates/a.yaml", WIDGET)]);
    let found = found(&package("app", "", &[("a", ""), ("b", ""), ("user", "")]), &charts);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].help.as_str(), found[0].fix.as_ref()),
        ("add to install.dependsOn the one of `a` and `b` that is meant", None)
    );
}
