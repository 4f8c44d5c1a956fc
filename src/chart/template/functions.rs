//! Functions of templates that do nothing but compute.

use serde_json::Value;

use super::expression::{Scope, Thing};
use crate::package::yaml::write::write;

/// Integers from here on are written with an exponent, which nobody reads back.
const PLAIN: i64 = 1_000_000;
/// Longest text that a function makes.
const LONGEST: usize = 1 << 20;

/// Calls a function. Functions that are not here have an unknown value.
pub fn call(name: &str, arguments: &[Thing], scope: &mut dyn Scope) -> Thing {
    match (name, arguments) {
        ("include" | "template", [Thing::Known(Value::String(name)), dot]) => scope.include(name, dot.clone()),
        ("include" | "template", [Thing::Known(Value::String(name))]) => scope.include(name, Thing::Known(Value::Null)),
        ("and", [_, ..]) => all(arguments),
        ("or", [_, ..]) => any(arguments),
        ("not", [thing]) => of_truth(thing.truth().map(|truth| !truth)),
        ("empty", [thing]) => of_truth(thing.truth().map(|truth| !truth)),
        ("eq", [first, others @ ..]) if !others.is_empty() => equal(first, others),
        ("ne", [first, other]) => match equal(first, std::slice::from_ref(other)) {
            Thing::Known(Value::Bool(equal)) => of_truth(Some(!equal)),
            _ => Thing::Unknown,
        },
        ("default", [default, given]) => match given.truth() {
            Some(true) => given.clone(),
            Some(false) => default.clone(),
            None => Thing::Unknown,
        },
        ("coalesce", things) => coalesce(things),
        ("ternary", [yes, no, condition]) => match condition.truth() {
            Some(true) => yes.clone(),
            Some(false) => no.clone(),
            None => Thing::Unknown,
        },
        ("required", [_, value]) if value.truth() == Some(true) => value.clone(),
        ("tpl", [Thing::Known(Value::String(text)), _]) if !text.contains("{{") => Thing::text(text.as_str()),
        ("hasKey", [Thing::Known(Value::Object(map)), Thing::Known(Value::String(key))]) => {
            of_truth(Some(map.contains_key(key)))
        }
        ("toYaml", [Thing::Known(value)]) => to_yaml(value).map_or(Thing::Unknown, Thing::text),
        _ => of_texts(name, arguments).unwrap_or(Thing::Unknown),
    }
}

fn of_truth(truth: Option<bool>) -> Thing {
    truth.map_or(Thing::Unknown, |truth| Thing::Known(truth.into()))
}

/// The first that is false, else the last. Of what is not known only the truth
/// of the whole may follow.
fn all(things: &[Thing]) -> Thing {
    let is_false = |thing: &&Thing| thing.truth() == Some(false);
    match things.iter().find(|thing| thing.truth() != Some(true)) {
        None => things.last().cloned().unwrap_or(Thing::Unknown),
        Some(first) if is_false(&first) => first.clone(),
        Some(_) if things.iter().any(|thing| is_false(&thing)) => of_truth(Some(false)),
        Some(_) => Thing::Unknown,
    }
}

/// The first that is true, else the last.
fn any(things: &[Thing]) -> Thing {
    match things.iter().find(|thing| thing.truth() != Some(false)) {
        None => things.last().cloned().unwrap_or(Thing::Unknown),
        Some(first) if first.truth() == Some(true) => first.clone(),
        Some(_) if things.contains(&Thing::Known(true.into())) => of_truth(Some(true)),
        Some(_) => Thing::Unknown,
    }
}

/// Whether the first is one of the others. Numbers have types in templates that
/// are not known here.
fn equal(first: &Thing, others: &[Thing]) -> Thing {
    let is_equal = |other: &Thing| match (first, other) {
        (Thing::Known(a @ Value::String(_)), Thing::Known(b @ Value::String(_)))
        | (Thing::Known(a @ Value::Bool(_)), Thing::Known(b @ Value::Bool(_))) => Some(a == b),
        _ => None,
    };
    let compared: Option<Vec<bool>> = others.iter().map(is_equal).collect();
    of_truth(compared.map(|compared| compared.contains(&true)))
}

fn coalesce(things: &[Thing]) -> Thing {
    match things.iter().find(|thing| thing.truth() != Some(false)) {
        Some(first) if first.truth() == Some(true) => first.clone(),
        Some(_) => Thing::Unknown,
        None => Thing::Known(Value::Null),
    }
}

/// Functions of texts; `None` where an argument is none, or is not known.
fn of_texts(name: &str, arguments: &[Thing]) -> Option<Thing> {
    let mut values = Vec::new();
    for argument in arguments {
        let Thing::Known(value) = argument else { return None };
        values.push(value);
    }
    let made = match (name, values.as_slice()) {
        ("printf", [Value::String(format), values @ ..]) => printf(format, values)?,
        ("quote", [Value::Null]) | ("squote", [Value::Null]) => String::new(),
        ("quote", [value]) => show(value).filter(|text| is_plain(text)).map(|text| format!("\"{text}\""))?,
        ("squote", [value]) => show(value).filter(|text| is_plain(text)).map(|text| format!("'{text}'"))?,
        ("toString", [value]) => show(value)?,
        ("lower", [Value::String(text)]) => text.to_lowercase(),
        ("upper", [Value::String(text)]) => text.to_uppercase(),
        ("trim", [Value::String(text)]) => text.trim().to_owned(),
        ("trunc", [Value::Number(length), Value::String(text)]) => {
            text.get(..usize::try_from(length.as_i64()?).ok()?.min(text.len()))?.to_owned()
        }
        ("trimSuffix", [Value::String(end), Value::String(text)]) => text.strip_suffix(end).unwrap_or(text).to_owned(),
        ("trimPrefix", [Value::String(start), Value::String(text)]) => {
            text.strip_prefix(start).unwrap_or(text).to_owned()
        }
        ("replace", [Value::String(old), Value::String(new), Value::String(text)]) if !old.is_empty() => {
            text.replace(old, new)
        }
        ("indent", [Value::Number(by), Value::String(text)]) => indent(by.as_i64()?, text)?,
        ("nindent", [Value::Number(by), Value::String(text)]) => format!("\n{}", indent(by.as_i64()?, text)?),
        ("contains", [Value::String(part), Value::String(text)]) => return Some(of_truth(Some(text.contains(part)))),
        ("hasPrefix", [Value::String(start), Value::String(text)]) => {
            return Some(of_truth(Some(text.starts_with(start))));
        }
        ("hasSuffix", [Value::String(end), Value::String(text)]) => return Some(of_truth(Some(text.ends_with(end)))),
        _ => return None,
    };
    Some(Thing::text(made))
}

fn indent(by: i64, text: &str) -> Option<String> {
    let pad = " ".repeat(usize::try_from(by).ok().filter(|by| *by <= 80)?);
    let made = format!("{pad}{}", text.replace('\n', &format!("\n{pad}")));
    (made.len() <= LONGEST).then_some(made)
}

/// `%s` of texts, `%d` of integers, `%v` of both.
fn printf(format: &str, values: &[&Value]) -> Option<String> {
    let mut made = String::new();
    let mut values = values.iter();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            made.push(letter);
            continue;
        }
        match (letters.next()?, values.as_slice().first()) {
            ('%', _) => {
                made.push('%');
                continue;
            }
            ('s' | 'v', Some(Value::String(text))) => made.push_str(text),
            ('d' | 'v', Some(value @ Value::Number(_))) => made.push_str(&show(value)?),
            _ => return None,
        }
        values.next();
    }
    (values.as_slice().is_empty() && made.len() <= LONGEST).then_some(made)
}

/// Text in which nothing has to be escaped.
fn is_plain(text: &str) -> bool {
    !text.contains(['"', '\'', '\\']) && !text.contains(char::is_control)
}

/// How a template writes a value, where that is certain.
pub fn show(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => number.as_i64().filter(|number| number.abs() < PLAIN).map(|number| number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn to_yaml(value: &Value) -> Option<String> {
    let written = write(std::slice::from_ref(value)).ok()?;
    Some(written.strip_prefix("---\n")?.trim_end_matches('\n').to_owned())
}
