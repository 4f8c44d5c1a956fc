//! What can be said about an expression from its tree.

use std::collections::{BTreeMap, BTreeSet};

use ::cel::common::ast::{EntryExpr, Expr, LiteralValue, SourceInfo, operators};
use ::cel::{ExecutionError, IdedExpr, ParseErrors};
use serde_json::Value;

use super::library::{FUNCTIONS, TYPES};
use super::{CompileError, Outcome, Variables, words};
use crate::package::definition::did_you_mean;

/// A field an expression reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// Where it is read, in bytes from the start of the text.
    pub offset: usize,
    /// The field, from the variable on: `object.status.phase`.
    pub path: String,
}

/// Byte offsets of the nodes of a tree.
pub(super) struct Offsets(BTreeMap<u64, usize>);

impl Offsets {
    pub(super) fn of(tree: &IdedExpr, info: &SourceInfo, text: &str) -> Self {
        // The parser counts bytes, though not in its errors.
        let mut offsets = BTreeMap::new();
        visit(tree, &mut |node| {
            if let Some((start, _)) = info.offset_for(node.id) {
                let start = (start as usize).min(text.len());
                offsets.insert(node.id, (0..=start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default());
            }
        });
        Self(offsets)
    }

    pub(super) fn at(&self, node: &IdedExpr) -> usize {
        self.0.get(&node.id).copied().unwrap_or(0)
    }
}

/// What is said of a chain that nests too deeply.
pub(super) const TOO_LONG: &str = "the expression has too many operators and selections in a row";

/// The first error of a parse.
pub(super) fn compile_error(text: &str, errors: &ParseErrors) -> CompileError {
    let Some(first) = errors.errors.first() else {
        return CompileError { message: "the expression is not CEL".to_owned(), offset: 0 };
    };
    // The parser has a limit of its own, which it words as a Rust value.
    if first.msg.contains("Recursion limit") {
        return CompileError { message: TOO_LONG.to_owned(), offset: 0 };
    }
    let line = usize::try_from(first.pos.0).unwrap_or(1).max(1);
    let column = usize::try_from(first.pos.1).unwrap_or(1).max(1);
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = text.get(before..).unwrap_or("");
    let within = rest.char_indices().nth(column - 1).map_or(rest.trim_end().len(), |(byte, _)| byte);
    let offset = (before + within).min(text.len());
    CompileError { message: words::plain(&first.msg, text.get(offset..).unwrap_or_default()), offset }
}

/// What to do about an error, told from what stands where it was found.
pub(super) fn help(error: &CompileError, text: &str) -> String {
    if let Some(name) = error.message.strip_prefix(NO_FUNCTION).and_then(|rest| rest.strip_suffix('`')) {
        let functions = FUNCTIONS.iter().copied().filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
        let similar = did_you_mean(name, functions);
        let other = || elsewhere(name).map(|known| format!("did you mean `{known}`?")).unwrap_or_default();
        return if similar.is_empty() { other() } else { similar };
    }
    let rest = text.get(error.offset..).unwrap_or_default();
    let word = rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let help = match (rest.chars().next(), word) {
        _ if text.trim().is_empty() => "write a condition, such as `object.status.phase == 'Running'`",
        (None, _) => "something is missing at its end, such as a closing bracket",
        _ if rest.trim().is_empty() => "something is missing at its end, such as a closing bracket",
        _ if rest.starts_with("&&") || rest.starts_with("||") => "something is missing before it",
        (Some('='), _) => "compare with `==`",
        (Some('&'), _) => "write `&&`",
        (Some('|'), _) => "write `||`",
        (Some('#'), _) => "a comment begins with `//`",
        (Some(quote @ ('\'' | '"')), _) if words::is_closed(rest, quote) => "write `\\\\` for a `\\`",
        (Some('\'' | '"'), _) => {
            "close the text with the quote that begins it; if it holds ` #`, where YAML begins a comment, write the \
             expression as a block behind `|`"
        }
        (Some(_), "and") => "write `&&`",
        (Some(_), "or") => "write `||`",
        (Some(_), "not") => "write `!`",
        (Some(_), _) => "",
    };
    help.to_owned()
}

/// What a function of other languages is called here.
fn elsewhere(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "beginswith" | "hasprefix" => Some("startsWith"),
        "hassuffix" => Some("endsWith"),
        "includes" => Some("contains"),
        "len" | "length" | "count" => Some("size"),
        _ => None,
    }
}

const NO_FUNCTION: &str = "there is no function `";

/// Calls `see` for every node.
pub(super) fn visit<'t>(node: &'t IdedExpr, see: &mut impl FnMut(&'t IdedExpr)) {
    see(node);
    for child in children(node) {
        visit(child, see);
    }
}

/// Nodes on the longest way down.
pub(super) fn depth(node: &IdedExpr) -> usize {
    1 + children(node).into_iter().map(depth).max().unwrap_or(0)
}

pub(super) fn children(node: &IdedExpr) -> Vec<&IdedExpr> {
    match &node.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(walk) => {
            vec![&walk.iter_range, &walk.accu_init, &walk.loop_cond, &walk.loop_step, &walk.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_children(&entry.expr)).collect(),
        Expr::Struct(message) => message.entries.iter().flat_map(|entry| entry_children(&entry.expr)).collect(),
        Expr::Select(select) => vec![&*select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entry_children(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

/// `a.b.f(…)` as a function of that name, if there is one.
fn qualified_function(target: &IdedExpr, name: &str) -> Option<String> {
    let full = format!("{}.{name}", plain_path(target)?.join("."));
    FUNCTIONS.contains(&full.as_str()).then_some(full)
}

/// What is said of what is no function, and takes other arguments than it has.
const MACROS: [(&str, &str); 9] = [
    ("has", "has(…) takes one field, as in `has(object.status.phase)`"),
    ("all", "all(…) takes a name and a condition, as in `all(c, c.ready)`"),
    ("exists", "exists(…) takes a name and a condition, as in `exists(c, c.type == 'Ready')`"),
    ("exists_one", "exists_one(…) takes a name and a condition, as in `exists_one(c, c.type == 'Ready')`"),
    ("existsOne", "existsOne(…) takes a name and a condition, as in `existsOne(c, c.type == 'Ready')`"),
    ("filter", "filter(…) takes a name and a condition, as in `filter(c, c.ready)`"),
    ("map", "map(…) takes a name and a value, as in `map(c, c.type)`"),
    ("optMap", "optMap(…) takes a name and a value, as in `optMap(v, v.size())`"),
    ("optFlatMap", "optFlatMap(…) takes a name and an optional value, as in `optFlatMap(v, v.?size)`"),
];

/// Refuses calls of functions that do not exist: at run time they would be
/// errors for ever, and a rollout would wait for its timeout.
pub(super) fn check_functions(tree: &IdedExpr, offsets: &Offsets) -> Result<(), CompileError> {
    let mut unknown = None;
    visit(tree, &mut |node| {
        let Expr::Call(call) = &node.expr else { return };
        let operator = !call.func_name.starts_with(|c: char| c.is_ascii_alphabetic());
        let known = FUNCTIONS.contains(&call.func_name.as_str())
            || call.target.as_ref().is_some_and(|target| qualified_function(target, &call.func_name).is_some());
        if !operator && !known && unknown.is_none() {
            let name = call.func_name.as_str();
            let taken = MACROS.iter().find(|(macro_name, _)| *macro_name == name);
            let message = taken.map_or_else(|| format!("{NO_FUNCTION}{name}`"), |(_, taken)| (*taken).to_owned());
            unknown = Some(CompileError { message, offset: offsets.at(node) });
        }
    });
    unknown.map_or(Ok(()), Err)
}

/// Variables read, without those bound inside.
pub(super) fn roots(tree: &IdedExpr) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit_roots(tree, &mut Vec::new(), &mut |_, name| {
        found.insert(name.to_owned());
    });
    found
}

/// See [`super::Expression::place_of_root`].
pub(super) fn place_of_root(tree: &IdedExpr, name: &str, offsets: &Offsets) -> usize {
    let mut first: Option<usize> = None;
    visit_roots(tree, &mut Vec::new(), &mut |node, found| {
        let at = offsets.at(node);
        if found == name && first.is_none_or(|first| at < first) {
            first = Some(at);
        }
    });
    first.unwrap_or_default()
}

fn visit_roots<'t>(node: &'t IdedExpr, bound: &mut Vec<&'t str>, see: &mut dyn FnMut(&'t IdedExpr, &'t str)) {
    match &node.expr {
        Expr::Ident(name) => {
            if !bound.contains(&name.as_str()) && !TYPES.contains(&name.as_str()) {
                see(node, name.trim_start_matches('.'));
            }
        }
        Expr::Comprehension(walk) => {
            visit_roots(&walk.iter_range, bound, see);
            visit_roots(&walk.accu_init, bound, see);
            let outer = bound.len();
            bound.extend([walk.iter_var.as_str(), walk.accu_var.as_str()]);
            bound.extend(walk.iter_var2.as_deref());
            for inner in [&walk.loop_cond, &walk.loop_step, &walk.result] {
                visit_roots(inner, bound, see);
            }
            bound.truncate(outer);
        }
        Expr::Call(call) => {
            let target = call.target.as_deref().filter(|target| qualified_function(target, &call.func_name).is_none());
            for child in target.into_iter().chain(&call.args) {
                visit_roots(child, bound, see);
            }
        }
        Expr::List(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Select(_) | Expr::Literal(_) | Expr::Unspecified => {
            for child in children(node) {
                visit_roots(child, bound, see);
            }
        }
    }
}

/// `a.b['c']` as its names.
pub(super) fn plain_path(node: &IdedExpr) -> Option<Vec<&str>> {
    path(node, false)
}

/// The names of what is asked for, with `a.?b` and `a[?'b']` among them where that is
/// `optional`.
fn path(node: &IdedExpr, optional: bool) -> Option<Vec<&str>> {
    let (mut path, field) = match &node.expr {
        Expr::Ident(name) => return Some(vec![name.as_str()]),
        Expr::Select(select) if !select.test => (path(&select.operand, optional)?, select.field.as_str()),
        Expr::Call(call) => {
            let [operand, key] = call.args.as_slice() else { return None };
            let is_optional = [operators::OPT_SELECT, operators::OPT_INDEX].contains(&call.func_name.as_str());
            if call.func_name != operators::INDEX && !(optional && is_optional) {
                return None;
            }
            (path(operand, is_optional)?, text_of(key)?)
        }
        Expr::Select(_)
        | Expr::Comprehension(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Unspecified => return None,
    };
    path.push(field);
    Some(path)
}

fn text_of(node: &IdedExpr) -> Option<&str> {
    if let Expr::Literal(LiteralValue::String(text)) = &node.expr { Some(text.inner()) } else { None }
}

/// `'c' in a.b` as the names of what it asks for.
fn contained_path(node: &IdedExpr) -> Option<Vec<&str>> {
    let Expr::Call(call) = &node.expr else { return None };
    let [key, map] = call.args.as_slice() else { return None };
    let mut path = plain_path(map).filter(|_| call.func_name == operators::IN)?;
    path.push(text_of(key)?);
    Some(path)
}

/// `a.?b.?c.hasValue()` as the names of what it asks for.
fn valued_path(node: &IdedExpr) -> Option<Vec<&str>> {
    let Expr::Call(call) = &node.expr else { return None };
    path(call.target.as_deref().filter(|_| call.func_name == "hasValue")?, true)
}

/// `has(a.b.c)` as its names.
fn tested_path(node: &IdedExpr) -> Option<Vec<&str>> {
    match &node.expr {
        Expr::Select(select) if select.test => {
            let mut path = plain_path(&select.operand)?;
            path.push(select.field.as_str());
            Some(path)
        }
        Expr::Select(_)
        | Expr::Ident(_)
        | Expr::Call(_)
        | Expr::Comprehension(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Unspecified => None,
    }
}

/// See [`super::Expression::unguarded`].
pub(super) fn unguarded(tree: &IdedExpr, prefix: &[&str], offsets: &Offsets) -> Vec<Access> {
    let mut walk = GuardWalk { prefix, offsets, found: BTreeSet::new() };
    walk.read(tree, &mut Vec::new());
    walk.found.into_iter().collect()
}

/// What a part says is there, if it is true or if it is false.
type Says<'w> = fn(&'w IdedExpr) -> Vec<Vec<&'w str>>;

struct GuardWalk<'w> {
    prefix: &'w [&'w str],
    offsets: &'w Offsets,
    found: BTreeSet<Access>,
}

impl<'w> GuardWalk<'w> {
    /// Reads `node` where the paths in `present` are known to be there.
    fn read(&mut self, node: &'w IdedExpr, present: &mut Vec<Vec<&'w str>>) {
        if let Some(path) = plain_path(node) {
            self.note(node, &path, present);
            return;
        }
        if tested_path(node).is_some() {
            // `has(a.b)` needs `a`, which its own answer says nothing about.
            if let Expr::Select(test) = &node.expr {
                self.read(&test.operand, &mut Vec::new());
            }
            return;
        }
        let Expr::Call(call) = &node.expr else {
            for child in children(node) {
                self.read(child, present);
            }
            return;
        };
        let outer = present.len();
        match (call.func_name.as_str(), call.args.as_slice()) {
            // Either side may guard the other: `false && error` is false both ways.
            (operators::LOGICAL_AND, sides) => {
                self.sides(sides, proved, present);
            }
            (operators::LOGICAL_OR, sides) => {
                self.sides(sides, disproved, present);
            }
            (operators::CONDITIONAL, [condition, yes, no]) => {
                self.read(condition, present);
                present.extend(proved(condition));
                self.read(yes, present);
                present.truncate(outer);
                present.extend(disproved(condition));
                self.read(no, present);
            }
            _ => {
                for child in children(node) {
                    self.read(child, present);
                }
            }
        }
        present.truncate(outer);
    }

    /// Reads each side where the others say what is there.
    fn sides(&mut self, sides: &'w [IdedExpr], says: Says<'w>, present: &mut Vec<Vec<&'w str>>) {
        for (index, side) in sides.iter().enumerate() {
            let outer = present.len();
            let others = sides.iter().enumerate().filter(|(other, _)| *other != index);
            present.extend(others.flat_map(|(_, other)| says(other)));
            self.read(side, present);
            present.truncate(outer);
        }
    }

    fn note(&mut self, node: &IdedExpr, path: &[&str], present: &[Vec<&str>]) {
        let known = present.iter().any(|there| there.starts_with(path));
        if path.starts_with(self.prefix) && !known {
            self.found.insert(Access { offset: self.offsets.at(node), path: path.join(".") });
        }
    }
}

/// Paths that are there where `node` is true.
fn proved(node: &IdedExpr) -> Vec<Vec<&str>> {
    if let Some(path) = tested_path(node).or_else(|| contained_path(node)).or_else(|| valued_path(node)) {
        return vec![path];
    }
    match &node.expr {
        Expr::Call(call) if call.func_name == operators::LOGICAL_AND => call.args.iter().flat_map(proved).collect(),
        Expr::Call(call) if call.func_name == operators::LOGICAL_NOT => call.args.iter().flat_map(disproved).collect(),
        Expr::Call(_)
        | Expr::Select(_)
        | Expr::Ident(_)
        | Expr::Comprehension(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Unspecified => Vec::new(),
    }
}

/// Paths that are there where `node` is false.
fn disproved(node: &IdedExpr) -> Vec<Vec<&str>> {
    match &node.expr {
        Expr::Call(call) if call.func_name == operators::LOGICAL_OR => call.args.iter().flat_map(disproved).collect(),
        Expr::Call(call) if call.func_name == operators::LOGICAL_NOT => call.args.iter().flat_map(proved).collect(),
        Expr::Call(_)
        | Expr::Select(_)
        | Expr::Ident(_)
        | Expr::Comprehension(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Unspecified => Vec::new(),
    }
}

/// An error of the evaluator as an outcome.
pub(super) fn explain(tree: &IdedExpr, error: &ExecutionError, variables: &Variables<'_>) -> Outcome {
    match error {
        ExecutionError::NoSuchKey(key) if is_written(tree, key) => {
            Outcome::Missing { path: missing(tree, key, variables) }
        }
        ExecutionError::NoSuchKey(_) => Outcome::Missing { path: "a key that is computed".to_owned() },
        ExecutionError::UndeclaredReference(name) => Outcome::Missing { path: name.to_string() },
        ExecutionError::IndexOutOfBounds(::cel::Value::Int(index)) if has_integer(tree, *index) => {
            Outcome::Missing { path: format!("item {index}") }
        }
        ExecutionError::IndexOutOfBounds(_) => Outcome::Missing { path: "an item that is computed".to_owned() },
        other => Outcome::Error { message: without_values(other).replace('@', "") },
    }
}

/// An error without the values it is about: they come from the object, which whoever
/// reads the message may not be allowed to read.
fn without_values(error: &ExecutionError) -> String {
    match error {
        ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::NoSuchOverload(_)
        | ExecutionError::MissingArgumentOrTarget => error.to_string(),
        ExecutionError::FunctionError { function, .. } => format!("{function} does not take what it is given"),
        ExecutionError::NotSupportedAsMethod { method, .. } => format!("{method} is not a method of what it follows"),
        ExecutionError::ValuesNotComparable(..) => "two values cannot be compared".to_owned(),
        ExecutionError::UnsupportedBinaryOperator(operator, ..) => {
            format!("operator {operator} does not take what stands beside it")
        }
        ExecutionError::UnsupportedIndex(..) => "a value cannot be indexed as it is".to_owned(),
        ExecutionError::UnsupportedKeyType(_) => "a value is no key of a map".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".to_owned(),
        ExecutionError::Overflow(operator, ..) => format!("operator {operator} overflows"),
        ExecutionError::DuplicateKey(_) => "a map has a key twice".to_owned(),
        _ => "it cannot be evaluated".to_owned(),
    }
}

/// Whether an expression itself says a key, as a field or in quotes.
fn is_written(tree: &IdedExpr, key: &str) -> bool {
    let mut found = false;
    visit(tree, &mut |node| {
        found |= match &node.expr {
            Expr::Select(select) => select.field == key,
            _ => text_of(node) == Some(key),
        };
    });
    found
}

fn has_integer(tree: &IdedExpr, integer: i64) -> bool {
    let mut found = false;
    visit(tree, &mut |node| {
        found |= matches!(&node.expr, Expr::Literal(LiteralValue::Int(literal)) if *literal.inner() == integer);
    });
    found
}

/// The path that ends in `key` and is not in the object: of the paths the
/// expression reads, the first that breaks off there.
fn missing(tree: &IdedExpr, key: &str, variables: &Variables<'_>) -> String {
    let mut found: Option<String> = None;
    let mut relative: Option<String> = None;
    visit(tree, &mut |node| {
        let Some(path) = read_path(node) else { return };
        if found.is_none() {
            found = break_off(&path, key, variables);
        }
        if relative.is_none() && path.last().is_some_and(|last| last == key) {
            relative = Some(path.join("."));
        }
    });
    found.or(relative).unwrap_or_else(|| key.to_owned())
}

/// `a.b["c"].d` as its names, `has(…)` included.
fn read_path(node: &IdedExpr) -> Option<Vec<String>> {
    match &node.expr {
        Expr::Ident(name) => Some(vec![name.clone()]),
        Expr::Select(select) => {
            let mut path = read_path(&select.operand)?;
            path.push(select.field.clone());
            Some(path)
        }
        Expr::Call(call) if call.func_name == operators::INDEX => {
            let [operand, key] = call.args.as_slice() else { return None };
            let mut path = read_path(operand)?;
            path.push(text_of(key)?.to_owned());
            Some(path)
        }
        Expr::Call(_)
        | Expr::Comprehension(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Unspecified => None,
    }
}

/// Where `path` leaves the object, if that is at `key`.
fn break_off(path: &[String], key: &str, variables: &Variables<'_>) -> Option<String> {
    let (root, fields) = path.split_first()?;
    let mut value: &Value = variables.json(root)?;
    for (depth, field) in fields.iter().enumerate() {
        match value.get(field) {
            Some(inner) => value = inner,
            None if field == key && value.is_object() => {
                let above = if root == "object" { &path[1..] } else { path };
                let length = if root == "object" { depth + 1 } else { depth + 2 };
                return Some(above[..length].join("."));
            }
            None => return None,
        }
    }
    None
}
