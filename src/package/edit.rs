//! Changes of a file that leave everything else of it as it is: comments, layout,
//! other documents.

use serde_json::{Map, Value};

use super::diagnostic::Fix;
use super::source::{Source, Span};
use super::yaml::write::write;
use super::yaml::{Content, Entry, Node, parse};

/// Adds names to `install.dependsOn` of a component.
///
/// `None` where that cannot be done without touching anything else, such as where
/// the component came through an alias: the result is read back and compared.
pub fn add_dependencies(source: &Source, root: &Node, position: usize, names: &[&str]) -> Option<Fix> {
    let component = root.find(&format!("/spec/components/{position}"))?;
    let names: Option<Vec<String>> = names.iter().map(|name| scalar(name)).collect();
    let editor = Editor { source, names: names? };
    let expected = expected(root, position, &editor.names_as_values()?)?;
    let fixes = editor.candidates(component);
    fixes.into_iter().find(|fix| gives(source, root, fix, &expected))
}

/// A text as it stands in a list.
fn scalar(text: &str) -> Option<String> {
    let written = write(&[Value::String(text.to_owned())]).ok()?;
    Some(written.strip_prefix("---\n")?.trim_end().to_owned())
}

/// The document with the names added.
fn expected(root: &Node, position: usize, names: &[Value]) -> Option<Value> {
    let mut document = root.to_value();
    let component = document.pointer_mut(&format!("/spec/components/{position}"))?.as_object_mut()?;
    let install = component.entry("install").or_insert_with(|| Map::new().into()).as_object_mut()?;
    let list = install.entry("dependsOn").or_insert_with(|| Value::Array(Vec::new())).as_array_mut()?;
    list.extend(names.iter().cloned());
    Some(document)
}

/// Whether a change makes this of the document, and nothing of the others.
fn gives(source: &Source, root: &Node, fix: &Fix, expected: &Value) -> bool {
    let mut text = source.text().to_owned();
    if !text.is_char_boundary(fix.span.start) || !text.is_char_boundary(fix.span.end) {
        return false;
    }
    text.replace_range(fix.span.start..fix.span.end, &fix.text);
    let (before, after) = (parse(source.text()), parse(&text));
    let is_same = |(before, after): (&Node, &Node)| {
        let after = after.to_value();
        if before.span == root.span { after == *expected } else { after == before.to_value() }
    };
    before.problems.len() == after.problems.len()
        && before.documents.len() == after.documents.len()
        && before.documents.iter().any(|document| document.span == root.span)
        && before.documents.iter().zip(&after.documents).all(is_same)
}

struct Editor<'a> {
    source: &'a Source,
    /// As they are written.
    names: Vec<String>,
}

impl Editor<'_> {
    fn names_as_values(&self) -> Option<Vec<Value>> {
        let read = |name: &String| parse(name).documents.pop().map(Node::into_value);
        self.names.iter().map(read).collect()
    }

    /// Ways to write it, best first.
    fn candidates(&self, component: &Node) -> Vec<Fix> {
        let Some(install) = component.entry("install") else { return self.new_install(component) };
        let fix = match install.value.entry("dependsOn").map(|entry| &entry.value) {
            Some(list) => self.in_list(list),
            None => self.in_install(install),
        };
        fix.into_iter().collect()
    }

    fn list(&self) -> String {
        format!("[{}]", self.names.join(", "))
    }

    fn in_list(&self, list: &Node) -> Option<Fix> {
        let Content::Sequence(items) = &list.content else { return None };
        match items.last() {
            None => Some(Fix { span: list.span, text: self.list() }),
            Some(last) if self.is_flow(list) => Some(insert(last.span.end, format!(", {}", self.names.join(", ")))),
            Some(last) => {
                let dash = self.before(last.span.start)?;
                let is_dash = dash.trim_start().strip_prefix('-').is_some_and(|rest| rest.trim().is_empty());
                let lines = self.names.iter().map(|name| format!("{}{dash}{name}", self.line_break(last.span.end)));
                is_dash.then(|| insert(self.line_end(last.span.end), lines.collect()))
            }
        }
    }

    fn in_install(&self, install: &Entry) -> Option<Fix> {
        let entries = install.value.entries()?;
        let text = format!("dependsOn: {}", self.list());
        if self.is_flow(&install.value) {
            return Some(match entries.last() {
                None => Fix { span: install.value.span, text: format!("{{{text}}}") },
                Some(last) => insert(last.value.span.end, format!(", {text}")),
            });
        }
        // Before what may be a comment on the first entry.
        let indent = self.indent(entries.first()?.key_span.start)?;
        let at = install.key_span.end;
        Some(insert(self.line_end(at), format!("{}{indent}{text}", self.line_break(at))))
    }

    fn new_install(&self, component: &Node) -> Vec<Fix> {
        let Some([first, ..]) = component.entries() else { return Vec::new() };
        let Some(last) = component.entries().and_then(<[Entry]>::last) else { return Vec::new() };
        if self.is_flow(component) {
            let text = format!(", install: {{dependsOn: {}}}", self.list());
            return vec![insert(last.value.span.end, text)];
        }
        let Some(indent) = self.indent(first.key_span.start) else { return Vec::new() };
        let after = |at: usize| {
            let line_break = self.line_break(at);
            let text = format!("{line_break}{indent}install:{line_break}{indent}  dependsOn: {}", self.list());
            insert(self.line_end(at), text)
        };
        vec![after(self.end(&last.value)), after(first.value.span.end)]
    }

    fn is_flow(&self, node: &Node) -> bool {
        self.source.slice(node.span).starts_with(['{', '['])
    }

    /// Where what is written of a node ends.
    fn end(&self, node: &Node) -> usize {
        let inner = match &node.content {
            _ if self.is_flow(node) => None,
            Content::Mapping(entries) => entries.last().map(|entry| self.end(&entry.value)),
            Content::Sequence(items) => items.last().map(|item| self.end(item)),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => None,
        };
        let end = inner.unwrap_or(node.span.end);
        self.source.text().get(..end).map_or(end, |text| text.trim_end().len())
    }

    /// What is before a place on its line.
    fn before(&self, at: usize) -> Option<&str> {
        let (start, _) = self.source.line_at(at);
        self.source.text().get(start..at)
    }

    /// Spaces up to where an entry begins, which may be behind the dash of a list.
    fn indent(&self, at: usize) -> Option<String> {
        let before = self.before(at)?;
        before.bytes().all(|byte| matches!(byte, b' ' | b'-')).then(|| " ".repeat(before.len()))
    }

    fn line_end(&self, at: usize) -> usize {
        let (start, line) = self.source.line_at(at);
        start + line.len()
    }

    fn line_break(&self, at: usize) -> &'static str {
        let rest = self.source.text().get(self.line_end(at)..).unwrap_or_default();
        if rest.starts_with('\r') { "\r\n" } else { "\n" }
    }
}

fn insert(at: usize, text: String) -> Fix {
    Fix { span: Span { start: at, end: at }, text }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The text after names were added to the second component of its first document.
    fn edited(text: &str, names: &[&str]) -> Option<String> {
        let source = Source::new("p.yaml", text);
        let root = parse(text).documents.into_iter().next().unwrap();
        let fix = add_dependencies(&source, &root, 1, names)?;
        let mut text = text.to_owned();
        text.replace_range(fix.span.start..fix.span.end, &fix.text);
        Some(text)
    }

    fn package(component: &str) -> String {
        format!("spec:\n  components:\n  - name: a\n  # second\n  - name: b # it\n{component}\n---\nx: 1 # other\n")
    }

    #[rstest]
    #[case::into_a_list("    install: {dependsOn: [c]} # why", "    install: {dependsOn: [c, a]} # why")]
    #[case::into_an_empty_list("    install:\n      dependsOn: []", "    install:\n      dependsOn: [a]")]
    #[case::into_a_list_of_lines(
        "    install:\n      dependsOn:\n      - c # why\n      # end",
        "    install:\n      dependsOn:\n      - c # why\n      - a\n      # end"
    )]
    #[case::into_an_indented_list(
        "    install:\n      dependsOn:\n        -   c",
        "    install:\n      dependsOn:\n        -   c\n        -   a"
    )]
    #[case::into_a_map(
        "    install: # where\n      # why\n      namespace: x",
        "    install: # where\n      dependsOn: [a]\n      # why\n      namespace: x"
    )]
    #[case::into_a_short_map("    install: {namespace: x}", "    install: {namespace: x, dependsOn: [a]}")]
    #[case::into_an_empty_map("    install: {}", "    install: {dependsOn: [a]}")]
    #[case::where_there_is_none(
        "    chart:\n      name: x # y\n    # end",
        "    chart:\n      name: x # y\n    install:\n      dependsOn: [a]\n    # end"
    )]
    #[case::behind_text_of_lines(
        "    values:\n      text: |\n        one\n\n        two\n",
        "    values:\n      text: |\n        one\n\n        two\n    install:\n      dependsOn: [a]\n"
    )]
    #[case::behind_a_list(
        "    valuesFiles:\n    - one\n    - {a: 1}",
        "    valuesFiles:\n    - one\n    - {a: 1}\n    install:\n      dependsOn: [a]"
    )]
    #[case::with_other_line_ends(
        "    install:\r\n      namespace: x\r",
        "    install:\r\n      dependsOn: [a]\r\n      namespace: x\r"
    )]
    fn a_dependency_is_added_and_nothing_else_touched(#[case] before: &str, #[case] after: &str) {
        assert_eq!(edited(&package(before), &["a"]), Some(package(after)));
    }

    #[test]
    fn a_component_on_one_line_stays_on_it() {
        let text = "spec: {components: [{name: a}, {name: b, path: x}]}\n";
        let expected = "spec: {components: [{name: a}, {name: b, path: x, install: {dependsOn: [a]}}]}\n";
        assert_eq!(edited(text, &["a"]).as_deref(), Some(expected));
    }

    #[test]
    fn names_that_are_no_text_without_quotes_get_them() {
        let after = edited(&package("    install: {dependsOn: [c]}"), &["on", "1", "d"]).unwrap();
        assert!(after.contains("[c, \"on\", \"1\", d]") || after.contains("[c, 'on', '1', d]"), "{after}");
    }

    #[rstest]
    #[case::alias("spec:\n  components:\n  - {name: a, install: &i {namespace: x}}\n  - {name: b, install: *i}\n")]
    #[case::merge("spec:\n  components:\n  - &a\n    name: a\n    install: {namespace: x}\n  - <<: *a\n    name: b\n")]
    #[case::no_list("spec:\n  components:\n  - name: a\n  - name: b\n    install: {dependsOn: c}\n")]
    #[case::absent("spec:\n  components:\n  - name: a\n")]
    fn what_would_touch_something_else_is_left(#[case] text: &str) {
        assert_eq!(edited(text, &["a"]), None);
    }
}
