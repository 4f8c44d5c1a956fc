//! What no write may do, whatever was decided.

use serde_json::Value;

use super::{Executor, WriteError};
use crate::rollout::Action;

impl Executor {
    /// Records may be written by whoever may write in the namespace: nothing in
    /// them leads out of it.
    pub(super) fn stays_at_home(&self, action: &Action) -> Result<(), WriteError> {
        // A volume claim is where its release is, and marked as the Package's account.
        let is_elsewhere = matches!(action, Action::MarkVolumeClaim { .. });
        let Some(key) = action.object().filter(|_| !is_elsewhere) else { return Ok(()) };
        // A Namespace is applied as the Package's account.
        if key.namespace == self.namespace || key.kind == "Namespace" {
            return Ok(());
        }
        let problem = format!("it is outside of the Package's namespace {}", self.namespace);
        Err(WriteError::Denied { object: key.to_string(), problem })
    }

    /// Where accounts are required nothing is written that would be installed as the
    /// engine itself, whatever an old record says.
    pub(super) fn names_an_account(&self, action: &Action) -> Result<(), WriteError> {
        let spec = match action {
            Action::Apply { object, .. } => object.get("spec"),
            // Only what gives a release its chart can install anything.
            Action::Patch { patch, .. } => patch.get("spec").filter(|spec| spec.get("chartRef").is_some()),
            Action::Operate { .. }
            | Action::Delete { .. }
            | Action::HoldPackage
            | Action::ReleasePackage
            | Action::CreateRevision(_)
            | Action::HoldRevision { .. }
            | Action::ReleaseRevision { .. }
            | Action::DeleteRevision { .. }
            | Action::Rollout(_)
            | Action::MarkVolumeClaim { .. } => return Ok(()),
        };
        let named =
            |spec: &Value| spec.get("serviceAccountName").and_then(Value::as_str).is_some_and(|n| !n.is_empty());
        if !self.require_account || spec.is_none_or(named) {
            return Ok(());
        }
        let Some(key) = action.object().filter(|key| key.kind == "HelmRelease") else { return Ok(()) };
        let problem = "it names no service account, which is required in this cluster".to_owned();
        Err(WriteError::Denied { object: key.to_string(), problem })
    }
}
