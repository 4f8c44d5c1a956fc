//! Values that know where they stand in the text.

use serde_json::{Map, Number, Value};

use crate::package::pointer::unescape;
use crate::package::source::Span;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub content: Content,
    /// Where it stands; for a value that came through an alias or a merge,
    /// where the anchor stands.
    pub span: Span,
    /// Whether it is a scalar without quotes and without a tag, so that readers
    /// guess its type.
    pub plain: bool,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number. Integers beyond 64 bits unsigned are floats, as in Go.
    Number(Number),
    /// Text.
    Text(String),
    /// A list.
    Sequence(Vec<Node>),
    /// A map, in the order of the text.
    Mapping(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key as text: `true` for a plain `on`.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// Whether the key is plain, so that readers guess its type.
    pub key_plain: bool,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The value without places.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::Sequence(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Content::Mapping(entries) => {
                let entries = entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// The value without places, of a node that is not needed any more.
    pub fn into_value(self) -> Value {
        match self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(value),
            Content::Number(number) => Value::Number(number),
            Content::Text(text) => Value::String(text),
            Content::Sequence(items) => Value::Array(items.into_iter().map(Self::into_value).collect()),
            Content::Mapping(entries) => {
                let entries = entries.into_iter().map(|entry| (entry.key, entry.value.into_value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// The entries, if this is a map.
    pub fn entries(&self) -> Option<&[Entry]> {
        if let Content::Mapping(entries) = &self.content { Some(entries) } else { None }
    }

    /// The items, if this is a list.
    pub fn items(&self) -> Option<&[Self]> {
        if let Content::Sequence(items) = &self.content { Some(items) } else { None }
    }

    /// The entry of a key, if this is a map that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries()?.iter().find(|entry| entry.key == key)
    }

    /// The value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        if let Content::Text(text) = &self.content { Some(text) } else { None }
    }

    /// What kind of value this is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.content {
            Content::Null => "nothing",
            Content::Bool(_) => "a boolean",
            Content::Number(number) if number.is_f64() => "a number",
            Content::Number(_) => "an integer",
            Content::Text(_) => "text",
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a map",
        }
    }

    /// Place of what a JSON pointer names: the value, or the key for a map or a
    /// list, or the nearest thing above it that exists.
    pub fn locate(&self, pointer: &str) -> Span {
        let (mut node, mut span) = (self, self.head(None));
        for part in pointer.split('/').skip(1) {
            let next = match &node.content {
                Content::Mapping(_) => node.entry(&unescape(part)).map(|entry| (&entry.value, Some(entry))),
                Content::Sequence(items) => {
                    part.parse().ok().and_then(|index: usize| items.get(index)).map(|item| (item, None))
                }
                Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => None,
            };
            let Some((found, entry)) = next else { break };
            (node, span) = (found, found.head(entry));
        }
        span
    }

    /// Place of the key that a JSON pointer ends in; else like [`Self::locate`].
    pub fn locate_key(&self, pointer: &str) -> Span {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", ""));
        let key = unescape(key);
        let entry = self.find(parent).and_then(|parent| parent.entry(&key));
        entry.map_or_else(|| self.locate(pointer), |entry| entry.key_span)
    }

    /// The node that a JSON pointer names.
    pub fn find(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |node, part| match &node.content {
            Content::Mapping(_) => node.get(&unescape(part)),
            Content::Sequence(items) => items.get(part.parse::<usize>().ok()?),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => None,
        })
    }

    /// Where to point when something about this node is wrong: a whole map or
    /// list would mark half the file, so its key or its first key stands for it.
    fn head(&self, entry: Option<&Entry>) -> Span {
        match (&self.content, entry) {
            (Content::Mapping(_) | Content::Sequence(_), Some(entry)) => entry.key_span,
            (Content::Mapping(entries), None) => entries.first().map_or(self.span, |first| first.key_span),
            (Content::Sequence(items), None) => items.first().map_or(self.span, |first| first.head(None)),
            (Content::Null, Some(entry)) if self.span.start == self.span.end => entry.key_span,
            (Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_), _) => self.span,
        }
    }
}
