//! Helm's `--set`: a value at a path of keys and indices, its type guessed.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Map, Value};

/// Largest index, so that a slip is no list of a million nulls.
const MAX_INDEX: usize = 1024;
/// Deepest path that Helm takes.
const MAX_STEPS: usize = 30;

/// What is set at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Assigned {
    /// One value, or with `{a,b}` a list of them, of guessed types.
    Guessed(String),
    /// The same, but always text.
    Text(String),
    /// A list, each item of a guessed type.
    List(Vec<String>),
    /// A list, each item text.
    TextList(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// Sets a value as `helm --set NAME=VALUE` does.
///
/// # Errors
/// Says what Helm would not take, or takes in a way that is not known here.
pub(super) fn assign(values: &mut Map<String, Value>, name: &str, assigned: &Assigned) -> Result<(), String> {
    let path = path(name)?;
    let value = match assigned {
        Assigned::Guessed(text) => written(text, guessed)?,
        Assigned::Text(text) => written(text, Value::String)?,
        Assigned::List(items) => items.iter().map(|item| guessed(unescaped(item))).collect(),
        Assigned::TextList(items) => items.iter().map(|item| Value::String(unescaped(item))).collect(),
    };
    let mut root = Value::Object(std::mem::take(values));
    let put = put(&mut root, &path, value);
    if let Value::Object(fields) = root {
        *values = fields;
    }
    put
}

/// `a.b[0].c` in steps; a backslash takes the character behind it literally.
fn path(name: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = name.chars().peekable();
    loop {
        let (key, mut end) = until(&mut rest, &['=', '[', ',', '.']);
        if key.is_empty() {
            return Err("a key of its name is empty".to_owned());
        }
        steps.push(Step::Key(key));
        while end == Some('[') {
            let (digits, close) = until(&mut rest, &[']']);
            let index = digits.parse().ok().filter(|index| *index <= MAX_INDEX && close.is_some());
            steps.push(Step::Index(index.ok_or("an index of its name is no small number")?));
            end = rest.next();
        }
        match end {
            None => break,
            Some('.') => {}
            Some(other) => return Err(format!("there is a `{other}` in its name")),
        }
    }
    if steps.len() > MAX_STEPS { Err("its name is too deep".to_owned()) } else { Ok(steps) }
}

/// What stands before one of the stops, and which one it was.
fn until(rest: &mut Peekable<Chars<'_>>, stops: &[char]) -> (String, Option<char>) {
    let mut text = String::new();
    while let Some(c) = rest.next() {
        match c {
            stop if stops.contains(&stop) => return (text, Some(stop)),
            '\\' => text.extend(rest.next()),
            other => text.push(other),
        }
    }
    (text, None)
}

/// A value as it stands behind `=`: `{a,b}` is a list.
fn written(text: &str, typed: fn(String) -> Value) -> Result<Value, String> {
    let Some(inner) = text.strip_prefix('{') else { return Ok(typed(unescaped(text))) };
    let mut rest = inner.chars().peekable();
    let mut items = Vec::new();
    loop {
        let (item, stop) = until(&mut rest, &[',', '}']);
        items.push(typed(item));
        match stop {
            Some(',') => {}
            Some(_) if rest.peek().is_none() => return Ok(Value::Array(items)),
            Some(_) => return Err("something follows the list that is its value".to_owned()),
            None => return Err("the list that is its value is not closed".to_owned()),
        }
    }
}

fn unescaped(text: &str) -> String {
    until(&mut text.chars().peekable(), &[]).0
}

fn guessed(text: String) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        "0" => Value::from(0),
        _ if text.starts_with('0') => Value::String(text),
        _ => text.parse::<i64>().map_or(Value::String(text), Value::from),
    }
}

fn put(place: &mut Value, path: &[Step], value: Value) -> Result<(), String> {
    let Some((step, rest)) = path.split_first() else {
        *place = value;
        return Ok(());
    };
    match step {
        Step::Key(key) => {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            let fields = place.as_object_mut().ok_or_else(|| format!("`{key}` is set in what is no map"))?;
            put(fields.entry(key.clone()).or_insert(Value::Null), rest, value)
        }
        Step::Index(index) => {
            if place.is_null() {
                *place = Value::Array(Vec::new());
            }
            let items = place.as_array_mut().ok_or_else(|| format!("[{index}] is set in what is no list"))?;
            if items.len() <= *index {
                items.resize(index + 1, Value::Null);
            }
            items.get_mut(*index).map_or(Ok(()), |item| put(item, rest, value))
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn set(name: &str, assigned: Assigned) -> Result<Value, String> {
        let mut values = Map::new();
        assign(&mut values, name, &assigned).map(|()| Value::Object(values))
    }

    #[rstest]
    #[case::text("a", "x", json!({"a": "x"}))]
    #[case::nested("a.b", "x", json!({"a": {"b": "x"}}))]
    #[case::dot_in_a_key(r"a\.b/c.d", "x", json!({"a.b/c": {"d": "x"}}))]
    #[case::index("a[1].b", "x", json!({"a": [null, {"b": "x"}]}))]
    #[case::index_of_index("a[0][1]", "x", json!({"a": [[null, "x"]]}))]
    #[case::number("a", "8080", json!({"a": 8080}))]
    #[case::zero("a", "0", json!({"a": 0}))]
    #[case::leading_zero("a", "0644", json!({"a": "0644"}))]
    #[case::fraction("a", "1.5", json!({"a": "1.5"}))]
    #[case::boolean("a", "True", json!({"a": true}))]
    #[case::null("a", "null", json!({"a": null}))]
    #[case::empty("a", "", json!({"a": ""}))]
    #[case::list("a", "{1,b\\,c}", json!({"a": [1, "b,c"]}))]
    #[case::list_of_nothing("a", "{}", json!({"a": [""]}))]
    #[case::escaped_brace("a", r"\{x\}", json!({"a": "{x}"}))]
    #[case::equals_sign("a", "b=c", json!({"a": "b=c"}))]
    fn a_value_is_set_as_helm_sets_it(#[case] name: &str, #[case] value: &str, #[case] wanted: Value) {
        assert_eq!(set(name, Assigned::Guessed(value.to_owned())), Ok(wanted));
    }

    #[rstest]
    #[case::text(Assigned::Text("8080".into()), json!({"a": "8080"}))]
    #[case::text_list(Assigned::Text("{1,true}".into()), json!({"a": ["1", "true"]}))]
    #[case::list(Assigned::List(vec!["1".into(), r"a\{".into()]), json!({"a": [1, "a{"]}))]
    #[case::list_of_text(Assigned::TextList(vec!["1".into()]), json!({"a": ["1"]}))]
    fn types_are_guessed_only_where_helm_does(#[case] assigned: Assigned, #[case] wanted: Value) {
        assert_eq!(set("a", assigned), Ok(wanted));
    }

    #[rstest]
    #[case::empty_key("a..b", "x", "a key of its name is empty")]
    #[case::two_values("a,b", "x", "there is a `,` in its name")]
    #[case::index("a[x]", "x", "an index of its name is no small number")]
    #[case::large_index("a[999999]", "x", "an index of its name is no small number")]
    #[case::open_index("a[1", "x", "an index of its name is no small number")]
    #[case::behind_an_index("a[1]b", "x", "there is a `b` in its name")]
    #[case::open_list("a", "{b", "the list that is its value is not closed")]
    #[case::behind_a_list("a", "{b},c=d", "something follows the list that is its value")]
    fn what_helm_would_not_take_is_refused(#[case] name: &str, #[case] value: &str, #[case] why: &str) {
        assert_eq!(set(name, Assigned::Guessed(value.to_owned())), Err(why.to_owned()));
    }

    #[rstest]
    #[case::beside("a.c", Ok(json!({"a": {"b": 1, "c": "x"}, "l": [1]})))]
    #[case::instead("a", Ok(json!({"a": "x", "l": [1]})))]
    #[case::in_a_number("a.b.c", Err("`c` is set in what is no map".to_owned()))]
    #[case::in_a_map("a[0]", Err("[0] is set in what is no list".to_owned()))]
    #[case::in_a_list("l[1]", Ok(json!({"a": {"b": 1}, "l": [1, "x"]})))]
    fn a_value_is_set_among_others(#[case] name: &str, #[case] wanted: Result<Value, String>) {
        let mut values = json!({"a": {"b": 1}, "l": [1]}).as_object().unwrap().clone();
        let found = assign(&mut values, name, &Assigned::Guessed("x".into()));
        assert_eq!(found.map(|()| Value::Object(values)), wanted);
    }
}
