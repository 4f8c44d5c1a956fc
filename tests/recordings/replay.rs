//! What both engines' replays share.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use windlass::api::{Claim, RecordedComponent};
use windlass::engine::observe::Need;
use windlass::ready::release::{Failure, Release, ReleaseState, Trouble};

/// A recording of one scenario.
pub struct Recording {
    pub events: Vec<Value>,
}

impl Recording {
    pub fn load(engine: &str, scenario: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings");
        let text = fs::read_to_string(root.join(engine).join(format!("{scenario}.json"))).unwrap();
        let recording: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(recording["scenario"], scenario);
        Self { events: recording["events"].as_array().unwrap().clone() }
    }

    /// Names of the scenarios of an engine.
    pub fn scenarios(engine: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings").join(engine);
        let stem = |entry: fs::DirEntry| entry.path().file_stem().unwrap().to_string_lossy().into_owned();
        let mut names: Vec<String> = fs::read_dir(root).unwrap().map(|entry| stem(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// Events of one object.
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["name"] == name)
    }
}

/// Metadata of a child of ours.
pub fn metadata(name: &str, digest: &str) -> Value {
    json!({
        "name": name,
        "namespace": "packages",
        "labels": {
            "windlass.dev/package": "pkg",
            "windlass.dev/component": name,
            "app.kubernetes.io/managed-by": "windlass",
        },
        "annotations": {"windlass.dev/digest": digest, "windlass.dev/wave": "0"},
    })
}

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

/// A recorded component that wants one manifest.
pub fn component(name: &str, manifest: Map<String, Value>, chart_version: &str) -> RecordedComponent {
    let release = Claim { storage_namespace: "ns".into(), namespace: "ns".into(), name: name.to_owned() };
    let component = json!({
        "name": name,
        "wave": 0,
        "digest": "v1:any",
        "release": release,
        "chartVersion": chart_version,
        "manifests": [manifest],
    });
    serde_json::from_value(component).unwrap()
}

/// A state in one word, with failed attempts, trouble and need where there are any.
pub fn word(release: &Release, need: Option<Need>) -> String {
    let state = match &release.state {
        ReleaseState::Absent => "Absent",
        ReleaseState::Foreign(_) => "Foreign",
        ReleaseState::Deleting => "Deleting",
        ReleaseState::Outdated => "Outdated",
        ReleaseState::Suspended => "Suspended",
        ReleaseState::Queued => "Queued",
        ReleaseState::Progressing => "Progressing",
        ReleaseState::Failed(Failure::Attempt) => "Failed",
        ReleaseState::Failed(Failure::GivenUp) => "GivenUp",
        ReleaseState::Ready => "Ready",
    };
    let attempts = if release.attempts == 0 { String::new() } else { format!("/{}", release.attempts) };
    let trouble = match release.trouble {
        None => "",
        Some(Trouble::NoSource) => "!source",
        Some(Trouble::Degraded) => "!degraded",
    };
    let need = match need {
        None => "",
        Some(Need::Operation) => "+operation",
        Some(Need::Termination) => "+termination",
        Some(Need::Refresh) => "+refresh",
    };
    format!("{state}{attempts}{trouble}{need}")
}

/// Drops repetitions.
pub fn distinct(mut words: Vec<String>) -> String {
    words.dedup();
    words.join(" ")
}
