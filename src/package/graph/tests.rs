//! One set of Packages in three forms.

use super::*;
use crate::package::definition::parse;
use crate::package::definition::testing::component;
use crate::package::yaml;

fn definition(name: &str, spec: &str) -> Definition {
    let root = yaml::parse(spec).documents.remove(0);
    parse(name, "apps", &serde_json::from_value(root.to_value()).unwrap()).unwrap()
}

fn set() -> Vec<Definition> {
    let mut app = definition(
        "app",
        "{version: 2.0.0, requires: [{package: db, version: '>=1 <2'}, {package: cache, optional: true}, {package: gone}, {kubernetes: '>=1.30'}]}",
    );
    app.components =
        vec![component("web", &["end"]), component("end", &[]), component("migrate", &[]), component("seed", &[])];
    app.components[2].hook = true;
    app.components[3].hook = true;
    let mut db = definition("db", "{version: 1.4.0}");
    db.components = vec![component("operator", &[]), component("cluster", &["operator"])];
    vec![app, db, definition("all", "{version: 1.0.0, requires: [{package: app}, {package: db}]}")]
}

#[test]
fn people_read_it_in_the_order_things_move() {
    insta::assert_snapshot!(write_text(&Graph::new(&set())));
}

#[test]
fn graphviz_draws_it() {
    insta::assert_snapshot!(write_dot(&Graph::new(&set())));
}

#[test]
fn mermaid_draws_it() {
    insta::assert_snapshot!(write_mermaid(&Graph::new(&set())));
}

#[test]
fn an_empty_set_is_an_empty_graph() {
    assert_eq!(write_text(&Graph::new(&[])), "");
}
