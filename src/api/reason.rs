//! Why a Package is in the state it is in.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Why it stands there, by the one list of reasons. Conditions, events, metrics, JSON
        /// output and the documentation use exactly these names; they are never renamed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum Reason {
            $($(#[$doc])* $name),+
        }

        impl Reason {
            /// Every reason, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The stable text of the reason.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name)),+
                }
            }

            /// The reason of a text, if it is one that this version knows.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == text)
            }
        }
    };
}

reasons! {
    /// The wanted version runs and is verified.
    Ready,
    /// A revision is being rolled out.
    Progressing,
    /// The charts of a revision are being fetched and checked; nothing has moved.
    Preparing,
    /// A required package is absent, at another version, or moving. Waiting, not an error.
    RequirementsNotMet,
    /// An object or release that a component needs belongs to somebody else.
    Conflict,
    /// The Package contradicts itself or a rule of the format.
    InvalidSpec,
    /// `upgrade.from` does not admit the version that runs.
    UpgradePathNotAllowed,
    /// The wanted version is older than the one that runs.
    DowngradeRefused,
    /// A rollback by hand that the rollback rule does not allow.
    RollbackRefused,
    /// A chart, or its source, cannot be found.
    SourceNotFound,
    /// A PreUpgrade hook failed; nothing else was changed.
    HookFailed,
    /// The first installation failed; it is tried again.
    InstallFailed,
    /// An upgrade failed and was left as it stands: fix forward.
    UpgradeFailed,
    /// An upgrade failed and the version before it runs again.
    UpgradeRolledBack,
    /// The version before is being restored.
    RollingBack,
    /// The version before could not be restored; nothing more is touched.
    RollbackFailed,
    /// An earlier revision runs because somebody asked for it.
    RolledBack,
    /// Moves are suspended, by the Package or by a child.
    Suspended,
    /// The Package is being deleted.
    Deleting,
    /// The engine's kinds are not installed in the cluster.
    EngineMissing,
    /// Both engines are installed and the Package names none.
    EngineAmbiguous,
    /// The account in use may not read or write something.
    AccessDenied,
    /// A write came back changed by admission: the canary guard takes us for somebody else.
    GuardMismatch,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
