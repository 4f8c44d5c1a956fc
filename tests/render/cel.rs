//! Expressions evaluated as Flux does.

use std::sync::Arc;

use cel::objects::{Key, Map as CelMap};
use cel::{Context, Env, Value as Cel};
use serde_json::Value;

/// Integers as Flux hands them to CEL: signed.
fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => number.as_i64().map_or_else(|| Cel::Float(number.as_f64().unwrap()), Cel::Int),
        Value::String(text) => Cel::String(text.clone().into()),
        Value::Array(items) => Cel::List(items.iter().map(to_cel).collect::<Vec<_>>().into()),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (Key::from(key.clone()), to_cel(value)));
            Cel::Map(CelMap { map: Arc::new(entries.collect()) })
        }
    }
}

/// The verdict of an expression over `dep`.
pub fn evaluate(expr: &str, dep: &Value) -> Result<bool, String> {
    let env = Arc::new(Env::stdlib());
    let program = env.compile(expr).map_err(|error| error.to_string())?;
    let mut context = Context::with_env(env);
    context.add_variable_from_value("dep", to_cel(dep));
    match program.execute(&context) {
        Ok(Cel::Bool(value)) => Ok(value),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}
