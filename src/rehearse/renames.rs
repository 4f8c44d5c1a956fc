//! Components that look like others which go: a rename that was not meant as one.

use super::scene::Scene;
use crate::package::definition::{ChartSource, Component, Definition};
use crate::translate::Compiled;

/// What is said of components that are new and install the chart of one that goes into
/// the same namespace. On a cluster the new release would find the objects of the old
/// one, and Helm and Argo CD refuse what belongs to another release.
pub(super) fn remarks(scene: &Scene) -> impl Iterator<Item = String> {
    scene.after.iter().flat_map(|after| {
        let is_it = |before: &&Compiled| id(&before.definition) == id(&after.definition);
        let before = scene.before.iter().find(is_it);
        before.into_iter().flat_map(|before| of(&before.definition, &after.definition))
    })
}

fn of<'a>(before: &'a Definition, after: &'a Definition) -> impl Iterator<Item = String> + 'a {
    let new = after.components.iter().filter(move |component| !component.hook && !is_known(before, component));
    new.filter_map(move |new| {
        let mut gone = before.components.iter().filter(|component| !component.hook && !is_known(after, component));
        let former = gone.find(|former| former.namespace == new.namespace && is_same_chart(former, new))?;
        Some(format!(
            "{}/{}: it installs the chart of `{}`, which goes, beside it: that fails where both have an object of one \
             name; if it is the same under another name, write `install.releaseName: {}`",
            after.name, new.name, former.name, former.release_name
        ))
    })
}

/// Whether a component of a definition has the name or the release of another one.
fn is_known(definition: &Definition, component: &Component) -> bool {
    let release = |component: &Component| (component.namespace.clone(), component.release_name.clone());
    definition
        .components
        .iter()
        .any(|known| !known.hook && (known.name == component.name || release(known) == release(component)))
}

fn is_same_chart(one: &Component, other: &Component) -> bool {
    match (&one.chart, &other.chart) {
        (ChartSource::Repository(one), ChartSource::Repository(other)) => one.name == other.name,
        (ChartSource::Path(one), ChartSource::Path(other)) => one.path == other.path,
        (ChartSource::Repository(_), ChartSource::Path(_)) | (ChartSource::Path(_), ChartSource::Repository(_)) => {
            false
        }
    }
}

fn id(definition: &Definition) -> (&str, &str) {
    (definition.namespace.as_str(), definition.name.as_str())
}
