//! What a pod of the new template comes to: the same judgement in every phase.

use std::collections::BTreeMap;

use super::objects::{Container, Node, Pod};
use crate::api::RolloutReason;

/// How a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is ready, and so is its node.
    Ready,
    /// It may become ready yet; the message says what is missing.
    NotReady(String),
    /// It will not become ready by itself.
    Broken(RolloutReason, String),
}

/// Reasons of a waiting container that tell of an image.
const IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ImageInspectError",
    "ErrImageNeverPull",
    "RegistryUnavailable",
    "InvalidImageName",
];
/// Reasons of a waiting container that tell of its configuration.
const CONFIGURATION: [&str; 6] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
];
const CRASH_LOOP: &str = "CrashLoopBackOff";

/// Crashes of containers, by `mark`.
pub type Crashes = BTreeMap<String, u32>;

/// How a pod is on its node. A container may crash `max_restarts` times beside
/// those `before` the rollout: a crash that has not been followed by a restart yet
/// counts too.
pub fn health(pod: &Pod, node: Option<&Node>, max_restarts: u32, before: &Crashes) -> Health {
    let forgiven = |container: &Container| match before.is_empty() {
        true => max_restarts,
        false => max_restarts.saturating_add(before.get(&mark(pod, container)).copied().unwrap_or(0)),
    };
    let broken = pod.containers.iter().find_map(|container| broken(container, forgiven(container)));
    if let Some((reason, message)) = broken {
        return Health::Broken(reason, format!("{}: {message}", place(pod)));
    }
    if node.is_some_and(|node| !node.ready) {
        return Health::NotReady(format!("{}: the node is not ready", place(pod)));
    }
    if pod.ready {
        return Health::Ready;
    }
    Health::NotReady(format!("{}: {}", place(pod), missing(pod)))
}

/// Pod and node, as messages name them.
pub fn place(pod: &Pod) -> String {
    match &pod.node {
        Some(node) => format!("pod {} on node {node}", pod.name),
        None => format!("pod {}", pod.name),
    }
}

/// Names a container of a pod.
fn mark(pod: &Pod, container: &Container) -> String {
    format!("{}/{}", pod.uid, container.name)
}

/// How often containers of a pod have crashed, of those that have.
pub fn crashes_of(pod: &Pod) -> impl Iterator<Item = (String, u32)> {
    let crashed = pod.containers.iter().map(|container| (container, crashes(container)));
    crashed.filter(|(_, crashes)| *crashes > 0).map(|(container, crashes)| (mark(pod, container), crashes))
}

fn broken(container: &Container, forgiven: u32) -> Option<(RolloutReason, String)> {
    if let Some((reason, message)) = &container.waiting {
        let cause = match reason.as_str() {
            reason if IMAGE.contains(&reason) => Some(RolloutReason::ImageUnavailable),
            reason if CONFIGURATION.contains(&reason) => Some(RolloutReason::CannotStart),
            _ => None,
        };
        if let Some(cause) = cause {
            let detail = if message.is_empty() { String::new() } else { format!(" ({})", one_line(message)) };
            return Some((cause, format!("container {}: {reason}{detail}", container.name)));
        }
    }
    let crashes = crashes(container);
    (crashes > forgiven).then(|| (RolloutReason::Crashing, crash_message(container)))
}

/// Restarts so far, and the crash that waits for the next one.
fn crashes(container: &Container) -> u32 {
    let in_back_off = container.waiting.as_ref().is_some_and(|(reason, _)| reason == CRASH_LOOP);
    let down = container.terminated.as_ref().is_some_and(|exit| !(container.init && exit.code == 0));
    container.restarts + u32::from(in_back_off || down)
}

fn crash_message(container: &Container) -> String {
    let exit = container.terminated.as_ref().or(container.last.as_ref());
    let how = exit.map_or_else(String::new, |exit| {
        let reason = if exit.reason.is_empty() { String::new() } else { format!(" ({})", exit.reason) };
        format!(", last exit code {}{reason}", exit.code)
    });
    let state = container.waiting.as_ref().map_or("", |(reason, _)| reason.as_str());
    let state = if state.is_empty() { "crashed" } else { state };
    format!("container {}: {state}, {} restarts{how}", container.name, container.restarts)
}

/// What a pod that is not broken lacks.
fn missing(pod: &Pod) -> String {
    if let Some(reason) = &pod.unscheduled {
        return format!("not scheduled: {}", one_line(reason));
    }
    let waiting = pod.containers.iter().find_map(|container| {
        let (reason, _) = container.waiting.as_ref()?;
        Some(format!("container {}: {reason}", container.name))
    });
    match waiting {
        Some(waiting) => waiting,
        None if pod.phase.is_empty() || pod.phase == "Running" => "not ready".to_owned(),
        None => format!("not ready, phase {}", pod.phase),
    }
}

/// Longest text of a kubelet or scheduler that a message repeats, in characters.
const MAX_QUOTE: usize = 200;

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
