//! Changes to stored objects that move nothing.

use serde_json::{Map, Value};

use super::flux::anchored;
use super::manifest::Manifest;
use crate::api::wellknown::{ANNOTATION_WAVE, ARGO_TRACKING_ID};

/// Fields of a HelmRelease that may change without an upgrade of the release
/// (seen on helm-controller 1.6.3: no new Helm revision).
const FLUX_IN_PLACE: [&[&str]; 6] = [
    &["spec", "interval"],
    &["spec", "timeout"],
    &["spec", "serviceAccountName"],
    &["spec", "driftDetection"],
    &["spec", "healthCheckExprs"],
    &["spec", "waitStrategy"],
];
/// The same inside `install` and `upgrade`, where the stored object has them.
const FLUX_ACTIONS: [&str; 2] = ["install", "upgrade"];
const RESPECT_IGNORE: &str = "RespectIgnoreDifferences=true";

/// The stored release with those settings of a freshly rendered one that move
/// nothing: timeout, retry, interval and drift settings, serviceAccountName,
/// healthCheckExprs, the project, and the wave. Everything else stays verbatim.
///
/// Objects that are not a release of one engine are returned as they are.
pub fn in_place(stored: &Manifest, fresh: &Manifest) -> Manifest {
    let mut result = stored.clone();
    if stored.kind() != fresh.kind() {
        return result;
    }
    match stored.kind() {
        "HelmRelease" => {
            for path in FLUX_IN_PLACE {
                copy(fresh, &mut result, path);
            }
            for action in FLUX_ACTIONS {
                if stored.get(&["spec", action]).is_some() {
                    copy(fresh, &mut result, &["spec", action, "strategy"]);
                }
            }
        }
        "Application" => {
            // What an Application may do is for whoever runs the cluster to say, now.
            copy(fresh, &mut result, &["spec", "project"]);
            copy(fresh, &mut result, &["spec", "ignoreDifferences"]);
            copy_respect_ignore(fresh, &mut result);
        }
        _ => return result,
    }
    for annotation in [ANNOTATION_WAVE, ARGO_TRACKING_ID] {
        copy(fresh, &mut result, &["metadata", "annotations", annotation]);
    }
    result
}

/// The stored release of an earlier version as it goes back: with the account and
/// the project of now, since what acts as others is not for an earlier version to
/// say, and with what drift detection leaves to others. On Argo CD that is not
/// written either, so there it is kept only with `keeps_live`, for what has a
/// canary. Everything else is as it was.
pub fn in_place_back(stored: &Manifest, fresh: &Manifest, keeps_live: bool) -> Manifest {
    let mut result = stored.clone();
    if stored.kind() != fresh.kind() {
        return result;
    }
    match stored.kind() {
        "HelmRelease" => {
            copy(fresh, &mut result, &["spec", "serviceAccountName"]);
            copy(fresh, &mut result, &["spec", "driftDetection"]);
        }
        "Application" => {
            copy(fresh, &mut result, &["spec", "project"]);
            if keeps_live {
                copy(fresh, &mut result, &["spec", "ignoreDifferences"]);
                copy_respect_ignore(fresh, &mut result);
            }
        }
        _ => return result,
    }
    copy(fresh, &mut result, &["metadata", "annotations", ARGO_TRACKING_ID]);
    result
}

/// The stored release with nothing of the present spec but as whom it acts: the
/// account on Flux, the project on Argo CD.
pub fn acting_as(stored: &Manifest, account: Option<&str>, project: &str) -> Manifest {
    let mut result = stored.clone();
    match (stored.kind(), account) {
        ("HelmRelease", Some(account)) => set(result.map_mut(), &["spec", "serviceAccountName"], account.into()),
        ("HelmRelease", None) => remove(result.map_mut(), &["spec", "serviceAccountName"]),
        ("Application", _) => set(result.map_mut(), &["spec", "project"], project.into()),
        _ => {}
    }
    result
}

/// Whether a release object keeps the first step of the rollout of a DaemonSet, or
/// without a name of each, small by itself: by the budget of 1 that a post-renderer
/// writes on Flux, by keeping the live one on Argo CD.
pub fn keeps_the_first_step_small(release: &Map<String, Value>, name: Option<&str>) -> bool {
    let text = |path: &[&str]| Manifest::get_in(release, path).map(Value::to_string).unwrap_or_default();
    match release.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "HelmRelease" => {
            let name = name.map(anchored);
            pinned_names(release).into_iter().any(|pinned| pinned.is_none() || pinned == name)
        }
        "Application" => {
            text(&["spec", "syncPolicy", "syncOptions"]).contains(RESPECT_IGNORE)
                && text(&["spec", "ignoreDifferences"]).contains("/spec/updateStrategy")
        }
        _ => false,
    }
}

/// Patterns of the names of DaemonSets to which the post-renderers of a HelmRelease give
/// a budget of 1; `None`: all of them.
pub fn pinned_names(release: &Map<String, Value>) -> Vec<Option<String>> {
    let renderers = Manifest::get_in(release, &["spec", "postRenderers"]).and_then(Value::as_array);
    let patches = renderers
        .into_iter()
        .flatten()
        .filter_map(|renderer| renderer.pointer("/kustomize/patches")?.as_array())
        .flatten();
    patches.filter_map(pinned_by).collect()
}

fn pinned_by(patch: &Value) -> Option<Option<String>> {
    let text = patch.get("patch").and_then(Value::as_str)?;
    let has = |wanted: &str| text.lines().any(|line| line.trim() == wanted);
    let target = patch.get("target").filter(|target| target.is_object());
    let kind = target.and_then(|target| target.get("kind")).and_then(Value::as_str);
    if !has("maxUnavailable: 1") || !(kind == Some("DaemonSet") || (kind.is_none() && has("kind: DaemonSet"))) {
        return None;
    }
    // Without a target a patch is for the one object that it names itself.
    let named = || text.lines().find_map(|line| line.trim().strip_prefix("name: ")).map(anchored);
    Some(match target {
        Some(target) => target.get("name").and_then(Value::as_str).map(str::to_owned),
        None => named(),
    })
}

/// Settings of a live HelmRelease that the wanted one no longer has, as a merge
/// patch that takes them away. An apply does not notice them: all that is wanted
/// is there. An Application is written as a whole.
pub fn surplus(wanted: &Manifest, live: &Map<String, Value>) -> Option<Value> {
    if wanted.kind() != "HelmRelease" {
        return None;
    }
    let live = live.get("spec").and_then(Value::as_object)?;
    let mut spec = Map::new();
    for path in FLUX_IN_PLACE {
        let [_, field] = path else { continue };
        match (wanted.get(path), live.get(*field)) {
            (None, Some(_)) => {
                spec.insert((*field).to_owned(), Value::Null);
            }
            (Some(Value::Object(wanted)), Some(Value::Object(live))) => {
                let more = live.keys().filter(|key| !wanted.contains_key(*key));
                let more: Map<String, Value> = more.map(|key| (key.clone(), Value::Null)).collect();
                if !more.is_empty() {
                    spec.insert((*field).to_owned(), more.into());
                }
            }
            (Some(_) | None, _) => {}
        }
    }
    (!spec.is_empty()).then(|| serde_json::json!({"spec": spec}))
}

/// The stored release as a rollback writes it: CRDs are left alone, since going
/// back to an older schema is refused by the API server once objects are stored
/// at a version which that schema lacks.
///
/// Without `is_waited_for` the engine does not wait for its objects: those that an
/// operator reports on have to wait until that is back itself.
pub fn rollback_form(stored: &Manifest, is_waited_for: bool) -> Manifest {
    let mut result = stored.clone();
    match stored.kind() {
        "HelmRelease" => {
            set(result.map_mut(), &["spec", "upgrade", "crds"], "Skip".into());
            if !is_waited_for {
                set(result.map_mut(), &["spec", "upgrade", "disableWait"], true.into());
                remove(result.map_mut(), &["spec", "healthCheckExprs"]);
                remove(result.map_mut(), &["spec", "waitStrategy"]);
            }
        }
        "Application" => set(result.map_mut(), &["spec", "source", "helm", "skipCrds"], true.into()),
        _ => {}
    }
    result
}

fn copy(from: &Manifest, to: &mut Manifest, path: &[&str]) {
    match from.get(path) {
        Some(value) => set(to.map_mut(), path, value.clone()),
        None => remove(to.map_mut(), path),
    }
}

fn set(map: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => {
            map.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => {
            let child = map.entry(*first).or_insert_with(|| Map::new().into());
            if !child.is_object() {
                *child = Map::new().into();
            }
            if let Value::Object(child) = child {
                set(child, rest, value);
            }
        }
    }
}

fn remove(map: &mut Map<String, Value>, path: &[&str]) {
    match path {
        [] => {}
        [last] => {
            map.shift_remove(*last);
        }
        [first, rest @ ..] => {
            if let Some(Value::Object(child)) = map.get_mut(*first) {
                remove(child, rest);
            }
        }
    }
}

fn copy_respect_ignore(from: &Manifest, to: &mut Manifest) {
    const PATH: [&str; 3] = ["spec", "syncPolicy", "syncOptions"];
    let options = |manifest: &Manifest| manifest.get(&PATH).and_then(Value::as_array).cloned().unwrap_or_default();
    let respected = |option: &Value| option.as_str() == Some(RESPECT_IGNORE);
    let wanted = options(from).iter().any(respected);
    let mut result = options(to);
    if result.iter().any(respected) == wanted {
        return;
    }
    if wanted {
        result.push(RESPECT_IGNORE.into());
    } else {
        result.retain(|option| !respected(option));
    }
    set(to.map_mut(), &PATH, result.into());
}
