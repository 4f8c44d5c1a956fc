//! Any bytes as a file: loading, checking, translating and reporting neither
//! panic nor hang, what they say hangs together, and what is rendered reads back
//! as it was meant.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use windlass::api::Engine;
use windlass::package::check::{Options, check};
use windlass::package::diagnostic::{Report, Style, write_github, write_json, write_text};
use windlass::package::graph::{Graph, write_dot, write_mermaid};
use windlass::package::load::{Input, NamespaceRule, load};
use windlass::package::definition::Definition;
use windlass::package::names::Namespace;
use windlass::package::yaml;
use windlass::translate::{Options as Translate, managed, native};

fuzz_target!(|bytes: &[u8]| {
    let rule = NamespaceRule::Default(Namespace::parse("default").expect("a name"));
    let input = Input::Text { bytes: bytes.to_vec(), shown: "input".into() };
    let mut loaded = load(&[input], &rule).expect("text is always there");
    if !loaded.has_errors() {
        assert!(loaded.packages.iter().all(|package| package.definition.is_some()));
        let graph = Graph::new(loaded.packages.iter().filter_map(|package| package.definition.as_ref()));
        let _ = (write_dot(&graph), write_mermaid(&graph));
        let definitions: Vec<Definition> =
            loaded.packages.iter().filter_map(|package| package.definition.clone()).collect();
        translate(&definitions);
    }
    for engine in [None, Some(Engine::Flux), Some(Engine::Argo)] {
        let found = check(&loaded, &Options { engine, ..Options::default() }).expect("no charts to read");
        loaded.diagnostics.extend(found);
    }
    let length = loaded.sources.first().map_or(0, |source| source.text().len());
    for diagnostic in &loaded.diagnostics {
        assert!(diagnostic.span.start <= diagnostic.span.end && diagnostic.span.end <= length, "{diagnostic:?}");
    }
    let report = Report::new(loaded.sources, loaded.diagnostics);
    let _ = (write_text(&report, Style::Plain), write_json(&report));
    let commands = write_github(&report);
    assert!(commands.lines().all(|line| line.starts_with("::error ") || line.starts_with("::warning ")));
});

/// Both engines and modes; a set may be refused, but what comes of it is YAML
/// that says the same.
fn translate(definitions: &[Definition]) {
    for engine in [Engine::Flux, Engine::Argo] {
        let options = Translate { skip_hooks: true, ..Translate::for_engine(Some(engine)) };
        for translation in [managed(definitions, &options), native(definitions, &options)].into_iter().flatten() {
            let meant: Vec<Value> = translation.objects.into_iter().map(Value::from).collect();
            let text = yaml::write::write(&meant).expect("any value can be written");
            let read = yaml::parse(&text);
            assert!(read.problems.is_empty(), "{:?}", read.problems);
            let read: Vec<String> = read.documents.iter().map(|node| node.to_value().to_string()).collect();
            let meant: Vec<String> = meant.iter().map(Value::to_string).collect();
            assert_eq!(read, meant);
        }
    }
}
