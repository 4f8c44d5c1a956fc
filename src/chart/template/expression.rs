//! Pipelines of templates, evaluated as far as everything in them is known.

use serde_json::{Map, Value};

use super::functions;

/// Deepest nesting of parentheses.
const MAX_DEPTH: u32 = 32;

/// What a pipeline, or a part of one, stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Thing {
    /// What templates begin with: values, release, chart.
    Root,
    /// A value.
    Known(Value),
    /// Anything.
    Unknown,
}

impl Thing {
    /// What a text stands for.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Known(Value::String(text.into()))
    }

    /// Whether it counts as true, where that is known.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Self::Root => Some(true),
            Self::Unknown => None,
            Self::Known(value) => Some(match value {
                Value::Null => false,
                Value::Bool(value) => *value,
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(map) => !map.is_empty(),
            }),
        }
    }

    /// What it holds at a path. Nothing in a map that is there is null; nothing
    /// in anything else is an error to Helm.
    fn at(self, path: &[String]) -> Self {
        path.iter().fold(self, |thing, key| match thing {
            Self::Known(Value::Object(mut map)) => Self::Known(map.remove(key).unwrap_or(Value::Null)),
            Self::Known(_) | Self::Root | Self::Unknown => Self::Unknown,
        })
    }
}

/// What a pipeline is evaluated in.
pub trait Scope {
    /// The dot.
    fn dot(&self) -> Thing;
    /// A variable; the one without a name is what the template was called with.
    fn variable(&self, name: &str) -> Thing;
    /// What the root holds at a path.
    fn root(&self, path: &[String]) -> Thing;
    /// What another template renders.
    fn include(&mut self, name: &str, dot: Thing) -> Thing;
}

/// A statement: a pipeline, and the variables that its value goes to.
#[derive(Debug, Default)]
pub struct Statement {
    /// Names of the variables.
    pub variables: Vec<String>,
    /// Whether they are new.
    pub declares: bool,
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq)]
enum Word {
    Name(String),
    Field(Vec<String>),
    Variable(String, Vec<String>),
    Text(String),
    Number(i64),
    Open,
    Close(Vec<String>),
    Pipe,
    Comma,
    Assign(bool),
}

impl Statement {
    /// Reads a statement; `None` where it is not understood.
    pub fn parse(code: &str) -> Option<Self> {
        let mut words = Reader { rest: code }.words()?;
        let Some(at) = words.iter().position(|word| matches!(word, Word::Assign(_))) else {
            return Some(Self { words, ..Self::default() });
        };
        let rest = words.split_off(at + 1);
        let mut variables = Vec::new();
        for word in &words {
            match word {
                Word::Variable(name, path) if path.is_empty() && !name.is_empty() => variables.push(name.clone()),
                Word::Comma => {}
                Word::Assign(declares) => return Some(Self { variables, declares: *declares, words: rest }),
                _ => return None,
            }
        }
        None
    }

    /// What its pipeline stands for.
    pub fn evaluate(&self, scope: &mut dyn Scope) -> Thing {
        let mut evaluation = Evaluation { words: &self.words, scope, depth: 0 };
        let value = evaluation.pipeline();
        if evaluation.words.is_empty() { value } else { Thing::Unknown }
    }
}

struct Reader<'c> {
    rest: &'c str,
}

impl Reader<'_> {
    fn words(mut self) -> Option<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            let Some(first) = self.rest.chars().next() else { return Some(words) };
            let word = match first {
                '(' => self.skip(1, Word::Open),
                ')' => {
                    self.take(1);
                    Word::Close(self.path()?)
                }
                '|' => self.skip(1, Word::Pipe),
                ',' => self.skip(1, Word::Comma),
                ':' if self.rest.starts_with(":=") => self.skip(2, Word::Assign(true)),
                '=' => self.skip(1, Word::Assign(false)),
                '"' => self.quoted()?,
                '`' => self.raw()?,
                '.' => Word::Field(self.path()?),
                '$' => {
                    self.take(1);
                    let name = self.name();
                    Word::Variable(name, self.path()?)
                }
                '0'..='9' | '-' => self.number()?,
                letter if letter.is_alphabetic() || letter == '_' => Word::Name(self.name()),
                _ => return None,
            };
            words.push(word);
        }
    }

    fn take(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn skip(&mut self, bytes: usize, word: Word) -> Word {
        self.take(bytes);
        word
    }

    fn name(&mut self) -> String {
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name.to_owned()
    }

    /// `.a.b`; empty where there is no dot, or nothing behind it.
    fn path(&mut self) -> Option<Vec<String>> {
        let mut path = Vec::new();
        while self.rest.starts_with('.') {
            self.take(1);
            let name = self.name();
            match (name.is_empty(), path.is_empty()) {
                (true, true) => return Some(path),
                (true, false) => return None,
                (false, _) => path.push(name),
            }
        }
        Some(path)
    }

    fn quoted(&mut self) -> Option<Word> {
        let mut letters = self.rest.char_indices().skip(1);
        let mut text = String::new();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => return Some(self.skip(at + 1, Word::Text(text))),
                '\\' => match letters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    same @ ('"' | '\\') => text.push(same),
                    _ => return None,
                },
                letter => text.push(letter),
            }
        }
        None
    }

    fn raw(&mut self) -> Option<Word> {
        let (text, rest) = self.rest.get(1..)?.split_once('`')?;
        self.rest = rest;
        Some(Word::Text(text.to_owned()))
    }

    fn number(&mut self) -> Option<Word> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.' | '_'));
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        text.parse().ok().map(Word::Number)
    }
}

struct Evaluation<'w, 's> {
    words: &'w [Word],
    scope: &'s mut dyn Scope,
    depth: u32,
}

impl<'w> Evaluation<'w, '_> {
    fn next(&mut self) -> Option<&'w Word> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn pipeline(&mut self) -> Thing {
        let mut value = self.command(None);
        while self.words.first() == Some(&Word::Pipe) {
            self.next();
            value = self.command(Some(value));
        }
        value
    }

    fn command(&mut self, piped: Option<Thing>) -> Thing {
        let function = match self.words.first() {
            Some(Word::Name(name)) if constant(name).is_none() => Some(name.as_str()),
            _ => None,
        };
        let first = if function.is_some() {
            self.next();
            None
        } else {
            Some(self.operand())
        };
        let mut arguments = Vec::new();
        while !matches!(self.words.first(), None | Some(Word::Pipe | Word::Close(_))) {
            arguments.push(self.operand());
        }
        match (function, first) {
            (Some(function), _) => {
                arguments.extend(piped);
                functions::call(function, &arguments, self.scope)
            }
            // A method that is called, or something that takes no argument.
            (None, Some(value)) if arguments.is_empty() && piped.is_none() => value,
            (None, _) => Thing::Unknown,
        }
    }

    fn operand(&mut self) -> Thing {
        let Some(word) = self.next() else { return Thing::Unknown };
        match word {
            Word::Field(path) => self.of(self.scope.dot(), path),
            Word::Variable(name, path) => self.of(self.scope.variable(name), path),
            Word::Text(text) => Thing::text(text.as_str()),
            Word::Number(number) => Thing::Known((*number).into()),
            Word::Name(name) => constant(name).unwrap_or_else(|| functions::call(name, &[], self.scope)),
            Word::Open if self.depth < MAX_DEPTH => {
                self.depth += 1;
                let value = self.pipeline();
                self.depth -= 1;
                match self.next() {
                    Some(Word::Close(path)) => self.of(value, path),
                    _ => Thing::Unknown,
                }
            }
            Word::Open | Word::Close(_) | Word::Pipe | Word::Comma | Word::Assign(_) => {
                self.words = &[];
                Thing::Unknown
            }
        }
    }

    fn of(&self, thing: Thing, path: &[String]) -> Thing {
        match thing {
            Thing::Root if !path.is_empty() => self.scope.root(path),
            thing => thing.at(path),
        }
    }
}

fn constant(name: &str) -> Option<Thing> {
    match name {
        "true" => Some(Thing::Known(true.into())),
        "false" => Some(Thing::Known(false.into())),
        "nil" => Some(Thing::Known(Value::Null)),
        _ => None,
    }
}

/// What a map holds at a path, as [`Thing`].
pub fn at(map: &Map<String, Value>, path: &[String]) -> Thing {
    let Some((first, rest)) = path.split_first() else { return Thing::Known(map.clone().into()) };
    let mut value = map.get(first).unwrap_or(&Value::Null);
    for key in rest {
        let Value::Object(map) = value else { return Thing::Unknown };
        value = map.get(key).unwrap_or(&Value::Null);
    }
    Thing::Known(value.clone())
}
