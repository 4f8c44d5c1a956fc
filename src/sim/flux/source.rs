//! source-controller.

use serde_json::{Map, Value, json};

use super::{REQUESTED_AT, SOURCE_CONTROLLER, is_source_ready};
use crate::sim::conditions::{self, Condition};
use crate::sim::json;
use crate::sim::store::{Key, Object, generation, is_deleting};
use crate::sim::world::{Task, World};

/// What a look at a source gave.
enum Found {
    Artifact { revision: String, digest: String, built_from: Option<String> },
    Failed { reason: &'static str, message: String, looked_in: Option<String> },
    NotYet,
}

impl World {
    pub(in crate::sim) fn source_step(&mut self, key: &Key) {
        let Some(source) = self.store.get(key).cloned().filter(|source| !is_deleting(source)) else { return };
        if json::truth(&source, &["spec", "suspend"]) {
            return;
        }
        let found = match key.kind.as_str() {
            "HelmRepository" => self.fetch_index(key),
            "HelmChart" => self.find_chart(key, &source),
            "GitRepository" => self.find_commit(&source),
            _ => self.find_artifact(&source),
        };
        self.write_source(key, &source, found);
        let interval = json::duration(json::text(&source, &["spec", "interval"])).filter(|interval| *interval > 0);
        self.schedule(interval.unwrap_or(600_000), Task::Source(key.clone()));
    }

    /// The index as it is now. Charts published later are not in it.
    fn fetch_index(&mut self, key: &Key) -> Found {
        let now = self.now();
        self.flux.fetched.insert(key.clone(), now);
        let unpublished: Vec<String> = self
            .script
            .published
            .iter()
            .filter(|(_, from)| **from > now)
            .map(|((chart, version), _)| format!("{chart}-{version}"))
            .collect();
        let digest = json::digest(&json!(unpublished));
        Found::Artifact { revision: digest.clone(), digest, built_from: None }
    }

    fn find_chart(&self, key: &Key, chart: &Object) -> Found {
        let text = |path: &[&str]| json::text(chart, path);
        let (kind, name) = (text(&["spec", "sourceRef", "kind"]), text(&["spec", "sourceRef", "name"]));
        let source_key = Key::new(&key.api_version, kind, &key.namespace, name);
        let Some(source) = self.store.get(&source_key).filter(|source| is_source_ready(source)) else {
            return Found::NotYet;
        };
        let built_from = json::text(source, &["status", "artifact", "revision"]).to_owned();
        let (name, version) = (text(&["spec", "chart"]), text(&["spec", "version"]));
        if kind == "GitRepository" {
            return self.chart_in(&built_from, name);
        }
        let fetched = self.flux.fetched.get(&source_key).copied().unwrap_or(0);
        if self.script.has_chart(name, version, fetched) {
            let known = self.script.archives.get(&(name.to_owned(), version.to_owned())).cloned();
            let digest = known.unwrap_or_else(|| json::digest(&json!([name, version])));
            return Found::Artifact { revision: version.to_owned(), digest, built_from: Some(built_from) };
        }
        let message = format!(
            "invalid chart reference: failed to get chart version for remote reference: \
             no '{name}' chart with version matching '{version}' found"
        );
        Found::Failed { reason: "InvalidChartReference", message, looked_in: Some(built_from) }
    }

    fn chart_in(&self, revision: &str, path: &str) -> Found {
        let id = revision.rsplit(':').next().unwrap_or(revision);
        let directory = path.strip_prefix("./").unwrap_or(path);
        match self.script.commit(id).and_then(|commit| commit.charts.get(directory)) {
            Some(version) => {
                let digest = json::digest(&json!([directory, version, id]));
                Found::Artifact { revision: version.clone(), digest, built_from: Some(revision.to_owned()) }
            }
            None => {
                let message = format!("no chart at {directory}");
                Found::Failed { reason: "InvalidChartReference", message, looked_in: Some(revision.to_owned()) }
            }
        }
    }

    fn find_commit(&self, source: &Object) -> Found {
        let reference = |field| json::text(source, &["spec", "ref", field]);
        let commit = match reference("commit") {
            "" => self.script.commits.last(),
            id => self.script.commit(id),
        };
        match commit {
            Some(commit) => {
                let branch = Some(reference("branch")).filter(|branch| !branch.is_empty()).unwrap_or("main");
                let revision = format!("{branch}@sha1:{}", commit.id);
                Found::Artifact { digest: json::digest(&json!(revision)), revision, built_from: None }
            }
            None => Found::Failed { reason: "GitOperationFailed", message: "commit not found".into(), looked_in: None },
        }
    }

    fn find_artifact(&self, source: &Object) -> Found {
        let url = json::text(source, &["spec", "url"]);
        let (name, tag) = (url.rsplit('/').next().unwrap_or(url), json::text(source, &["spec", "ref", "tag"]));
        let pinned = json::text(source, &["spec", "ref", "digest"]);
        let version = self.script.pinned_version(name, pinned);
        if version.is_some_and(|version| self.script.has_chart(name, version, self.now())) {
            return Found::Artifact { revision: pinned.to_owned(), digest: pinned.to_owned(), built_from: None };
        }
        if !tag.is_empty() && self.script.has_chart(name, &tag.replace('_', "+"), self.now()) {
            let digest = json::digest(&json!([name, tag]));
            return Found::Artifact { revision: format!("{tag}@{digest}"), digest, built_from: None };
        }
        Found::Failed { reason: "OCIArtifactPullFailed", message: format!("{url}:{tag}: not found"), looked_in: None }
    }

    fn write_source(&mut self, key: &Key, source: &Object, found: Found) {
        let (now, observed) = (self.now(), generation(source));
        let handled = json::text(source, &["metadata", "annotations", REQUESTED_AT]).to_owned();
        self.write_status(SOURCE_CONTROLLER, key, |status| match found {
            Found::Artifact { revision, digest, built_from } => {
                let message = format!("stored artifact for revision '{revision}'");
                conditions::remove(status, "FetchFailed");
                ready(status, "True", "Succeeded", &message, observed, now);
                status.insert("artifact".into(), json!({"digest": digest, "revision": revision}));
                status.insert("observedGeneration".into(), observed.into());
                if let Some(built_from) = built_from {
                    status.insert("observedSourceArtifactRevision".into(), built_from.into());
                }
                handle(status, handled);
            }
            // observedGeneration stays behind: it moves only with success. In what the chart
            // was looked for is recorded before it is looked for.
            Found::Failed { reason, message, looked_in } => {
                if let Some(looked_in) = looked_in {
                    status.insert("observedSourceArtifactRevision".into(), looked_in.into());
                }
                let failed = Condition {
                    type_: "FetchFailed",
                    status: "True",
                    reason,
                    message: &message,
                    observed_generation: Some(observed),
                };
                conditions::set(status, &failed, now);
                ready(status, "False", reason, &message, observed, now);
                handle(status, handled);
            }
            Found::NotYet => {}
        });
    }
}

fn handle(status: &mut Map<String, Value>, requested: String) {
    if !requested.is_empty() {
        status.insert("lastHandledReconcileAt".into(), requested.into());
    }
}

fn ready(status: &mut Map<String, Value>, value: &str, reason: &str, message: &str, observed: i64, now: u64) {
    let observed_generation = Some(observed);
    conditions::set(status, &Condition { type_: "Ready", status: value, reason, message, observed_generation }, now);
}
