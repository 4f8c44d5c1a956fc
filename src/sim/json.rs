//! Small tools for objects as JSON.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Virtual time zero: 2026-01-01T00:00:00Z.
const EPOCH_SECONDS: i64 = 1_767_225_600;

/// A moment of virtual time, in milliseconds, as Kubernetes writes it: to the
/// second.
pub(crate) fn time(millis: u64) -> String {
    let seconds = EPOCH_SECONDS + i64::try_from(millis / 1000).unwrap_or(0);
    Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default()
}

/// A moment of virtual time.
pub(crate) fn timestamp(millis: u64) -> Timestamp {
    let millis = EPOCH_SECONDS * 1000 + i64::try_from(millis).unwrap_or(0);
    Timestamp::from_millisecond(millis).unwrap_or_default()
}

/// The value at a path of keys.
pub(crate) fn at<'a>(object: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, key| value.get(*key))
}

/// The text at a path of keys; empty if there is none.
pub(crate) fn text<'a>(object: &'a Map<String, Value>, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or("")
}

/// The number at a path of keys.
pub(crate) fn integer(object: &Map<String, Value>, path: &[&str]) -> Option<i64> {
    at(object, path)?.as_i64()
}

/// Whether the value at a path of keys is true.
pub(crate) fn truth(object: &Map<String, Value>, path: &[&str]) -> bool {
    at(object, path).and_then(Value::as_bool).unwrap_or(false)
}

/// The map at a key, made if it is not there.
pub(crate) fn section<'a>(object: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = object.entry(key.to_owned()).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it was made a map above"),
    }
}

/// Sets the value at a path of keys, making maps on the way.
pub(crate) fn set(object: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => {
            object.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => set(section(object, first), rest, value),
    }
}

/// Takes the value at a path of keys away, and maps that become empty by it.
pub(crate) fn remove(object: &mut Map<String, Value>, path: &[String]) {
    match path {
        [] => {}
        [last] => {
            object.shift_remove(last);
        }
        [first, rest @ ..] => {
            let Some(Value::Object(child)) = object.get_mut(first) else { return };
            remove(child, rest);
            if child.is_empty() {
                object.shift_remove(first);
            }
        }
    }
}

/// JSON merge patch (RFC 7396).
pub(crate) fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.shift_remove(key);
            }
            Value::Object(inner) => {
                let child = section(target, key);
                merge(child, inner);
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A digest of any value: equal for equal values, keys in any order.
pub(crate) fn digest(value: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    feed(value, &mut hasher);
    format!("sha256:{:064x}", hasher.finish())
}

fn feed(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for key in keys {
                key.hash(hasher);
                if let Some(value) = map.get(key) {
                    feed(value, hasher);
                }
            }
            '}'.hash(hasher);
        }
        Value::Array(items) => {
            items.iter().for_each(|item| feed(item, hasher));
            ']'.hash(hasher);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string().hash(hasher),
    }
}

/// A Go duration of whole hours, minutes and seconds (or `ms`), in milliseconds.
pub(crate) fn duration(text: &str) -> Option<u64> {
    let mut total = 0u64;
    let mut digits = String::new();
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        if next.is_ascii_digit() {
            digits.push(next);
            continue;
        }
        let number: u64 = std::mem::take(&mut digits).parse().ok()?;
        let unit = match next {
            'h' => 3_600_000,
            'm' if rest.peek() == Some(&'s') => {
                rest.next();
                1
            }
            'm' => 60_000,
            's' => 1000,
            _ => return None,
        };
        total += number * unit;
    }
    digits.is_empty().then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        assert_eq!(duration("1h2m3s"), Some(3_723_000));
        assert_eq!(duration("250ms"), Some(250));
        assert_eq!(duration("ten"), None);
    }

    #[test]
    fn digests_do_not_depend_on_the_order_of_keys() {
        let left = serde_json::json!({"a": 1, "b": {"c": [1, 2]}});
        let right = serde_json::json!({"b": {"c": [1, 2]}, "a": 1});
        assert_eq!(digest(&left), digest(&right));
        assert_ne!(digest(&left), digest(&serde_json::json!({"a": 1, "b": {"c": [2, 1]}})));
    }
}
