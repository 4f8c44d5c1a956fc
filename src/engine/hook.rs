//! The one-shot run of a PreUpgrade hook.

use serde_json::{Map, Value};

use crate::package::version::Version;

/// The upgrade that a hook runs for.
#[derive(Clone, Copy, Debug)]
pub struct HookRun<'a> {
    /// Number of the revision.
    pub number: u64,
    /// Version that runs.
    pub from: &'a Version,
    /// Version that is wanted.
    pub to: &'a Version,
    /// Target of the last hook that succeeded since `from` was verified.
    pub migrated_to: Option<&'a Version>,
}

/// Values of a hook: its own, and under `kubepkg` and `windlass` the versions
/// of the upgrade without a leading v. Other keys of those two maps are kept.
pub(super) fn values(own: &Map<String, Value>, run: &HookRun<'_>) -> Map<String, Value> {
    let mut values = own.clone();
    let versions = [("fromVersion", run.from.to_string()), ("toVersion", run.to.to_string())];
    let migrated_to = run.migrated_to.map(ToString::to_string).unwrap_or_default();
    inject(&mut values, "kubepkg", versions.clone());
    inject(&mut values, "windlass", versions.into_iter().chain([("migratedTo", migrated_to)]));
    values
}

fn inject(values: &mut Map<String, Value>, key: &str, entries: impl IntoIterator<Item = (&'static str, String)>) {
    let mut map = match values.get_mut(key) {
        Some(Value::Object(map)) => std::mem::take(map),
        Some(_) | None => Map::new(),
    };
    for (name, text) in entries {
        map.insert(name.to_owned(), text.into());
    }
    values.insert(key.to_owned(), map.into());
}
