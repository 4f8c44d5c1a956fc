//! Rules of the format that a Package breaks, each with a stable code.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal),+ $(,)?) => {
        /// Stable code of a finding: `WL001` and so on. A number is never used
        /// for anything else, also after its rule is gone. Explained one by one
        /// in `docs/errors.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$doc])* $name = $number),+
        }

        impl Code {
            /// Every code, rising.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

codes! {
    /// The file is no YAML.
    Syntax = 1,
    /// A field that the format does not have.
    UnknownField = 2,
    /// A field has another type than it should.
    WrongType = 3,
    /// A required field is absent.
    MissingField = 4,
    /// A field has a value outside of those allowed.
    InvalidValue = 5,
    /// A name is malformed or too long.
    InvalidName = 6,
    /// A version is not exact, or no semantic version.
    InvalidVersion = 7,
    /// A version range is malformed.
    InvalidRange = 8,
    /// A duration is malformed.
    InvalidDuration = 9,
    /// Not exactly one of fields that exclude each other.
    ExactlyOne = 10,
    /// A field that only goes with another one.
    NotTogether = 11,
    /// Two components of one name.
    DuplicateComponent = 12,
    /// `dependsOn` names no component.
    UnknownDependency = 13,
    /// Components depend on each other in a circle.
    Cycle = 14,
    /// A hook depends on something, or something on a hook.
    HookDependency = 15,
    /// A path leads out of the source, or is not relative.
    PathEscapes = 16,
    /// Something the engine cannot do.
    NotOnEngine = 17,
    /// An integer beyond 64 bits signed.
    IntegerTooLarge = 18,
    /// A list or text exceeds its limit.
    TooLarge = 19,
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WL{:03}", *self as u16)
    }
}

/// One broken rule, at a place in the Package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub code: Code,
    /// JSON pointer of the field, such as `/spec/components/0/name`.
    pub pointer: String,
    /// What is wrong; one line.
    pub message: String,
    /// What to do; empty if the message says it.
    pub help: String,
}

impl Violation {
    /// A violation without further help.
    pub fn new(code: Code, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, pointer: pointer.into(), message: message.into(), help: String::new() }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl fmt::Display for Violation {
    /// `WL013 /spec/components/1/install/dependsOn/0: no component …`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}: {}", self.code, self.pointer, self.message)
    }
}
