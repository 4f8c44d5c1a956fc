//! What to do about a reason, in one sentence. `docs/troubleshooting.md` says
//! the same at more length.

use crate::api::Reason;

/// What somebody can do about a Package that shows this reason.
pub const fn remedy(reason: Reason) -> &'static str {
    match reason {
        Reason::Ready => "Nothing: the wanted version runs.",
        Reason::Progressing | Reason::Preparing | Reason::RollingBack => {
            "Nothing for now, unless something above cannot mend itself: it is waited for, bounded by upgrade.timeout."
        }
        Reason::RequirementsNotMet => {
            "Bring the required package to a version in the range, or wait until it has stopped moving."
        }
        Reason::Conflict => {
            "Remove or rename what is in the way, or annotate it with windlass.dev/adopt to have it taken over."
        }
        Reason::InvalidSpec => "Mend the Package; `windlass validate` shows place and remedy offline.",
        Reason::UpgradePathNotAllowed => {
            "Go through a version in between that upgrade.from admits; to go back, let it admit the version that runs."
        }
        Reason::DowngradeRefused => "Fix forward, or set upgrade.allowDowngrade if going back is meant.",
        Reason::RollbackRefused => {
            "Fix forward, or use `windlass rollback --force` if you know that the older version can run on this data."
        }
        Reason::SourceNotFound => "Check repository, name and version of the chart, and the credentials.",
        Reason::HookFailed => {
            "Read the logs of the hook, whose release is kept; then change the spec, or `windlass retry`."
        }
        Reason::InstallFailed => "It is tried again by itself; mend what its objects say, or change the spec.",
        Reason::UpgradeFailed => {
            "Fix forward: change the spec, or mend what its objects say and `windlass retry`. Nothing is rolled back."
        }
        Reason::UpgradeRolledBack => {
            "The version before runs. Change the spec, or `windlass retry` to try the same version once more."
        }
        Reason::RollbackFailed => {
            "Nothing more is touched: change the spec to fix forward, or `windlass retry` the rollback."
        }
        Reason::RolledBack => "Nothing: an earlier revision runs as asked, until the spec changes.",
        Reason::Suspended => "Set spec.suspend to false, or resume the child (`flux resume helmrelease`).",
        Reason::Deleting => "Nothing for now: components are uninstalled one by one, dependents first.",
        Reason::EngineMissing => "Install Flux or Argo CD, or correct spec.engine.",
        Reason::EngineAmbiguous => "Set spec.engine, or start the controller with --engine.",
        Reason::AccessDenied => "Give the service account of the Package the right that the message names.",
        Reason::GuardMismatch => {
            "Install the canary's guard (manifests/canary) with the account that the message names."
        }
    }
}
