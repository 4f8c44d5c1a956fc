//! Objects however deep: what is nested too deeply is left out, so that one object
//! never keeps a list or a watch from being read. The API server takes 10,000
//! levels, and the parser none below 128 of a whole list.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

#[cfg(doc)]
use crate::package::yaml;

/// Deepest level of an object that is read. A Package may have values of
/// [`yaml::MAX_DEPTH`] levels, and what is made of
/// them has a few more.
const MAX_DEPTH: usize = 100;

/// What stands in the place of what was left out: nothing that is wanted equals it.
const LEFT_OUT: &str = "nested too deeply to be read";

/// An object, and whether anything was left out.
pub struct Shallow {
    /// The object.
    pub object: Map<String, Value>,
    /// Whether it is not whole.
    pub is_cut: bool,
}

impl<'de> serde::Deserialize<'de> for Shallow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut is_cut = false;
        match (Level { left: MAX_DEPTH, is_cut: &mut is_cut }).deserialize(deserializer)? {
            Value::Object(object) => Ok(Self { object, is_cut }),
            _ => Err(D::Error::custom("this is no object")),
        }
    }
}

/// One value, and how many levels it may have.
struct Level<'a> {
    left: usize,
    is_cut: &'a mut bool,
}

impl Level<'_> {
    fn below(&mut self) -> Option<Level<'_>> {
        let left = self.left.checked_sub(1)?;
        Some(Level { left, is_cut: self.is_cut })
    }

    fn cut(self) -> Value {
        *self.is_cut = true;
        LEFT_OUT.into()
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(below) = self.below() {
            match items.next_element_seed(below)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
        // The parser skips without going down itself.
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.cut())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(below) = self.below() {
            let Some(key) = entries.next_key()? else { return Ok(Value::Object(map)) };
            map.insert(key, entries.next_value_seed(below)?);
        }
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.cut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
    }

    fn read(text: &str) -> Shallow {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_object_is_read_as_it_is() {
        let text = r#"{"n":null,"b":true,"i":-3,"u":18446744073709551615,"f":1.5,"s":"é","l":[1,{"m":{}},[]]}"#;
        let shallow = read(text);
        assert!(!shallow.is_cut);
        assert_eq!(serde_json::to_string(&shallow.object).unwrap(), text);
        assert!(!read(&nested(MAX_DEPTH)).is_cut);
    }

    #[test]
    fn what_is_nested_too_deeply_is_left_out_and_the_rest_is_read() {
        for (open, close) in [("{\"a\":", "}"), ("[", "]")] {
            let deep = format!("{}1{}", open.repeat(9_000), close.repeat(9_000));
            let shallow = read(&format!(r#"{{"before":1,"deep":{deep},"after":2}}"#));
            assert!(shallow.is_cut);
            assert_eq!((&shallow.object["before"], &shallow.object["after"]), (&1.into(), &2.into()));
            let text = serde_json::to_string(&shallow.object).unwrap();
            assert!(text.contains(LEFT_OUT) && serde_json::from_str::<Value>(&text).is_ok());
        }
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        assert!(serde_json::from_str::<Shallow>("[]").is_err());
    }
}
