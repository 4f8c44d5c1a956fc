//! The API group `windlass.dev/v1alpha1`: what is stored in a cluster or Git.
//!
//! These types mirror the wire format and keep what an author wrote: optional
//! stays optional, and defaults live in [`crate::package::definition`]. Nothing
//! here decides anything.

mod canary;
mod install;
mod meta;
mod package;
mod reason;
pub mod reference;
mod revision;
mod rollout;
pub mod schema;
mod status;
pub mod wellknown;

pub use canary::{Canary, CanaryFailure, RolloutMode, UnreadyNodes};
pub use install::{DriftIgnore, HealthCheckExpr, Install, Phase, ReadyWhen, UpgradeCrds};
pub use meta::{Condition, ConditionStatus, Time};
pub use package::{
    Chart, Component, ComponentSource, DeletionPolicy, Engine, LocalReference, Package, PackageSpec, Requirement,
    Rollback, SourceKind, SourceRef, Upgrade, ValuesFrom, ValuesFromKind,
};
pub use reason::Reason;
pub use revision::{
    BeforeRead, Claim, ComponentRecord, ComponentState, DeletionRecord, HookOutcome, HookRecord, PackageRevision,
    PackageRevisionSpec, PackageRevisionStatus, Phase as RevisionPhase, RecordedComponent, RevisionRollback,
    RollbackRecord,
};
pub use rollout::{RolloutGuard, RolloutPhase, RolloutReason, RolloutRecord, RolloutStatus};
pub use status::{Attempted, Blocker, ComponentStatus, PackageStatus};
