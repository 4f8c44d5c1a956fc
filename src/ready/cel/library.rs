//! What an expression can call: the standard library, and what Flux adds to
//! it (fluxcd/pkg `runtime/cel`: optional types, strings, sets, encoders).

use std::sync::{Arc, LazyLock};

use ::cel::common::types::{CelBool, CelInt, CelString, DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{Context, DeclarationError, Env, ExecutionError, IdedExpr, Value, extensions};

use super::fuel;

/// Functions by the names that call them; methods as well.
pub(super) const FUNCTIONS: &[&str] = &[
    "base64.decode",
    "base64.encode",
    "bool",
    "bytes",
    "charAt",
    "contains",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "indexOf",
    "int",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "matches",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "replace",
    "reverse",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "size",
    "split",
    "startsWith",
    "string",
    "strings.quote",
    "substring",
    "timestamp",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "value",
];

/// Names an expression may use without their being variables.
pub(super) const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "google",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// What a value came to.
pub(super) enum Answer {
    Bool(bool),
    Other { kind: String },
}

static ENVIRONMENT: LazyLock<Result<Arc<Env>, DeclarationError>> = LazyLock::new(|| build().map(Arc::new));

/// The one environment of all expressions.
///
/// # Errors
/// When two of the functions above conflict: always or never.
pub(super) fn environment() -> Result<Arc<Env>, String> {
    ENVIRONMENT.as_ref().map(Arc::clone).map_err(ToString::to_string)
}

fn build() -> Result<Env, DeclarationError> {
    let mut env = Env::stdlib();
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::encoders)?;
    let two_lists = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "list_sets_contains_list", two_lists(), |args| sets(&args, contains))?;
    env.add_overload("sets.equivalent", "list_sets_equivalent_list", two_lists(), |args| {
        sets(&args, |left, right| contains(left, right) && contains(right, left))
    })?;
    env.add_overload("sets.intersects", "list_sets_intersects_list", two_lists(), |args| sets(&args, intersects))?;
    env.add_overload(fuel::CHARGE, "charge_dyn", vec![DYN_TYPE], fuel::charge)?;
    env.add_member_overload("@replace", "bounded_replace", STRING_TYPE, vec![STRING_TYPE, STRING_TYPE], replace)?;
    let counted = vec![STRING_TYPE, STRING_TYPE, INT_TYPE];
    env.add_member_overload("@replace", "bounded_replace_count", STRING_TYPE, counted, replace)?;
    env.add_member_overload("@join", "bounded_join", LIST_TYPE, vec![], join)?;
    env.add_member_overload("@join", "bounded_join_separator", LIST_TYPE, vec![STRING_TYPE], join)?;
    Ok(env)
}

/// Evaluates a metered tree.
pub(super) fn resolve(tree: &IdedExpr, variables: Vec<(String, Box<dyn Val>)>) -> Result<Answer, ExecutionError> {
    let environment = environment().map_err(ExecutionError::InternalError)?;
    let mut context = Context::with_env(environment);
    for (name, value) in variables {
        context.add_variable_as_val(name, value);
    }
    let value = Value::resolve_val(tree, &context)?;
    Ok(match value.downcast_ref::<CelBool>() {
        Some(answer) => Answer::Bool(*answer.inner()),
        None => Answer::Other { kind: value.get_type().name().to_owned() },
    })
}

fn sets<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    test: impl Fn(&[&dyn Val], &[&dyn Val]) -> bool,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [left, right] = arguments else {
        return Err(ExecutionError::invalid_argument_count(2, arguments.len()));
    };
    let (left, right) = (items(left.as_ref())?, items(right.as_ref())?);
    // Every member of one is compared with every member of the other.
    fuel::pay((left.len() as u64).saturating_mul(right.len() as u64))?;
    Ok(CowVal::owned(CelBool::from(test(&left, &right))))
}

fn items<'a>(list: &'a dyn Val) -> Result<Vec<&'a dyn Val>, ExecutionError> {
    let iterable = list.as_iterable().ok_or_else(|| unexpected(list, "list"))?;
    let mut iterator = iterable.iter();
    let mut items: Vec<&'a dyn Val> = Vec::new();
    while let Some(item) = iterator.next() {
        items.push(item);
    }
    Ok(items)
}

fn contains(set: &[&dyn Val], members: &[&dyn Val]) -> bool {
    members.iter().all(|member| set.iter().any(|item| item.equals(*member)))
}

fn intersects(left: &[&dyn Val], right: &[&dyn Val]) -> bool {
    left.iter().any(|item| right.iter().any(|other| item.equals(*other)))
}

fn unexpected(value: &dyn Val, want: &str) -> ExecutionError {
    ExecutionError::UnexpectedType { got: value.get_type().name().to_owned(), want: want.to_owned() }
}

fn text(value: &dyn Val) -> Result<&str, ExecutionError> {
    value.downcast_ref::<CelString<'_>>().map(CelString::inner).ok_or_else(|| unexpected(value, "string"))
}

/// `replace` of the strings extension; a negative count means all.
fn replace<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (subject, from, to, count) = match arguments.as_slice() {
        [subject, from, to] => (subject, from, to, -1),
        [subject, from, to, count] => {
            let count = count.downcast_ref::<CelInt>().ok_or_else(|| unexpected(count.as_ref(), "int"))?;
            (subject, from, to, *count.inner())
        }
        other => return Err(ExecutionError::invalid_argument_count(3, other.len())),
    };
    let (subject, from, to) = (text(subject.as_ref())?, text(from.as_ref())?, text(to.as_ref())?);
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let occurrences = subject.matches(from).take(limit).count();
    fuel::pay((subject.len() as u64).saturating_add((occurrences as u64).saturating_mul(to.len() as u64)))?;
    Ok(CowVal::owned(CelString::from(subject.replacen(from, to, limit))))
}

/// `join` of the strings extension.
fn join<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (list, separator) = match arguments.as_slice() {
        [list] => (list, ""),
        [list, separator] => (list, text(separator.as_ref())?),
        other => return Err(ExecutionError::invalid_argument_count(1, other.len())),
    };
    let parts = items(list.as_ref())?.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let length: u64 = parts.iter().map(|part| (part.len() + separator.len()) as u64).sum();
    fuel::pay(length)?;
    Ok(CowVal::owned(CelString::from(parts.join(separator))))
}
