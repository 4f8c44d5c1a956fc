//! Writes that come to nothing: somebody else changes back what was written, and
//! the next look decides the same again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::store::PackageKey;
use crate::rollout::Action;

/// How often in a row the same may be done before it counts as undone by others.
const MOST: u32 = 3;

/// What was last done for each Package, and how often in a row.
#[derive(Debug, Default)]
pub struct Repeats {
    last: Mutex<HashMap<PackageKey, Repeated>>,
}

#[derive(Debug)]
struct Repeated {
    actions: Vec<Action>,
    times: u32,
}

impl Repeats {
    /// Notes what a look has done; true if the looks before have done just that,
    /// too often to be by chance.
    pub fn is_undone(&self, key: &PackageKey, actions: &[Action]) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if actions.is_empty() {
            last.remove(key);
            return false;
        }
        let actions: Vec<Action> = actions.iter().map(Action::without_versions).collect();
        let times = last.get(key).filter(|before| before.actions == actions).map_or(1, |before| before.times + 1);
        last.insert(key.clone(), Repeated { actions, times });
        times > MOST
    }

    /// The Package is gone.
    pub fn forget(&self, key: &PackageKey) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rollout::Precondition;

    fn key() -> PackageKey {
        ("apps".into(), "db".into())
    }

    fn apply(version: &str) -> Action {
        let object = json!({"kind": "HelmRelease", "spec": {"interval": "1m"}}).as_object().unwrap().clone();
        let precondition = Precondition::Unchanged { uid: "u".into(), resource_version: version.into() };
        Action::Apply { object, precondition }
    }

    #[test]
    fn the_same_write_again_and_again_comes_to_nothing() {
        let repeats = Repeats::default();
        let undone: Vec<bool> = ["1", "2", "3", "4"].map(|v| repeats.is_undone(&key(), &[apply(v)])).to_vec();
        assert_eq!(undone, [false, false, false, true]);
    }

    #[test]
    fn a_look_that_does_something_else_or_nothing_begins_anew() {
        let repeats = Repeats::default();
        for between in [vec![], vec![Action::HoldPackage]] {
            (0..3).for_each(|_| assert!(!repeats.is_undone(&key(), &[apply("1")])));
            assert!(!repeats.is_undone(&key(), &between));
            assert!(!repeats.is_undone(&key(), &[apply("1")]));
            repeats.forget(&key());
        }
    }
}
