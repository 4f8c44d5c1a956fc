//! Writes to DaemonSets that were not made when they were last tried: meanwhile no
//! clock of their rollouts runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use super::store::PackageKey;

/// By Package, and by `<namespace>/<name>` of the DaemonSet.
#[derive(Debug, Default)]
pub struct Refusals {
    last: Mutex<HashMap<PackageKey, BTreeMap<String, String>>>,
}

impl Refusals {
    /// What the last look at a Package could not write.
    pub fn of(&self, key: &PackageKey) -> BTreeMap<String, String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned().unwrap_or_default()
    }

    /// Notes that of a look: what was written since, or is not asked for any more, is
    /// refused no longer.
    pub fn note(&self, key: &PackageKey, refused: BTreeMap<String, String>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.is_empty() {
            last.remove(key);
        } else {
            last.insert(key.clone(), refused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_at_last_is_refused_no_longer() {
        let (refusals, key) = (Refusals::default(), ("apps".to_owned(), "agents".to_owned()));
        let refused = BTreeMap::from([("agents/agent".to_owned(), "no".to_owned())]);
        refusals.note(&key, refused.clone());
        assert_eq!(refusals.of(&key), refused);
        refusals.note(&key, BTreeMap::new());
        assert_eq!(refusals.of(&key), BTreeMap::new());
    }
}
