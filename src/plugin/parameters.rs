//! The parameters that Argo CD shows beside an Application.

use serde_json::{Value, json};

/// Names of the parameters, in the order in which they are shown.
pub(super) const NAMES: [&str; 5] = ["output", "engine", "path", "recurse", "waves"];

/// The announcement of the parameters, an array as Argo CD wants it
/// (`ParameterAnnouncement` in its repository.proto). What it calls defaults is
/// only shown: `generate` has its own, the same.
pub fn announcement() -> Value {
    let texts = [
        (
            "Output",
            "package: for the Windlass controller. native: HelmReleases or Applications that need none.",
            "package",
        ),
        ("Engine", "Who applies the releases: argo or flux.", "argo"),
        ("Path", "Directory of the Package files, relative to the Application's path.", "."),
        ("Recurse", "Whether directories below it are read as well: true or false.", "true"),
        ("Waves", "native on argo: whether every Application gets a sync wave: on or off.", "on"),
    ];
    NAMES
        .iter()
        .zip(texts)
        .map(|(name, (title, tooltip, default))| {
            json!({
                "name": name,
                "title": title,
                "tooltip": tooltip,
                "required": false,
                "itemType": "string",
                "collectionType": "string",
                "string": default,
            })
        })
        .collect()
}
