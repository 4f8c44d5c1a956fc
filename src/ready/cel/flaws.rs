//! What is valid CEL and still has no answer on any object.

use ::cel::IdedExpr;
use ::cel::common::ast::{Expr, LiteralValue, operators};
use regex::{Regex, RegexBuilder};

use super::syntax::{Offsets, plain_path, visit};

/// A part of an expression that always fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where it is, in bytes from the start of the text.
    pub offset: usize,
    /// What is wrong with it.
    pub message: String,
    /// What to do; empty if the message says it.
    pub help: &'static str,
}

/// Bytes of a compiled pattern that cost next to nothing.
const SMALL_PATTERN: usize = 1 << 16;
/// Most larger ones of one expression that are looked at: each may take a while.
const MOST_LARGE: u32 = 4;

/// See [`super::Expression::never_boolean`].
pub(super) fn never_boolean(node: &IdedExpr, offsets: &Offsets) -> Option<Flaw> {
    if let Some(kind) = kind(node) {
        let help = if is_optional(node) { "end it with `.orValue(false)`" } else { "compare it with something" };
        return Some(Flaw { offset: offsets.at(node), message: format!("this is {kind}, never true or false"), help });
    }
    let Expr::Call(call) = &node.expr else { return None };
    let answers = match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT | operators::CONDITIONAL, args) => {
            args
        }
        _ => return None,
    };
    answers.iter().find_map(|answer| never_boolean(answer, offsets))
}

/// Whether a part is an optional value: `a.?b` and what is read from it.
fn is_optional(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Select(select) => !select.test && is_optional(&select.operand),
        Expr::Call(call) => match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            (operators::OPT_SELECT | operators::OPT_INDEX, ..) => true,
            (operators::INDEX, None, [operand, _]) => is_optional(operand),
            ("or", Some(target), _) => is_optional(target),
            ("of" | "none" | "ofNonZeroValue", Some(target), _) => {
                matches!(&target.expr, Expr::Ident(name) if name == "optional")
            }
            _ => false,
        },
        Expr::Comprehension(_)
        | Expr::Ident(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Unspecified => false,
    }
}

/// What a variable is, and what every object has.
fn known_field(node: &IdedExpr) -> Option<&'static str> {
    match plain_path(node)?.as_slice() {
        ["version" | "fromVersion"] | ["object", "apiVersion" | "kind"] => Some("text"),
        ["object"] | ["object", "metadata"] => Some("a map"),
        ["object", "metadata", "name" | "namespace" | "uid" | "resourceVersion"] => Some("text"),
        ["object", "metadata", "labels" | "annotations"] => Some("a map"),
        ["object", "metadata", "generation"] => Some("a number"),
        _ => None,
    }
}

/// What a part is that cannot be a boolean, as far as that can be seen.
pub(super) fn kind(node: &IdedExpr) -> Option<&'static str> {
    if is_optional(node) {
        return Some("an optional value");
    }
    match &node.expr {
        Expr::Literal(LiteralValue::Boolean(_)) => None,
        Expr::Literal(LiteralValue::Bytes(_)) => Some("bytes"),
        Expr::Literal(LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_)) => Some("a number"),
        Expr::Literal(LiteralValue::Null) => Some("null"),
        Expr::Literal(LiteralValue::String(_)) => Some("text"),
        Expr::List(_) => Some("a list"),
        Expr::Map(_) | Expr::Struct(_) => Some("a map"),
        Expr::Call(call) => match call.func_name.as_str() {
            operators::ADD => Some("a sum"),
            operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO
            | operators::NEGATE
            | "size"
            | "int"
            | "uint"
            | "double"
            | "indexOf"
            | "lastIndexOf" => Some("a number"),
            "string" | "join" | "lowerAscii" | "upperAscii" | "replace" | "substring" | "trim" => Some("text"),
            "split" => Some("a list"),
            _ => None,
        },
        Expr::Ident(_) | Expr::Select(_) => known_field(node),
        Expr::Comprehension(_) | Expr::Unspecified => None,
    }
}

/// See [`super::Expression::optional_comparisons`].
pub(super) fn optional_comparisons(tree: &IdedExpr, offsets: &Offsets) -> Vec<Flaw> {
    let mut found = Vec::new();
    visit(tree, &mut |node| {
        let Expr::Call(call) = &node.expr else { return };
        let [left, right] = call.args.as_slice() else { return };
        let sides = [(left, right), (right, left)];
        let optional = sides.into_iter().find(|(one, other)| is_optional(one) && is_plain(other));
        if let (true, Some((optional, _))) = (COMPARISONS.contains(&call.func_name.as_str()), optional) {
            let message = "this is an optional value, which never equals one that is none".to_owned();
            found.push(Flaw { offset: offsets.at(optional), message, help: "end it with `.orValue(…)`" });
        }
    });
    found
}

const COMPARISONS: [&str; 6] = [
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::LESS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::GREATER_EQUALS,
];

/// Whether a part is surely no optional value.
fn is_plain(node: &IdedExpr) -> bool {
    let is_read =
        |path: Vec<&str>| path.first().is_some_and(|root| ["object", "version", "fromVersion"].contains(root));
    let is_truth = matches!(&node.expr, Expr::Literal(LiteralValue::Boolean(_)));
    !is_optional(node) && (is_truth || kind(node).is_some() || plain_path(node).is_some_and(is_read))
}

/// See [`super::Expression::bad_patterns`].
pub(super) fn bad_patterns(tree: &IdedExpr, offsets: &Offsets) -> Vec<Flaw> {
    let mut found = Vec::new();
    let mut large = 0;
    visit(tree, &mut |node| {
        let Expr::Call(call) = &node.expr else { return };
        let Some(argument @ IdedExpr { expr: Expr::Literal(LiteralValue::String(pattern)), .. }) = call.args.last()
        else {
            return;
        };
        let pattern = pattern.inner();
        if call.func_name != "matches" || large == MOST_LARGE {
            return;
        }
        let mut built = RegexBuilder::new(pattern).size_limit(SMALL_PATTERN).build();
        if let Err(regex::Error::CompiledTooBig(_)) = built {
            large += 1;
            // As it is evaluated.
            built = Regex::new(pattern);
        }
        let (message, help) = match built {
            Ok(_) => return,
            Err(regex::Error::CompiledTooBig(_)) => (
                format!("`{pattern}` is too large a regular expression"),
                "repeat less: a count multiplies what it repeats",
            ),
            Err(_) => {
                (format!("`{pattern}` is no regular expression"), "see https://docs.rs/regex/latest/regex/#syntax")
            }
        };
        found.push(Flaw { offset: offsets.at(argument), message, help });
    });
    found
}
