//! Where a `sourceRef` clones from, and which commit of it is meant.

use serde_json::{Map, Value};

/// Fields of a GitRepository that decide how files are fetched and which of
/// them are kept. All others (`ref`, `interval`, `suspend`) are ours to set.
const CARRIED: [&str; 10] = [
    "secretRef",
    "provider",
    "serviceAccountName",
    "proxySecretRef",
    "timeout",
    "verify",
    "ignore",
    "include",
    "recurseSubmodules",
    "sparseCheckout",
];

/// Where a GitRepository clones from, enough to clone one commit the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct GitOrigin {
    pub(super) url: String,
    pub(super) branch: Option<String>,
    pub(super) carried: Map<String, Value>,
}

impl GitOrigin {
    /// An origin that needs nothing but its URL.
    pub fn from_url(url: impl Into<String>) -> Self {
        Self { url: url.into(), branch: None, carried: Map::new() }
    }

    /// The origin of a live GitRepository: its URL, its branch if it follows
    /// one, its credentials and its selection of files. `None` without a URL.
    pub fn from_spec(spec: &Map<String, Value>) -> Option<Self> {
        let url = spec.get("url")?.as_str()?.to_owned();
        let branch = spec.get("ref").and_then(|reference| reference.get("branch")).and_then(Value::as_str);
        let carried =
            CARRIED.iter().filter_map(|key| spec.get(*key).map(|value| ((*key).to_owned(), value.clone()))).collect();
        Some(Self { url, branch: branch.map(str::to_owned), carried })
    }
}

/// A commit, 40 or 64 lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commit(String);

impl Commit {
    /// Parses a bare commit, or one at the end of what Flux writes as the
    /// revision of an artifact: `main@sha1:<commit>`, `sha256:<commit>`.
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text.rsplit(['@', ':']).next().unwrap_or(text);
        let hex = bare.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (hex && matches!(bare.len(), 40 | 64)).then(|| Self(bare.to_owned()))
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
