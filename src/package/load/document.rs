//! From one document to a Package or another manifest.

use serde_json::Value;

use super::{Loaded, LoadedPackage, NamespaceRule, OtherManifest, finding};
use crate::api::{self, wellknown};
use crate::package::definition::{self, did_you_mean};
use crate::package::diagnostic::{Diagnostic, Fix, MOST_FINDINGS, Severity};
use crate::package::pointer::is_within;
use crate::package::source::Span;
use crate::package::structure::{self, Finding, Structure};
use crate::package::violation::{Code, Violation};
use crate::package::yaml::{self, Content, Node};

/// Kinds of our API group.
const KINDS: [&str; 2] = ["Package", "PackageRevision"];

/// Reads every document of a source. In a file that was named, a document that
/// is no Kubernetes object is an error; in one found in a directory a warning.
pub fn read_text(source: usize, named: bool, namespace: &NamespaceRule, loaded: &mut Loaded) {
    let Some(text) = loaded.sources.get(source).map(|source| source.text()) else { return };
    let documents = yaml::parse(text);
    for problem in documents.problems {
        loaded.diagnostics.push(finding(source, problem.span, problem.code, problem.message, &problem.help));
    }
    for root in documents.documents {
        document(source, root, named, namespace, loaded);
    }
}

fn document(source: usize, root: Node, named: bool, namespace: &NamespaceRule, loaded: &mut Loaded) {
    if root.content == Content::Null {
        return;
    }
    let text = |key: &str| root.get(key).and_then(Node::as_text).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = group(&api_version);
    if api_version.is_empty() || kind.is_empty() {
        not_an_object(source, &root, named, loaded);
    } else if group != wellknown::GROUP && !is_misspelt(group, &kind) {
        other(source, root, api_version, kind, loaded);
    } else if api_version == wellknown::API_VERSION && kind == "Package" {
        let package = package(source, root, namespace, loaded);
        loaded.packages.push(package);
    } else {
        unsupported(source, &root, &api_version, &kind, loaded);
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether a document of another group was meant as one of ours: passed on as
/// something else it would never be seen again.
fn is_misspelt(group: &str, kind: &str) -> bool {
    KINDS.contains(&kind) && !did_you_mean(group, std::iter::once(wellknown::GROUP)).is_empty()
}

fn not_an_object(source: usize, root: &Node, named: bool, loaded: &mut Loaded) {
    let is_kustomization = loaded.sources.get(source).is_some_and(|source| {
        let name = source.path().rsplit('/').next().unwrap_or_default();
        matches!(name, "kustomization.yaml" | "kustomization.yml")
    });
    if is_kustomization && !named {
        return;
    }
    let missing = match (root.entries(), root.get("apiVersion"), root.get("kind")) {
        (None, ..) => format!("this is {}", root.kind()),
        (Some(_), None, None) => "apiVersion and kind are missing".into(),
        (Some(_), None, Some(_)) => "apiVersion is missing".into(),
        (Some(_), Some(_), None) => "kind is missing".into(),
        (Some(_), Some(_), Some(_)) => "apiVersion and kind must be text".into(),
    };
    let help = "a Package begins with `apiVersion: windlass.dev/v1alpha1` and `kind: Package`";
    let message = format!("this document is no Kubernetes object: {missing}");
    let mut finding = finding(source, root.locate(""), Code::NotAnObject, message, help);
    if !named && !looks_like_a_package(root) {
        finding.severity = Severity::Warning;
        finding.help = REFUSED_ELSEWHERE.to_owned();
    }
    loaded.diagnostics.push(finding);
}

/// What to do about what is only warned of here.
const REFUSED_ELSEWHERE: &str =
    "`render` and `plugin generate` refuse it: move it to another directory, or add what is missing";

/// Whether a document that is no object was probably meant as a Package. Left
/// out in silence it would be uninstalled by whoever prunes.
fn looks_like_a_package(root: &Node) -> bool {
    let text = |key: &str| root.get(key).and_then(Node::as_text).unwrap_or_default();
    let is_map = |key: &str| root.get(key).is_some_and(|node| node.entries().is_some());
    let of_ours = text("apiVersion").split('/').next() == Some(wellknown::GROUP);
    of_ours || text("kind") == "Package" || (is_map("metadata") && is_map("spec"))
}

fn other(source: usize, root: Node, api_version: String, kind: String, loaded: &mut Loaded) {
    let of_ours = |item: &&Node| {
        let text = |key: &str| item.get(key).and_then(Node::as_text).unwrap_or_default();
        let group = group(text("apiVersion"));
        group == wellknown::GROUP || is_misspelt(group, text("kind"))
    };
    if kind == "List"
        && let Some(Content::Sequence(items)) = root.get("items").map(|items| &items.content)
        && let Some(item) = items.iter().find(of_ours)
    {
        let help = "write each Package as a document of its own, with `---` between them";
        let message = "Packages in a List are not read";
        loaded.diagnostics.push(finding(source, item.locate(""), Code::UnsupportedKind, message, help));
    }
    let name = root.find("/metadata/name").and_then(Node::as_text).unwrap_or_default().to_owned();
    let span = root.locate("");
    loaded.others.push(OtherManifest { source, span, api_version, kind, name, value: root.into_value() });
}

fn unsupported(source: usize, root: &Node, api_version: &str, kind: &str, loaded: &mut Loaded) {
    let (pointer, message, help) = if kind == "PackageRevision" {
        let message = "a PackageRevision is written by the controller alone";
        ("/kind", message.to_owned(), "remove it from the files".to_owned())
    } else if api_version == wellknown::API_VERSION {
        let similar = did_you_mean(kind, KINDS.iter().copied());
        let help = if similar.is_empty() { "write `kind: Package`".to_owned() } else { similar };
        ("/kind", format!("{api_version} has no kind `{kind}`"), help)
    } else {
        let help = format!("write `apiVersion: {}`", wellknown::API_VERSION);
        ("/apiVersion", format!("this Windlass does not know `{api_version}`"), help)
    };
    loaded.diagnostics.push(finding(source, root.locate(pointer), Code::UnsupportedKind, message, &help));
}

fn package(source: usize, root: Node, rule: &NamespaceRule, loaded: &mut Loaded) -> LoadedPackage {
    let text = |pointer: &str| root.find(pointer).and_then(Node::as_text).map(str::to_owned);
    let name = text("/metadata/name").unwrap_or_default();
    let namespace = match rule {
        NamespaceRule::Forced(namespace) => namespace.to_string(),
        NamespaceRule::Default(namespace) => text("/metadata/namespace").unwrap_or_else(|| namespace.to_string()),
    };
    let Structure { findings: mut shape, fitting } = structure::check(&root);
    let mut package = LoadedPackage { source, root, name, namespace, package: None, definition: None };
    let mut meaning = parse(&mut package, fitting, &shape);
    if has_doubled_key(&package, loaded) {
        // What was meant is not known, so nothing is to be said of it.
        meaning.clear();
    }
    cut_short(&mut shape, &mut meaning);
    report(&package, merge(shape, meaning), loaded);
    package
}

/// Whether a key is there twice, as it is where a `- ` was forgotten.
fn has_doubled_key(package: &LoadedPackage, loaded: &Loaded) -> bool {
    let whole = package.root.span;
    let doubled = |found: &Diagnostic| found.source == package.source && found.code == Code::DuplicateKey;
    loaded
        .diagnostics
        .iter()
        .any(|found| doubled(found) && whole.start <= found.span.start && found.span.end <= whole.end)
}

/// Fills in what a Package says, as far as its shape allows, and gives the rules
/// of meaning that it breaks.
fn parse(package: &mut LoadedPackage, fitting: Value, shape: &[Finding]) -> Vec<Violation> {
    let typed = match serde_json::from_value::<api::Package>(fitting) {
        Ok(typed) => typed,
        Err(error) if shape.is_empty() => return vec![Violation::new(Code::WrongType, "/spec", error.to_string())],
        Err(_) => return Vec::new(),
    };
    let too_many_components =
        |finding: &Finding| finding.violation.code == Code::TooLarge && finding.violation.pointer == "/spec/components";
    // Comparing every two of too many components would take minutes.
    if shape.iter().any(too_many_components) {
        return Vec::new();
    }
    let parsed = definition::parse(&package.name, &package.namespace, &typed.spec);
    package.package = Some(typed);
    match parsed {
        Ok(definition) => {
            package.definition = Some(definition).filter(|_| shape.is_empty());
            Vec::new()
        }
        Err(violations) => violations,
    }
}

fn report(package: &LoadedPackage, findings: Vec<Finding>, loaded: &mut Loaded) {
    let source = package.source;
    let text = loaded.sources.get(source);
    // A map that is none, such as `{{ x }}`, was refused when it was read.
    let misread = |finding: &Finding| {
        let node = package.root.find(&finding.violation.pointer).filter(|_| finding.violation.code == Code::WrongType);
        node.is_some_and(|node| {
            let within = |span: Span| node.span.start <= span.start && span.end <= node.span.end;
            loaded
                .diagnostics
                .iter()
                .any(|other| other.source == source && other.package.is_none() && within(other.span))
        })
    };
    let found = findings.into_iter().filter(|finding| !misread(finding)).map(|finding| {
        let pointer = &finding.violation.pointer;
        let span = if finding.at_key { package.root.locate_key(pointer) } else { package.root.locate(pointer) };
        let written = text.map(|source| source.slice(span)).filter(|_| finding.quotes_mend);
        let fix = written.map(|written| format!("\"{written}\""));
        Diagnostic {
            fix: fix.map(|text| Fix { span, text }),
            ..package.diagnostic_at(Severity::Error, finding.violation, span)
        }
    });
    let found: Vec<_> = found.collect();
    loaded.diagnostics.extend(found);
}

/// Leaves as many findings as anyone would mend in one go. Each is looked up in
/// the document and compared with others: a hostile file could have any number.
fn cut_short(shape: &mut Vec<Finding>, meaning: &mut Vec<Violation>) {
    let count = shape.len() + meaning.len();
    if count > MOST_FINDINGS {
        shape.sort_by_key(|finding| finding.violation.code != Code::TooLarge);
        shape.truncate(MOST_FINDINGS);
        meaning.truncate(MOST_FINDINGS - shape.len());
        let message = format!("{count} findings in this Package, of which {MOST_FINDINGS} are shown");
        let violation = Violation::new(Code::TooLarge, "", message).help("mend these first");
        shape.push(Finding { violation, at_key: false, quotes_mend: false });
    }
}

/// One finding per place: rules of the shape see every field, but where a rule
/// of meaning speaks of the same field it says more. What follows from a field
/// that was left out or filled in is not said again.
fn merge(shape: Vec<Finding>, meaning: Vec<Violation>) -> Vec<Finding> {
    let (value_findings, hard): (Vec<_>, Vec<_>) =
        shape.into_iter().partition(|f| !f.at_key && matches!(f.violation.code, Code::InvalidValue | Code::TooLarge));
    let caused = |violation: &Violation| {
        hard.iter().any(|finding| {
            let at = finding.violation.pointer.as_str();
            let is_cause = is_within(&violation.pointer, at);
            is_cause || (violation.code == Code::ExactlyOne && is_within(at, &violation.pointer))
        })
    };
    let meaning: Vec<Violation> = meaning.into_iter().filter(|violation| !caused(violation)).collect();
    let better = |finding: &Finding| meaning.iter().any(|violation| violation.pointer == finding.violation.pointer);
    let value_findings: Vec<_> = value_findings.into_iter().filter(|finding| !better(finding)).collect();
    let meaning = meaning.into_iter().map(|violation| Finding { violation, at_key: false, quotes_mend: false });
    hard.into_iter().chain(value_findings).chain(meaning.collect::<Vec<_>>()).collect()
}
