//! `--format svg`: a picture that stands alone and shows what the timeline tells.

use std::collections::BTreeSet;

use rstest::rstest;

use crate::{States, files, json, package, rehearse, stderr, stdout, text};

const DATABASE: &[&str] = &["examples/database/v2", "--from", "examples/database/v1"];
const KUBEVIRT: &[&str] = &["examples/kubevirt/v2", "--from", "examples/kubevirt/v1"];
const AGENT: &[&str] = &["examples/node-agent/v2", "--from", "examples/node-agent/v1"];
const PLATFORM: &[&str] = &["examples/platform/v2", "--from", "examples/platform/v1"];
const WIDTH: u64 = 960;

fn picture(arguments: &[&str]) -> String {
    let output = rehearse(&[arguments, &["--format", "svg"]].concat());
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", stderr(&output));
    stdout(&output).to_owned()
}

impl States {
    fn draw(&self, arguments: &[&str]) -> String {
        let [old, new] = ["v1.yaml", "v2.yaml"].map(|name| self.0.path().join(name).display().to_string());
        picture(&[&[new.as_str(), "--from", &old], arguments].concat())
    }
}

/// An element's beginning: its name and attributes.
type Element = (String, Vec<(String, String)>);

/// Reads a document as strictly as XML is read, without DTD, comments and CDATA.
fn elements(document: &str) -> Vec<Element> {
    let (mut open, mut found, mut rest) = (Vec::new(), Vec::new(), document);
    while let Some((before, tag)) = rest.split_once('<') {
        assert_text(before);
        assert!(!open.is_empty() || before.trim().is_empty(), "text outside of the root: {before}");
        let (tag, after) = tag.split_once('>').unwrap_or_else(|| panic!("not closed: <{tag}"));
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(!open.is_empty() || found.is_empty(), "a second root: {name}");
        found.push((name.to_owned(), read_attributes(attributes)));
        if !empty {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    found
}

fn read_attributes(mut rest: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    while let Some((name, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"').unwrap();
        assert_text(value);
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{name}");
        assert!(found.iter().all(|(known, _)| known != name), "{name} is there twice");
        found.push((name.to_owned(), value.to_owned()));
        rest = after.trim_start();
    }
    assert!(rest.is_empty(), "{rest}");
    found
}

fn assert_text(text: &str) {
    assert!(!text.contains('>') && text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
    for entity in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#10;"];
        assert!(known.iter().any(|known| entity.starts_with(known)), "&{entity}");
    }
}

fn attribute<'e>(element: &'e Element, name: &str) -> &'e str {
    element.1.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

/// Elements of a class, which may have others too.
fn of_class<'e>(elements: &'e [Element], class: &str) -> Vec<&'e Element> {
    elements.iter().filter(|element| attribute(element, "class").split(' ').any(|known| known == class)).collect()
}

fn has(document: &str, class: &str) -> bool {
    !of_class(&elements(document), class).is_empty()
}

#[rstest]
#[case::hook(DATABASE)]
#[case::gate(KUBEVIRT)]
#[case::canary(AGENT)]
#[case::packages(PLATFORM)]
#[case::installation(&["examples/platform/v2"])]
#[case::nothing(&["examples/platform/v2", "--from", "examples/platform/v2"])]
#[case::failure(&[KUBEVIRT, &["--fail", "kubevirt@workload"]].concat())]
#[case::rollback(&[AGENT, &["--fail", "agent@late"]].concat())]
#[case::restart(&[DATABASE, &["--restart-at", "30", "--slow", "api=20m"]].concat())]
#[case::held_up(&[PLATFORM, &["--fail", "ingress", "--engine", "argo"]].concat())]
fn a_picture_is_well_formed_bounded_and_stands_alone(#[case] arguments: &[&str]) {
    let drawn = picture(arguments);
    let elements = elements(&drawn);
    let allowed = ["svg", "title", "desc", "style", "defs", "pattern", "g", "rect", "path", "text"];
    assert!(elements.iter().all(|(name, _)| allowed.contains(&name.as_str())), "{drawn}");
    assert_eq!(drawn.matches("://").count(), 1, "only the namespace has an address: {drawn}");
    assert!(!drawn.contains("@import") && !drawn.contains("@font-face"));
    let number = |element: &Element, name: &str| attribute(element, name).parse::<u64>().unwrap_or(0);
    let height = number(&elements[0], "height");
    for element in &elements {
        assert!(number(element, "x") + number(element, "width") <= WIDTH, "{element:?}");
        assert!(number(element, "y") + number(element, "height") <= height.max(WIDTH), "{element:?}");
    }
    assert!(height < 900, "{height}");
    assert!(drawn.contains("@media (prefers-color-scheme:dark)"));
    assert!(has(&drawn, "legend"));
}

#[rstest]
#[case::hook(DATABASE)]
#[case::canary(AGENT)]
#[case::packages(PLATFORM)]
#[case::failure(&[KUBEVIRT, &["--fail", "operator"]].concat())]
fn every_package_hook_and_component_has_a_row(#[case] arguments: &[&str]) {
    let report = json(arguments);
    let mut expected = BTreeSet::new();
    for package in report["packages"].as_array().unwrap() {
        let id = format!("{}/{}", text(package, "/namespace"), text(package, "/name"));
        let components = package["components"].as_array().unwrap().iter();
        expected.extend(components.map(|component| format!("{id}/{}", text(component, "/name"))));
        expected.insert(id);
    }
    for event in report["events"].as_array().unwrap().iter().filter(|event| event["component"].is_string()) {
        let parts = ["/namespace", "/package", "/component"].map(|pointer| text(event, pointer));
        expected.insert(parts.join("/"));
    }
    let elements = elements(&picture(arguments));
    let rows = of_class(&elements, "row").into_iter().flat_map(|row| &row.1);
    let named = rows.filter(|(name, _)| name == "data-package" || name == "data-component");
    assert_eq!(named.map(|(_, value)| value.clone()).collect::<BTreeSet<_>>(), expected);
}

#[rstest]
#[case::hook(DATABASE, &["hook", "move", "good"], &["bad", "rollback", "gate", "rollout"])]
#[case::gate(KUBEVIRT, &["move", "gate", "link", "good"], &["bad", "hook", "rollback"])]
#[case::canary(AGENT, &["rollout", "canary", "budget", "wait"], &["bad", "rollback", "back"])]
#[case::rollback(&[AGENT, &["--fail", "agent@late"]].concat(), &["rollout", "canary", "back", "rollback", "bad"], &["hook", "cut"])]
#[case::failed_hook(&[DATABASE, &["--fail", "migrate@workload"]].concat(), &["hook", "bad"], &["move", "rollback"])]
#[case::attempts(&[DATABASE, &["--fail", "api"]].concat(), &["hook", "move", "attempt", "bad"], &["rollback"])]
#[case::late(&[DATABASE, &["--slow", "api=20m"]].concat(), &["stands", "bad", "cut", "good"], &["rollback"])]
#[case::restart(&[DATABASE, &["--restart-at", "30"]].concat(), &["restart", "hook"], &["bad"])]
#[case::held_up(&[PLATFORM, &["--fail", "ingress"]].concat(), &["wait", "rollback", "bad"], &["hook"])]
fn what_happens_has_a_mark_and_nothing_else_has(
    #[case] arguments: &[&str],
    #[case] there: &[&str],
    #[case] absent: &[&str],
) {
    let drawn = picture(arguments);
    for class in there {
        assert!(has(&drawn, class), "no {class}: {drawn}");
    }
    for class in absent {
        assert!(!has(&drawn, class), "{class}: {drawn}");
    }
}

#[test]
fn budgets_and_nodes_of_a_canary_are_written() {
    let drawn = picture(AGENT);
    assert!(drawn.contains(">budget 0 → 10% → 25% → 1: 10 of 10 nodes, successful</text>"), "{drawn}");
    let failed = picture(&[AGENT, &["--fail", "agent@late"]].concat());
    let text = ">budget 0: 1 of 10 nodes, canary; on the way back budget 0 → 1: 10 of 10 nodes, successful</text>";
    assert!(failed.contains(text), "{failed}");
}

#[test]
fn a_picture_says_how_it_ends_also_to_those_who_cannot_see_it() {
    let drawn = picture(&[KUBEVIRT, &["--fail", "kubevirt"]].concat());
    let read = elements(&drawn);
    assert_eq!(
        (attribute(&read[0], "role"), attribute(&read[0], "aria-labelledby")),
        ("img", "windlass-title windlass-desc")
    );
    assert!(drawn.contains("<title id=\"windlass-title\">Rehearsal of kubevirt 1.8.2 → 1.9.0</title>"), "{drawn}");
    let (_, description) = drawn.split_once("<desc id=\"windlass-desc\">").unwrap();
    assert!(description.contains("Not Ready; nothing moved any more after"), "{description}");
    assert!(description.contains("kubevirt 1.8.2 → 1.9.0: UpgradeFailed.</desc>"), "{description}");
    assert!(drawn.contains(">kubevirt 1.9.0 is not Ready: UpgradeFailed</text>"), "{drawn}");
}

#[test]
fn what_is_written_is_text_whatever_is_in_it() {
    let ready = ", readyWhen: [{apiVersion: example.org/v1, kind: Thing, name: thing, \
        expr: \"object.status.phase == '</svg>'\", \
        failed: \"object.status.phase == '<script>&'\"}]";
    let set = files(&[("set.yaml", &package("fails", "1.0.0", "", &[("two", ready)]))]);
    let drawn = picture(&[set.path().to_str().unwrap(), "--fail", "two@ready"]);
    elements(&drawn);
    assert!(drawn.contains("'&lt;script&gt;&amp;'"), "{drawn}");
    let waiting = picture(&[PLATFORM, &["--fail", "ingress"]].concat());
    assert!(waiting.contains("package ingress &gt;=2.1 &lt;3 is required"), "{waiting}");
}

#[test]
fn the_same_rehearsal_has_the_same_picture() {
    let arguments = [AGENT, &["--fail", "agent@late", "--restart-at", "40"]].concat();
    assert_eq!(picture(&arguments), picture(&arguments));
}

#[test]
fn many_packages_get_a_row_each_and_those_that_fail_are_shown_whole() {
    let set = |version: &str| {
        let two = [("a", ""), ("b", "")];
        let all = (0..30).map(|number| {
            let name = format!("package-{number}");
            let [a, b] = two.map(|(component, _)| format!("{name}-{component}"));
            package(&name, version, "", &[(&a, ""), (&b, "")])
        });
        all.collect::<String>()
    };
    let idle = package("idle", "1.0.0", "", &[("idle", "")]);
    let states = States::new(&(set("1.0.0") + &idle), &(set("2.0.0") + &idle));
    let drawn = states.draw(&["--fail", "package-7-b"]);
    let elements = elements(&drawn);
    assert_eq!(of_class(&elements, "folded").len(), 29);
    let named = |name: &str| elements.iter().flat_map(|element| &element.1).filter(|(known, _)| known == name).count();
    assert_eq!((named("data-package"), named("data-component")), (30, 2), "{drawn}");
    assert!(drawn.contains(">29 packages in which nothing failed: one row each"), "{drawn}");
    assert!(drawn.contains(">Left out: 1 package to which nothing happens.<"), "{drawn}");
}

#[test]
fn a_picture_of_everything_that_can_go_wrong_is_refused() {
    let output = rehearse(&[DATABASE, &["--explore", "--format", "svg"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a picture shows one rehearsal"), "{}", stderr(&output));
}
