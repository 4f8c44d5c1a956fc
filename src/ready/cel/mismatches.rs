//! Operands that do not go together, whatever the object says.

use ::cel::IdedExpr;
use ::cel::common::ast::{Expr, LiteralValue, operators};

use super::flaws::{Flaw, kind};
use super::syntax::{Offsets, plain_path};

const TRUTH: &str = "true or false";

/// See [`super::Expression::mismatches`].
pub(super) fn mismatches(tree: &IdedExpr, offsets: &Offsets) -> Vec<Flaw> {
    let mut found = Vec::new();
    operations(tree, &mut |function, left, right, node| {
        let Some(message) = mismatch(function, left, right) else { return };
        found.push(Flaw {
            offset: offsets.at(node), message, help: "turn one into the other: `string(…)`, `int(…)`"
        });
    });
    found
}

/// See [`super::Expression::ordered_as_text`].
pub(super) fn ordered_as_text(tree: &IdedExpr, offsets: &Offsets) -> Vec<Flaw> {
    let mut found = Vec::new();
    operations(tree, &mut |function, left, right, node| {
        if let (true, Some(version)) = (is_order(function), version(left).or_else(|| version(right))) {
            let message = format!("`{version}` is text, and compared as such: \"9.0.0\" is more than \"10.0.0\"");
            found.push(Flaw { offset: offsets.at(node), message, help: "compare with `==`, or with a prefix" });
        }
    });
    found
}

/// Calls `see` for every operation with two operands outside of `all`, `map` and the
/// like, which have variables of their own.
fn operations<'t>(node: &'t IdedExpr, see: &mut impl FnMut(&str, &'t IdedExpr, &'t IdedExpr, &'t IdedExpr)) {
    if let Expr::Call(call) = &node.expr
        && let (None, [left, right]) = (&call.target, call.args.as_slice())
    {
        see(&call.func_name, left, right, node);
    }
    match &node.expr {
        Expr::Comprehension(walk) => operations(&walk.iter_range, see),
        _ => super::syntax::children(node).into_iter().for_each(|child| operations(child, see)),
    }
}

fn mismatch(function: &str, left: &IdedExpr, right: &IdedExpr) -> Option<String> {
    let (left, right) = (operand(left), operand(right));
    match function {
        operators::ADD => {
            let sums = |kind: &str| ["text", "a number", "a list", "bytes"].contains(&kind);
            let never = left.into_iter().chain(right).find(|kind| !sums(kind));
            if let Some(kind) = never {
                return Some(format!("{kind} cannot be added to anything"));
            }
            let (left, right) = left.zip(right).filter(|(left, right)| left != right)?;
            Some(format!("{left} and {right} cannot be added"))
        }
        operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO => {
            let kind = left.into_iter().chain(right).find(|kind| *kind != "a number")?;
            Some(format!("{kind} cannot be calculated with"))
        }
        _ if is_order(function) => {
            let ordered = |kind: &str| ["text", "a number", "bytes", TRUTH].contains(&kind);
            if let Some(kind) = left.into_iter().chain(right).find(|kind| !ordered(kind)) {
                return Some(format!("{kind} is neither more nor less than anything"));
            }
            let (left, right) = left.zip(right).filter(|(left, right)| left != right)?;
            Some(format!("{left} is neither more nor less than {right}"))
        }
        _ => None,
    }
}

fn is_order(function: &str) -> bool {
    [operators::LESS, operators::LESS_EQUALS, operators::GREATER, operators::GREATER_EQUALS].contains(&function)
}

/// What an operand is, as far as that can be seen.
fn operand(node: &IdedExpr) -> Option<&'static str> {
    match &node.expr {
        Expr::Literal(LiteralValue::Boolean(_)) => Some(TRUTH),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::ADD, [left, right]) => operand(left).or_else(|| operand(right)),
            // Of times and lengths of time a difference is one of them.
            (operators::SUBSTRACT, [left, right]) => operand(left).or_else(|| operand(right)),
            (operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT | operators::EQUALS, _) => {
                Some(TRUTH)
            }
            _ => kind(node),
        },
        _ => kind(node),
    }
}

/// The variable, if a part is nothing but the wanted or the former version.
fn version(node: &IdedExpr) -> Option<&str> {
    match plain_path(node)?.as_slice() {
        [name @ ("version" | "fromVersion")] => Some(name),
        _ => None,
    }
}
