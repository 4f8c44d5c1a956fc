//! Fields of objects as they come from the API server.

use serde_json::{Map, Value};

/// Maps with no more fields than this are looked through rather than hashed.
const FEW: usize = 16;
/// So far ahead a field is looked for where its neighbour was found.
const AHEAD: usize = 8;

/// A field of a map: looked at one by one where that is less work than to hash the key.
pub(crate) fn field<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    if map.len() > FEW {
        return map.get(key);
    }
    map.iter().find_map(|(name, value)| (name == key).then_some(value))
}

/// Each entry of one map, with the field of that name in another: looked for where the
/// last one stood first, since both mostly have the same order.
pub(crate) fn beside<'a, 'b>(
    map: &'a Map<String, Value>,
    other: &'b Map<String, Value>,
) -> impl Iterator<Item = (&'a String, &'a Value, Option<&'b Value>)> {
    let mut next = other.iter();
    map.iter().map(move |(key, value)| {
        let mut ahead = next.clone().take(AHEAD);
        let found = ahead.position(|(name, _)| name == key).and_then(|at| next.nth(at)).map(|(_, found)| found);
        (key, value, found.or_else(|| field(other, key)))
    })
}

/// The field at a path.
pub(crate) fn at<'a>(map: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(field(map, first)?, |value, key| field(value.as_object()?, key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_one_map_are_found_in_another_whatever_their_order() {
        let names: Vec<String> = (0..40).map(|number| format!("k{number}")).collect();
        let one: Map<String, Value> = names.iter().map(|name| (name.clone(), json!(name))).collect();
        let orders: [Vec<&String>; 3] = [
            names.iter().collect(),
            names.iter().rev().collect(),
            names.iter().step_by(3).chain(names.iter().skip(1).step_by(3)).collect(),
        ];
        for order in orders {
            let other: Map<String, Value> = order.iter().map(|name| ((*name).clone(), json!(name))).collect();
            let found: Vec<(String, Option<Value>)> =
                beside(&one, &other).map(|(key, _, found)| (key.clone(), found.cloned())).collect();
            let expected: Vec<(String, Option<Value>)> =
                names.iter().map(|name| (name.clone(), other.get(name).cloned())).collect();
            assert_eq!(found, expected);
        }
    }
}
