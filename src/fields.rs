//! Fields of objects as they come from the API server.

use serde_json::{Map, Value};

/// A field of a map: looked at one by one where that is less work than to hash the key.
pub(crate) fn field<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    const FEW: usize = 16;
    if map.len() > FEW {
        return map.get(key);
    }
    map.iter().find_map(|(name, value)| (name == key).then_some(value))
}

/// The field at a path.
pub(crate) fn at<'a>(map: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(field(map, first)?, |value, key| field(value.as_object()?, key))
}
