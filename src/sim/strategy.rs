//! Update strategies of DaemonSets between the engines: what a post-renderer
//! pins, and what is left as it is.

use serde_json::{Map, Value, json};

use super::json;
use super::store::{Key, Store};

const STRATEGY: [&str; 2] = ["spec", "updateStrategy"];
const POINTER: &str = "/spec/updateStrategy";
/// Raised with every change of the template, and by nothing else.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The budget of 1 that a post-renderer writes.
pub(super) fn pin(object: &mut Map<String, Value>) {
    if json::text(object, &["kind"]) == "DaemonSet" {
        let [spec, strategy] = STRATEGY;
        json::set(object, &[spec, strategy, "rollingUpdate"], json!({"maxUnavailable": 1, "maxSurge": 0}));
    }
}

/// Whether a post-renderer of a HelmRelease pins the budget.
pub(super) fn is_pinned(release: &Map<String, Value>) -> bool {
    let renderers = json::at(release, &["spec", "postRenderers"]).map(Value::to_string).unwrap_or_default();
    renderers.contains("kind: DaemonSet") && renderers.contains("maxUnavailable: 1")
}

/// Whether an engine's object says that others own the strategy.
pub(super) fn is_ignored(object: &Map<String, Value>) -> bool {
    let ignores = [&["spec", "driftDetection", "ignore"][..], &["spec", "ignoreDifferences"]];
    ignores.iter().filter_map(|path| json::at(object, path)).any(|ignore| ignore.to_string().contains(POINTER))
}

/// Whether Argo CD leaves alone what others own also when it applies.
pub(super) fn is_respected(application: &Map<String, Value>) -> bool {
    let options = json::at(application, &["spec", "syncPolicy", "syncOptions"]).map(Value::to_string);
    is_ignored(application) && options.is_some_and(|options| options.contains("RespectIgnoreDifferences=true"))
}

/// Gives a DaemonSet that is to be applied the strategy of the live one.
pub(super) fn keep_live(store: &Store, object: &mut Map<String, Value>) {
    if json::text(object, &["kind"]) != "DaemonSet" {
        return;
    }
    let live = store.get(&Key::of(object)).and_then(|live| json::at(live, &STRATEGY).cloned());
    if let Some(live) = live {
        json::set(object, &STRATEGY, live);
    }
}

/// Counts templates, as the API server does.
pub(super) fn count_templates(before: Option<&Map<String, Value>>, object: &mut Map<String, Value>) {
    let template = |object: &Map<String, Value>| json::at(object, &["spec", "template"]).cloned();
    let path = ["metadata", "annotations", TEMPLATE_GENERATION];
    let known = before.map_or(0, |before| json::text(before, &path).parse().unwrap_or(0));
    let changed = before.is_none_or(|before| template(before) != template(object));
    let number: u64 = known + u64::from(changed);
    json::set(object, &path, number.to_string().into());
}
