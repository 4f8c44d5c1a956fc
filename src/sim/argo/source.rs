//! What an Application asks for.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::TRACKING_ID;
use crate::sim::helm::{self, Plan};
use crate::sim::json;
use crate::sim::store::Key;
use crate::sim::world::World;

/// Why a source cannot be rendered.
pub(super) struct Missing(pub String);

impl World {
    /// The plan of a source of an Application.
    pub(super) fn argo_plan(&self, application: &Map<String, Value>, source: &Value) -> Result<Plan, Missing> {
        let text = |pointer: &str| source.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let (chart, revision) = (text("/chart"), text("/targetRevision"));
        let (chart, version) = if chart.is_empty() {
            let path = text("/path");
            // A commit nobody scripted holds every chart, at a version named like it.
            let version = match self.script.commit(revision) {
                Some(commit) => commit.charts.get(path).cloned(),
                None => Some(revision.to_owned()),
            };
            let version = version.ok_or_else(|| Missing(format!("{path}: app path does not exist")))?;
            (path.rsplit('/').next().unwrap_or(path), version)
        } else {
            (chart, revision.to_owned())
        };
        let name = json::text(application, &["metadata", "name"]);
        let release = Some(text("/helm/releaseName")).filter(|release| !release.is_empty()).unwrap_or(name);
        let namespace = json::text(application, &["spec", "destination", "namespace"]).to_owned();
        let values = source.pointer("/helm/valuesObject").cloned().unwrap_or_else(|| serde_json::json!({}));
        let plan = Plan {
            identity: (namespace.clone(), release.to_owned()),
            namespace,
            chart: chart.to_owned(),
            shown: version.clone(),
            manifest: None,
            version,
            config: json::digest(&values),
            rendered_with: String::new(),
            kept: BTreeSet::new(),
            pinned: false,
            labels: Vec::new(),
        };
        // What ran is kept by the repository server, and fetched by nobody.
        let is_there = self.script.ran.contains(&plan.rendering())
            || !text("/path").is_empty()
            || self.script.has_chart(&plan.chart, revision, self.now());
        let missing = || Missing(format!("chart \"{}\" version \"{revision}\" not found", plan.chart));
        if is_there { Ok(plan) } else { Err(missing()) }
    }

    /// The objects of a plan, with the mark of the Application.
    pub(super) fn argo_render(&self, application: &Key, plan: &Plan) -> Vec<Map<String, Value>> {
        let mut objects = helm::render(&self.script, plan);
        for object in &mut objects {
            let key = Key::of(object);
            let (group, _) = key.api_version.split_once('/').unwrap_or(("", ""));
            let id = format!("{}:{group}/{}:{}/{}", application.name, key.kind, key.namespace, key.name);
            json::set(object, &["metadata", "annotations", TRACKING_ID], id.into());
        }
        objects
    }
}
