//! Which HelmReleases belong together.

use std::collections::BTreeMap;

use super::Key;
use super::release::Release;
use crate::import::group::{common_words, connected};
use crate::package::names::Namespace;

/// HelmReleases that become one Package, in the order of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Name of the Package.
    pub name: String,
    /// Namespace of the Package.
    pub namespace: String,
    /// Its HelmReleases.
    pub members: Vec<Key>,
}

/// Groups that `dependsOn` connects; without `gather` only within a namespace.
pub(super) fn groups(keys: &[Key], releases: &BTreeMap<Key, Release>, gather: Option<&Namespace>) -> Vec<Group> {
    let position: BTreeMap<&Key, usize> = keys.iter().enumerate().map(|(index, key)| (key, index)).collect();
    let mut edges = Vec::new();
    for (key, release) in releases {
        for dependency in release.dependencies(key) {
            let together = gather.is_some() || dependency.namespace == key.namespace;
            if let (true, Some(&a), Some(&b)) = (together, position.get(key), position.get(&dependency)) {
                edges.push((a, b));
            }
        }
    }
    let mut groups = Vec::new();
    for set in connected(keys.len(), &edges) {
        let members: Vec<Key> = set.into_iter().filter_map(|index| keys.get(index)).cloned().collect();
        let Some(first) = members.first() else { continue };
        let namespace = gather.map_or_else(|| first.namespace.clone(), ToString::to_string);
        let name = group_name(&members, &groups, &namespace);
        groups.push(Group { name, namespace, members });
    }
    groups
}

/// The words that all members' names start with, else the first member's name,
/// else that with its namespace: the first of these that is free.
fn group_name(members: &[Key], taken: &[Group], namespace: &str) -> String {
    let Some(first) = members.first() else { return String::new() };
    let common = common_words(members.iter().map(|key| key.name.as_str()));
    let full = format!("{}-{}", first.namespace, first.name);
    let candidates = [common, first.name.clone(), full.clone()];
    let free = |name: &String| {
        !name.is_empty() && !taken.iter().any(|group| group.name == *name && group.namespace == namespace)
    };
    candidates.into_iter().find(free).unwrap_or(full)
}
