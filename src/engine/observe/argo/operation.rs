//! Operations of an Application: the one that is asked for (`operation`) and
//! the one that ran last or runs (`status.operationState`).

use serde_json::{Map, Value};

use super::super::quote;
use super::spec;

/// How far `operationState` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is none.
    None,
    /// It runs.
    Running,
    /// It failed and will be tried again by Argo CD: the phase is Running and
    /// `finishedAt` is set.
    Retrying,
    /// It has done its part.
    Succeeded,
    /// It has failed for good.
    Failed,
}

/// Both operations.
pub(super) struct Operations<'a> {
    pending: Option<&'a Value>,
    state: Option<&'a Value>,
}

impl<'a> Operations<'a> {
    pub fn of(object: &'a Map<String, Value>) -> Self {
        let present = |value: &&Value| !value.is_null();
        Self {
            pending: object.get("operation").filter(present),
            state: object.get("status").and_then(|status| status.get("operationState")).filter(present),
        }
    }

    fn state_text(&self, path: &str) -> Option<&'a str> {
        self.state?.pointer(path)?.as_str()
    }

    pub fn phase(&self) -> Phase {
        match self.state_text("/phase") {
            None => Phase::None,
            Some("Succeeded") => Phase::Succeeded,
            Some("Failed" | "Error") => Phase::Failed,
            Some("Running") if self.state_text("/finishedAt").is_some() => Phase::Retrying,
            // Running, Terminating, and what a later Argo CD may add.
            Some(_) => Phase::Running,
        }
    }

    pub fn is_terminating(&self) -> bool {
        self.state_text("/phase") == Some("Terminating")
    }

    /// Whether an operation is asked for and not done with.
    pub fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether it waits until the project's sync windows let it go on.
    pub fn is_held_by_window(&self) -> bool {
        let says = |message: &str| message.starts_with("Sync operation blocked by sync window");
        self.phase() == Phase::Running && self.has_pending() && self.state_text("/message").is_some_and(says)
    }

    /// Whether it ended with an error before anything was applied: its source could
    /// not be had, or not be rendered.
    pub fn has_applied_nothing(&self) -> bool {
        let resources = self.state.and_then(|state| state.pointer("/syncResult/resources"));
        self.state_text("/phase") == Some("Error") && resources.is_none_or(spec::is_zero)
    }

    /// Whether the operation that is asked for has ended: Argo CD 3.5.3 does not
    /// take it away then, and nothing can be concluded from it any more.
    pub fn is_left_over(&self) -> bool {
        let ended = matches!(self.phase(), Phase::Succeeded | Phase::Failed);
        let sync = |operation: Option<&'a Value>| operation.and_then(|operation| operation.get("sync"));
        let ran = self.state.and_then(|state| state.get("operation"));
        ended && self.pending.is_some() && sync(self.pending) == sync(ran)
    }

    /// Whether `operationState` is that of the operation with our token.
    pub fn shows(&self, token: &str) -> bool {
        self.state.and_then(|state| state.get("operation")).is_some_and(|operation| carries(operation, token))
    }

    /// Whether the operation with our token is asked for.
    pub fn asks_for(&self, token: &str) -> bool {
        self.pending.is_some_and(|operation| carries(operation, token))
    }

    /// Whether an operation has begun and not ended.
    pub fn is_in_progress(&self) -> bool {
        matches!(self.phase(), Phase::Running | Phase::Retrying)
    }

    /// Whether the operation that runs, else the one that is asked for, is for
    /// another source than that of the object's spec. One that names no source
    /// takes the spec's when it begins, and soon says in its result which that was.
    pub fn is_for_another(&self, object: &Map<String, Value>) -> bool {
        let stated = if self.is_in_progress() { self.ran() } else { self.pending.and_then(stated) };
        stated.is_some_and(|stated| !spec::same_source(stated, object))
    }

    /// Whether the operation that ran last was for the source of the object's spec.
    pub fn ran_for(&self, object: &Map<String, Value>) -> bool {
        self.ran().is_none_or(|ran| spec::same_source(ran, object))
    }

    /// What names the source of `operationState`: its operation, else its result.
    fn ran(&self) -> Option<&'a Value> {
        let state = self.state?;
        let result = || state.get("syncResult").filter(|result| has_source(result));
        state.get("operation").and_then(stated).or_else(result)
    }

    /// Whether `operationState` synchronised everything, really, for what its
    /// own operation and its result both name, and has ended.
    pub fn is_whole(&self) -> bool {
        let Some(state) = self.state else {
            return false;
        };
        let Some(sync) = state.pointer("/operation/sync") else {
            return false;
        };
        let empty = |value: Option<&Value>| value.is_none_or(spec::is_zero);
        let result = state.get("syncResult").filter(|result| has_source(result));
        self.state_text("/finishedAt").is_some()
            && empty(sync.get("resources"))
            && empty(sync.get("dryRun"))
            && empty(sync.get("manifests"))
            && result.is_some_and(|result| !has_source(sync) || spec::same_sources(result, sync))
    }

    /// Revision that was synchronised.
    pub fn synced_revision(&self) -> Option<&'a str> {
        self.state_text("/syncResult/revision").filter(|revision| !revision.is_empty())
    }

    /// What Argo CD is doing or has done.
    pub fn describe(&self) -> String {
        if self.is_left_over() {
            return "the operation has ended and is not taken away (Argo CD 3.5.3 has this fault)".to_owned();
        }
        let phase = match (self.phase(), self.pending) {
            (Phase::None, Some(_)) => return "an operation that is asked for".to_owned(),
            (Phase::None, None) => return "no operation is recorded".to_owned(),
            (Phase::Running, _) if self.is_terminating() => "the operation is being ended",
            (Phase::Running, _) => "the operation is running",
            (Phase::Retrying, _) => "the operation is tried again",
            (Phase::Succeeded, _) => "the operation succeeded",
            (Phase::Failed, _) => "the operation failed",
        };
        match self.state_text("/message").filter(|message| !message.is_empty()) {
            Some(message) => format!("{phase}: {}", quote(message)),
            None => phase.to_owned(),
        }
    }
}

fn carries(operation: &Value, token: &str) -> bool {
    let info = operation.get("info").and_then(Value::as_array);
    info.into_iter().flatten().any(|entry| {
        let field = |key| entry.get(key).and_then(Value::as_str);
        field("name") == Some(super::OPERATION_TOKEN) && field("value") == Some(token)
    })
}

/// The part of an operation that names a source, if it does.
fn stated(operation: &Value) -> Option<&Value> {
    operation.get("sync").filter(|sync| has_source(sync))
}

fn has_source(value: &Value) -> bool {
    ["source", "sources"].into_iter().any(|key| value.get(key).is_some_and(|source| !spec::is_zero(source)))
}
