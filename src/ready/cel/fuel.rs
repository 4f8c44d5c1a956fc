//! What an evaluation may spend.
//!
//! The evaluator has no budget of its own, so the tree is rewritten to pay as it
//! goes: every element put into a list or map, every result of a function or of
//! `+`, every range that is walked and every step of the walk passes through
//! [`CHARGE`], a function no source text can name. A value costs what it holds,
//! so that neither `x + x` nor `[x, x]` can double without end.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, operators};
use ::cel::common::types::{CelBytes, CelMap, CelOptional, CelString};
use ::cel::common::value::{CowVal, Val};
use ::cel::{ExecutionError, IdedExpr};

/// Name of the function that charges for its argument and returns it.
pub(super) const CHARGE: &str = "@charge";
/// Functions whose result can be longer than all they are given are replaced
/// by ones that charge before they make it.
pub(super) const REPLACED: [(&str, &str); 2] = [("replace", "@replace"), ("join", "@join")];

const VALUE_COST: u64 = 16;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static SPENT_OUT: Cell<bool> = const { Cell::new(false) };
    static ABANDONED: OnceCell<Arc<AtomicBool>> = const { OnceCell::new() };
}

/// Makes this thread stop paying, and thereby stop, once the flag is set.
pub(super) fn heed(abandoned: Arc<AtomicBool>) {
    ABANDONED.with(|cell| {
        // A thread is started once, so there is never a flag before this one.
        let _ = cell.set(abandoned);
    });
}

/// Runs `work` with so much fuel. `None` if it did not suffice, whatever came
/// out: an error of the budget may have been absorbed by `||`.
pub(super) fn spend<T>(fuel: u64, work: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(fuel);
    SPENT_OUT.set(false);
    let result = work();
    if SPENT_OUT.get() { None } else { Some(result) }
}

/// What `work` costs.
#[cfg(test)]
pub(super) fn cost(work: impl FnOnce()) -> u64 {
    let fuel = u64::MAX;
    spend(fuel, work).map_or(fuel, |()| fuel - LEFT.get())
}

/// Takes `cost` from what is left.
pub(super) fn pay(cost: u64) -> Result<(), ExecutionError> {
    let abandoned = ABANDONED.with(|cell| cell.get().is_some_and(|flag| flag.load(Ordering::Relaxed)));
    match LEFT.get().checked_sub(cost) {
        Some(left) if !abandoned => {
            LEFT.set(left);
            Ok(())
        }
        Some(_) | None => {
            LEFT.set(0);
            SPENT_OUT.set(true);
            Err(ExecutionError::function_error(CHARGE, "out of fuel"))
        }
    }
}

/// [`CHARGE`] as an overload.
pub(super) fn charge<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = arguments.pop().ok_or_else(ExecutionError::missing_argument_or_target)?;
    pay(size(value.as_ref(), LEFT.get()))?;
    Ok(value)
}

/// What `value` holds, counted no further than `limit`.
fn size(value: &dyn Val, limit: u64) -> u64 {
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        return VALUE_COST + text.inner().len() as u64;
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        return VALUE_COST + bytes.inner().len() as u64;
    }
    if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        return optional.option().map_or(VALUE_COST, |inner| VALUE_COST + size(inner, limit));
    }
    let mut total = VALUE_COST;
    if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        for (key, entry) in map.inner() {
            total += VALUE_COST + key_size(key) + size(entry.as_ref(), limit.saturating_sub(total));
            if total > limit {
                break;
            }
        }
    } else if let Some(list) = value.as_iterable() {
        let mut items = list.iter();
        while let Some(item) = items.next() {
            total += size(item, limit.saturating_sub(total));
            if total > limit {
                break;
            }
        }
    }
    total
}

fn key_size(key: &::cel::common::types::CelMapKey<'_>) -> u64 {
    match key {
        ::cel::common::types::CelMapKey::String(text) => text.inner().len() as u64,
        ::cel::common::types::CelMapKey::Bool(_)
        | ::cel::common::types::CelMapKey::Int(_)
        | ::cel::common::types::CelMapKey::UInt(_) => 0,
    }
}

/// Rewrites the tree so that it pays.
pub(super) fn meter(tree: IdedExpr) -> IdedExpr {
    let IdedExpr { id, expr } = tree;
    let expr = match expr {
        Expr::Call(call) => return meter_call(id, call),
        Expr::Comprehension(walk) => Expr::Comprehension(Box::new(meter_walk(*walk))),
        Expr::List(mut list) => {
            list.elements = list.elements.into_iter().map(|element| charged(meter(element))).collect();
            Expr::List(list)
        }
        Expr::Map(mut map) => {
            for entry in &mut map.entries {
                meter_entry(&mut entry.expr);
            }
            Expr::Map(map)
        }
        Expr::Struct(mut message) => {
            for entry in &mut message.entries {
                meter_entry(&mut entry.expr);
            }
            Expr::Struct(message)
        }
        Expr::Select(mut select) => {
            *select.operand = meter(std::mem::take(&mut *select.operand));
            Expr::Select(select)
        }
        expr @ (Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified) => expr,
    };
    IdedExpr { id, expr }
}

fn meter_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            entry.key = charged(meter(std::mem::take(&mut entry.key)));
            entry.value = charged(meter(std::mem::take(&mut entry.value)));
        }
        EntryExpr::StructField(field) => field.value = charged(meter(std::mem::take(&mut field.value))),
    }
}

fn meter_call(id: u64, call: CallExpr) -> IdedExpr {
    let is_operator = call.target.is_none() && !call.func_name.starts_with(|c: char| c.is_ascii_alphabetic());
    let makes = !is_operator || call.func_name == operators::ADD;
    let call = IdedExpr { id, expr: Expr::Call(meter_operands(call)) };
    if makes { charged(call) } else { call }
}

fn meter_operands(mut call: CallExpr) -> CallExpr {
    if let Some(target) = &mut call.target {
        **target = meter(std::mem::take(&mut **target));
        if let Some((_, own)) = REPLACED.iter().find(|(name, _)| *name == call.func_name) {
            call.func_name = (*own).to_owned();
        }
    }
    call.args = call.args.into_iter().map(meter).collect();
    call
}

/// A walk pays for its range, since each item is copied, and for each step. The
/// evaluator appends in place when it sees `accu + [x]` under a literal
/// condition: that shape is kept, its element pays.
fn meter_walk(mut walk: ComprehensionExpr) -> ComprehensionExpr {
    walk.iter_range = charged(meter(walk.iter_range));
    walk.accu_init = meter(walk.accu_init);
    walk.result = meter(walk.result);
    if !matches!(walk.loop_cond.expr, Expr::Literal(_)) {
        walk.loop_cond = charged(meter(walk.loop_cond));
    }
    walk.loop_step = meter_step(walk.loop_step, &walk.accu_var);
    walk
}

fn meter_step(step: IdedExpr, accu: &str) -> IdedExpr {
    let IdedExpr { id, expr } = step;
    match expr {
        Expr::Call(mut call) if call.func_name == operators::CONDITIONAL && call.args.len() == 3 => {
            let mut args = call.args.into_iter();
            let condition = args.next().map(|condition| charged(meter(condition)));
            call.args = condition.into_iter().chain(args.map(|branch| meter_step(branch, accu))).collect();
            IdedExpr { id, expr: Expr::Call(call) }
        }
        Expr::Call(call) if appends(&call, accu) => IdedExpr { id, expr: Expr::Call(meter_operands(call)) },
        expr @ Expr::Ident(_) => IdedExpr { id, expr },
        // `accu || x` and `accu && x`: the loop condition has paid for the step,
        // and the evaluator absorbs errors only in this very shape.
        expr => meter(IdedExpr { id, expr }),
    }
}

fn appends(call: &CallExpr, accu: &str) -> bool {
    call.func_name == operators::ADD
        && matches!(call.args.as_slice(), [IdedExpr { expr: Expr::Ident(name), .. }, IdedExpr { expr: Expr::List(_), .. }] if name == accu)
}

fn charged(expr: IdedExpr) -> IdedExpr {
    match expr.expr {
        // Literals and plain names in operand position hold nothing new.
        Expr::Literal(_) => expr,
        Expr::Ident(_)
        | Expr::Call(_)
        | Expr::Comprehension(_)
        | Expr::List(_)
        | Expr::Map(_)
        | Expr::Select(_)
        | Expr::Struct(_)
        | Expr::Unspecified => IdedExpr {
            id: expr.id,
            expr: Expr::Call(CallExpr { func_name: CHARGE.to_owned(), target: None, args: vec![expr] }),
        },
    }
}
