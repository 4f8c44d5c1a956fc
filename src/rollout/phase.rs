//! The phases of a revision, and every way from one to another.

use super::work::Work;
use crate::api::RevisionPhase::{
    self, Applying, Failed, Pending, Preparing, RollbackFailed, RolledBack, RollingBack, Succeeded, Superseded,
};

/// One way from a phase to another, and what leads there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Where it starts.
    pub from: RevisionPhase,
    /// Where it ends.
    pub to: RevisionPhase,
    /// What leads there.
    pub cause: &'static str,
}

const fn way(from: RevisionPhase, to: RevisionPhase, cause: &'static str) -> Transition {
    Transition { from, to, cause }
}

/// Every transition there is. The picture in `docs/states.md` is made from it.
pub const TRANSITIONS: &[Transition] = &[
    way(Pending, Preparing, "charts are awaited"),
    way(Pending, Applying, "charts are there"),
    way(Preparing, Applying, "charts are there"),
    way(Applying, Succeeded, "every component is verified"),
    way(Applying, Failed, "a hook failed, or a component and there is no safe way back"),
    way(Applying, RollingBack, "a component failed and the way back is safe, or asked for"),
    way(Failed, Applying, "it became ready after all, or a retry"),
    way(Failed, RollingBack, "asked for"),
    way(RollingBack, RolledBack, "everything is back and holds"),
    way(RollingBack, RollbackFailed, "a step or the check failed"),
    way(RollbackFailed, RollingBack, "a retry, or asked for"),
    way(RolledBack, Preparing, "a retry of what was rolled back"),
    way(RolledBack, RollingBack, "asked for"),
    way(Succeeded, RollingBack, "asked for"),
    way(Pending, RollingBack, "asked for"),
    way(Preparing, RollingBack, "asked for"),
    way(Pending, Superseded, "a changed spec"),
    way(Preparing, Superseded, "a changed spec"),
    way(Applying, Superseded, "a changed spec"),
    way(RollingBack, Superseded, "a changed spec"),
    way(Superseded, Preparing, "its successor was removed"),
    way(Superseded, Applying, "its successor was removed"),
    way(Superseded, RollingBack, "asked for"),
];

/// Whether there is such a transition. Staying is none.
pub fn is_allowed(from: RevisionPhase, to: RevisionPhase) -> bool {
    from == to || TRANSITIONS.iter().any(|transition| transition.from == from && transition.to == to)
}

/// The picture of [`TRANSITIONS`], as Mermaid text.
pub fn diagram() -> String {
    let lines = TRANSITIONS.iter().map(|t| format!("    {:?} --> {:?}: {}\n", t.from, t.to, t.cause));
    std::iter::once("stateDiagram-v2\n    [*] --> Pending: a spec that differs from the latest revision\n".to_owned())
        .chain(lines)
        .collect()
}

impl Work<'_> {
    /// Goes to another phase.
    pub(crate) fn enter(&mut self, phase: RevisionPhase) {
        debug_assert!(is_allowed(self.status.phase, phase), "{:?} -> {phase:?}", self.status.phase);
        self.status.phase = phase;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_in_the_documentation_is_the_code() {
        let text = include_str!("../../docs/states.md");
        assert!(text.contains(&format!("```mermaid\n{}```", diagram())), "docs/states.md wants:\n{}", diagram());
    }

    #[test]
    fn no_transition_is_listed_twice() {
        for (position, transition) in TRANSITIONS.iter().enumerate() {
            let later = TRANSITIONS.iter().skip(position + 1);
            assert!(!later.clone().any(|other| (other.from, other.to) == (transition.from, transition.to)));
        }
    }
}
