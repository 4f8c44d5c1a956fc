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
    /// The file is no YAML, or YAML that readers disagree about.
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
    /// A version range is malformed, or admits nothing.
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
    /// A list, text or file exceeds its limit.
    TooLarge = 19,
    /// A key occurs twice in one map.
    DuplicateKey = 20,
    /// A file is no text in UTF-8.
    NotText = 21,
    /// A document is no Kubernetes object.
    NotAnObject = 22,
    /// A kind of our API group that no file may hold, or that does not exist.
    UnsupportedKind = 23,
    /// Two Packages of one name in one namespace.
    DuplicatePackage = 24,
    /// Two components, of one Package or of two, get one child name.
    ChildNameConflict = 25,
    /// Two components, of one Package or of two, claim one Helm release.
    ReleaseConflict = 26,
    /// Packages require each other in a circle.
    PackageCycle = 27,
    /// A field that the engine needs is absent.
    NeededByEngine = 28,
    /// A field that only the Argo CD plugin writes.
    PluginField = 29,
    /// A CEL expression that does not parse or exceeds its limits.
    Expression = 30,
    /// A CEL expression uses a variable that does not exist.
    UnknownVariable = 31,
    /// A chart directory or values file is not there.
    ChartNotFound = 32,
    /// `chartVersion` is not what Chart.yaml says.
    ChartVersionMismatch = 33,
    /// The record of the revision would not fit into an object.
    RevisionTooLarge = 34,
    /// Two ranges of the same thing that no version is in.
    RangesExclude = 35,
    /// A required Package is not in the set, or not in the wanted range.
    UnmetRequirement = 36,
    /// A plain scalar that YAML readers take for different things.
    AmbiguousScalar = 37,
    /// A CEL expression reads a field that may not be there yet.
    UnguardedStatus = 38,
    /// A hook in a Package that says a rollback is safe.
    HookAndSafe = 39,
    /// Values from an object whose name does not change with its content.
    UnhashedValuesFrom = 40,
    /// A condition that stays True while its object is being updated.
    StaysTrue = 41,
    /// A field that the engine ignores.
    IgnoredOnEngine = 42,
    /// Text that a tool on the way to the cluster would substitute.
    Substitution = 43,
    /// Fields that the cluster writes.
    ClusterField = 44,
    /// No Package in what was given.
    NoPackage = 45,
    /// An expression that has no answer on any object.
    NeverAnswers = 46,
    /// A field that has no effect where it stands.
    NoEffect = 47,
    /// A version of a CustomResourceDefinition that is not served any more.
    VersionNotServed = 48,
    /// A version of a CustomResourceDefinition that objects are stored in is removed.
    StoredVersionRemoved = 49,
    /// A field that is gone from the schema of a CustomResourceDefinition.
    FieldGone = 50,
    /// A CustomResourceDefinition that is not in its chart any more.
    DefinitionGone = 51,
    /// A component uses what another one brings and does not depend on it.
    MissingEdge = 52,
    /// A version that is ordered letter by letter.
    OrderedAsText = 53,
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

/// The beginning of a text, as much as a message repeats.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(60).collect()
}
