//! The public phases of a rollout, and every way from one to another.

use crate::api::RolloutPhase::{self, Canary, Failed, Increasing, Started, Successful, Waiting};

/// One way from a phase to another, and what leads there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Where it starts.
    pub from: RolloutPhase,
    /// Where it ends.
    pub to: RolloutPhase,
    /// What leads there.
    pub cause: &'static str,
}

const fn way(from: RolloutPhase, to: RolloutPhase, cause: &'static str) -> Transition {
    Transition { from, to, cause }
}

/// Every transition there is. The picture in `docs/canary.md` is made from it.
pub const TRANSITIONS: &[Transition] = &[
    way(Started, Canary, "one node has its turn"),
    way(Started, Increasing, "the canary was ready when it was first seen, and soaks no longer"),
    way(Started, Waiting, "no pod is to be replaced"),
    way(Canary, Increasing, "the canary was ready for the soak"),
    way(Canary, Waiting, "no other node is left, or the budget is as it should be"),
    way(Increasing, Waiting, "the budget is raised"),
    way(Waiting, Increasing, "the next step"),
    way(Increasing, Successful, "it was the last node"),
    way(Waiting, Successful, "all is new and ready, seen twice, and the budget is back at 1"),
    way(Canary, Started, "its node has gone, or another template came"),
    way(Increasing, Started, "another template came"),
    way(Waiting, Started, "another template came"),
    way(Successful, Started, "another template came"),
    way(Successful, Canary, "an old pod is back, and none was tried"),
    way(Successful, Increasing, "an old pod is back"),
    way(Successful, Waiting, "an old pod is back"),
    way(Successful, Failed, "an old pod is back, and its successor is broken"),
    way(Failed, Started, "another template, or another attempt"),
    way(Started, Failed, "no canary in time, or a new pod is broken"),
    way(Canary, Failed, "the canary is broken, or not ready in time"),
    way(Increasing, Failed, "a new pod is broken, or no progress in time"),
    way(Waiting, Failed, "a new pod is broken, or no progress in time"),
    way(Failed, Canary, "the canary recovered (Compat)"),
    way(Failed, Increasing, "its pods recovered (Compat)"),
    way(Failed, Waiting, "its pods recovered"),
    way(Failed, Successful, "it came to its end after all"),
];

/// Whether there is such a transition. Staying is none.
pub fn is_allowed(from: RolloutPhase, to: RolloutPhase) -> bool {
    from == to || TRANSITIONS.iter().any(|transition| transition.from == from && transition.to == to)
}

/// The picture of [`TRANSITIONS`], as Mermaid text.
pub fn diagram() -> String {
    let lines = TRANSITIONS.iter().map(|t| format!("    {} --> {}: {}\n", t.from, t.to, t.cause));
    std::iter::once("stateDiagram-v2\n    [*] --> started: a new template\n".to_owned()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_in_the_documentation_is_the_code() {
        let text = include_str!("../../docs/canary.md");
        assert!(text.contains(&format!("```mermaid\n{}```", diagram())), "docs/canary.md wants:\n{}", diagram());
    }

    #[test]
    fn no_transition_is_listed_twice() {
        for (position, transition) in TRANSITIONS.iter().enumerate() {
            let mut later = TRANSITIONS.iter().skip(position + 1);
            assert!(!later.any(|other| (other.from, other.to) == (transition.from, transition.to)));
        }
    }
}
