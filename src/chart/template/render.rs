//! Rendering with what is known, and marks for the rest.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Facts;
use super::document::{GAP, UNKNOWN, has_mark};
use super::expression::{Scope, Statement, Thing, at};
use super::functions::show;
use super::tree::{Branch, Kind, Node};

/// Most parts that are rendered for one file, those of loops and of what is
/// included counted each time.
const MAX_STEPS: u32 = 50_000;
/// Longest text that is rendered.
const MAX_TEXT: usize = 8 << 20;
/// Deepest nesting of what is included.
const MAX_DEPTH: u32 = 16;

/// Lines do not stand further to the right.
const MAX_DEPTH_OF_LINES: usize = 200;

/// A file that is rendered.
pub struct Render<'r, 't> {
    defines: &'r BTreeMap<&'t str, Vec<Node<'t>>>,
    facts: &'r Facts<'r>,
    dot: Thing,
    top: Thing,
    variables: Vec<(String, Thing)>,
    depth: u32,
    steps: u32,
    made: usize,
}

impl<'r, 't> Render<'r, 't> {
    /// Begins with the root as the dot.
    pub fn new(defines: &'r BTreeMap<&'t str, Vec<Node<'t>>>, facts: &'r Facts<'r>) -> Self {
        let (dot, top, variables) = (Thing::Root, Thing::Root, Vec::new());
        Self { defines, facts, dot, top, variables, depth: 0, steps: 0, made: 0 }
    }

    /// Renders a file.
    pub fn text(mut self, nodes: &[Node<'_>]) -> String {
        let mut out = String::new();
        self.nodes(nodes, &mut out);
        out
    }

    fn nodes(&mut self, nodes: &[Node<'_>], out: &mut String) {
        for node in nodes {
            self.steps += 1;
            if self.steps > MAX_STEPS || self.made > MAX_TEXT {
                gap(out);
                return;
            }
            match node {
                Node::Text(text) => {
                    self.made += text.len();
                    out.push_str(text);
                }
                Node::Output { code, after_break } => self.output(code, *after_break, out),
                Node::Branch(branch) => self.branch(branch, out),
            }
        }
    }

    fn output(&mut self, code: &str, after_break: bool, out: &mut String) {
        let Some(statement) = Statement::parse(code) else { return unknown(code, after_break, out) };
        let value = statement.evaluate(self);
        if !statement.variables.is_empty() {
            self.assign(&statement, &value);
            return;
        }
        let shown = if let Thing::Known(value) = &value { show(value) } else { None };
        match shown {
            Some(text) => {
                self.made += text.len();
                out.push_str(&text);
            }
            None => unknown(code, after_break, out),
        }
    }

    fn assign(&mut self, statement: &Statement, value: &Thing) {
        for name in &statement.variables {
            let known = self.variables.iter_mut().rev().find(|(known, _)| known == name);
            match known.filter(|_| !statement.declares) {
                Some((_, known)) => *known = value.clone(),
                None => self.variables.push((name.clone(), value.clone())),
            }
        }
    }

    fn branch(&mut self, branch: &Branch<'_>, out: &mut String) {
        let outside = self.variables.len();
        for (position, (condition, body)) in branch.arms.iter().enumerate() {
            let statement = Statement::parse(condition);
            let value = statement.as_ref().map_or(Thing::Unknown, |statement| statement.evaluate(self));
            let holds = match branch.kind {
                // Nobody loops over the root, and over a number seldom.
                Kind::Range if !is_list(&value) => value.truth().filter(|holds| !holds),
                Kind::If | Kind::With | Kind::Range => value.truth(),
            };
            let variables = statement.map(|statement| statement.variables).unwrap_or_default();
            match holds {
                Some(true) => self.arm(branch.kind, &variables, value, body, out),
                Some(false) => {
                    if branch.kind != Kind::Range {
                        variables.iter().for_each(|name| self.variables.push((name.clone(), value.clone())));
                    }
                    continue;
                }
                None => {
                    let mut bodies: Vec<&[Node<'_>]> =
                        branch.arms.iter().skip(position).map(|(_, body)| body.as_slice()).collect();
                    bodies.push(&branch.otherwise);
                    self.variables.extend(variables.into_iter().map(|name| (name, Thing::Unknown)));
                    self.one_of(branch.kind, &bodies, out);
                }
            }
            self.variables.truncate(outside);
            return;
        }
        self.nodes(&branch.otherwise, out);
        self.variables.truncate(outside);
    }

    /// What is rendered where a condition holds.
    fn arm(&mut self, kind: Kind, variables: &[String], value: Thing, body: &[Node<'_>], out: &mut String) {
        let dot = self.dot.clone();
        match (kind, value) {
            (Kind::If, value) => {
                variables.iter().for_each(|name| self.variables.push((name.clone(), value.clone())));
                self.nodes(body, out);
            }
            (Kind::Range, Thing::Known(Value::Array(items))) => {
                let items = items.into_iter().enumerate().map(|(index, item)| (Value::from(index), item));
                self.each(variables, items, body, out);
            }
            (Kind::Range, Thing::Known(Value::Object(map))) => {
                let mut items: Vec<(String, Value)> = map.into_iter().collect();
                items.sort_by(|(a, _), (b, _)| a.cmp(b));
                self.each(variables, items.into_iter().map(|(key, item)| (key.into(), item)), body, out);
            }
            (Kind::With | Kind::Range, value) => {
                variables.iter().for_each(|name| self.variables.push((name.clone(), value.clone())));
                self.dot = value;
                self.nodes(body, out);
            }
        }
        self.dot = dot;
    }

    fn each(
        &mut self,
        variables: &[String],
        items: impl Iterator<Item = (Value, Value)>,
        body: &[Node<'_>],
        out: &mut String,
    ) {
        let outside = self.variables.len();
        for (key, item) in items {
            match variables {
                [] => {}
                [value] => self.variables.push((value.clone(), Thing::Known(item.clone()))),
                [index, value, ..] => {
                    self.variables.push((index.clone(), Thing::Known(key)));
                    self.variables.push((value.clone(), Thing::Known(item.clone())));
                }
            }
            self.dot = Thing::Known(item);
            self.nodes(body, out);
            self.variables.truncate(outside);
        }
    }

    /// One of several bodies, and nobody knows which; of a loop any number.
    fn one_of(&mut self, kind: Kind, bodies: &[&[Node<'_>]], out: &mut String) {
        let (dot, before) = (self.dot.clone(), self.variables.clone());
        let mut assigned = vec![false; before.len()];
        let mut texts: Vec<String> = Vec::new();
        for (position, body) in bodies.iter().enumerate() {
            self.variables.clone_from(&before);
            let is_otherwise = position + 1 == bodies.len();
            self.dot = if kind == Kind::If || is_otherwise { dot.clone() } else { Thing::Unknown };
            let mut text = String::new();
            self.nodes(body, &mut text);
            for ((is_assigned, (_, now)), (_, then)) in assigned.iter_mut().zip(&self.variables).zip(&before) {
                *is_assigned |= now != then;
            }
            texts.push(text);
        }
        self.dot = dot;
        self.variables = before;
        for ((_, value), _) in self.variables.iter_mut().zip(assigned).filter(|(_, is_assigned)| *is_assigned) {
            *value = Thing::Unknown;
        }
        let is_one = texts.iter().all(|text| Some(text) == texts.first() && !has_mark(text));
        match texts.first().filter(|text| is_one && (kind != Kind::Range || text.is_empty())) {
            Some(text) => out.push_str(text),
            None => stand_in(&texts, out),
        }
    }
}

impl Scope for Render<'_, '_> {
    fn dot(&self) -> Thing {
        self.dot.clone()
    }

    fn variable(&self, name: &str) -> Thing {
        if name.is_empty() {
            return self.top.clone();
        }
        let known = self.variables.iter().rev().find(|(known, _)| known == name);
        known.map_or(Thing::Unknown, |(_, value)| value.clone())
    }

    fn root(&self, path: &[String]) -> Thing {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names.as_slice() {
            ["Values", ..] => {
                self.facts.values.map_or(Thing::Unknown, |values| at(values, path.get(1..).unwrap_or_default()))
            }
            ["Release", "Name"] => Thing::text(self.facts.release.name),
            ["Release", "Namespace"] => Thing::text(self.facts.release.namespace),
            ["Release", "Service"] => Thing::text("Helm"),
            ["Chart", "Name"] => of_chart(self.facts, "name"),
            ["Chart", "Version"] => of_chart(self.facts, "version"),
            ["Chart", "AppVersion"] => of_chart(self.facts, "appVersion"),
            _ => Thing::Unknown,
        }
    }

    fn include(&mut self, name: &str, dot: Thing) -> Thing {
        let Some(nodes) = self.defines.get(name).filter(|_| self.depth < MAX_DEPTH) else { return Thing::Unknown };
        self.depth += 1;
        let dot = std::mem::replace(&mut self.dot, dot);
        let top = std::mem::replace(&mut self.top, self.dot.clone());
        let variables = std::mem::take(&mut self.variables);
        let mut text = String::new();
        self.nodes(nodes, &mut text);
        self.depth -= 1;
        (self.dot, self.top, self.variables) = (dot, top, variables);
        if has_mark(&text) { Thing::Unknown } else { Thing::text(text) }
    }
}

fn of_chart(facts: &Facts<'_>, field: &str) -> Thing {
    match facts.chart.get(field) {
        Some(Value::String(text)) => Thing::text(text.as_str()),
        None => Thing::text(""),
        Some(_) => Thing::Unknown,
    }
}

fn is_list(thing: &Thing) -> bool {
    matches!(thing, Thing::Known(Value::Array(_) | Value::Object(_)))
}

/// Lines that are not known, at any depth.
fn gap(out: &mut String) {
    out.push('\n');
    out.push(UNKNOWN);
    out.push('\n');
}

/// Stands for what an action writes.
fn unknown(code: &str, after_break: bool, out: &mut String) {
    let by = code.rsplit_once("nindent").map(|(_, by)| by.trim().split(|c: char| !c.is_ascii_digit()).next());
    match by {
        Some(by) => lines(by.and_then(|by| by.parse().ok()), out),
        None if after_break => lines(None, out),
        None => out.push(UNKNOWN),
    }
}

/// Stands for lines that stand as far to the right as is said, if it is known.
fn lines(depth: Option<usize>, out: &mut String) {
    out.push('\n');
    match depth.filter(|depth| *depth <= MAX_DEPTH_OF_LINES) {
        Some(depth) => {
            out.extend(std::iter::repeat_n(' ', depth));
            out.push(GAP);
        }
        None => out.push(UNKNOWN),
    }
}

/// Stands for one of several texts: where they have lines of their own, a gap
/// between what is before and behind them, which then are as they would be
/// without.
fn stand_in(texts: &[String], out: &mut String) {
    if !texts.iter().any(|text| text.contains('\n')) {
        out.push(UNKNOWN);
        return;
    }
    let goes_on = texts.iter().any(|text| !is_blank(text.split('\n').next()));
    let begun = out.rsplit('\n').next().unwrap_or_default().to_owned();
    if goes_on && !is_blank(Some(&begun)) {
        out.push(UNKNOWN);
    }
    lines(depth(texts, &begun), out);
    if texts.iter().any(|text| text.lines().any(|line| line.starts_with("---"))) {
        out.push_str("\n---");
        lines(None, out);
    }
    let tails = texts.iter().filter(|text| !text.is_empty()).map(|text| text.rsplit('\n').next().unwrap_or_default());
    let tails: Vec<&str> = tails.collect();
    if let Some(tail) = tails.first().filter(|tail| is_blank(Some(tail)) && tails.iter().all(|other| other == *tail)) {
        out.push('\n');
        out.push_str(tail);
    }
}

fn is_blank(line: Option<&str>) -> bool {
    line.is_none_or(|line| line.trim().is_empty())
}

/// How far to the right the lines of texts stand that follow what a line has
/// begun with, where that is known of all of them.
fn depth(texts: &[String], begun: &str) -> Option<usize> {
    let mut least: Option<usize> = None;
    for text in texts {
        for (number, line) in text.split('\n').enumerate() {
            let bare = line.trim_start();
            let own = line.len() - bare.len();
            match bare {
                "" => continue,
                bare if bare.starts_with(UNKNOWN) => return None,
                _ if number == 0 && !is_blank(Some(begun)) => continue,
                _ if number == 0 => least = Some(least.unwrap_or(usize::MAX).min(begun.len() + own)),
                _ => least = Some(least.unwrap_or(usize::MAX).min(own)),
            }
        }
    }
    least
}
