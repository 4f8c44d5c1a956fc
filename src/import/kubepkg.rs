//! kubepkg PackageSources (`kubepkg.dev`).

use super::{Document, Imported, Options, package_source};

/// API group of kubepkg's PackageSources.
pub const GROUP: &str = "kubepkg.dev";

/// Turns PackageSources into Packages; `options` gives the version of those
/// that have none. `dependsOn` and `requires` of the chosen variant become `requires`.
pub fn import(documents: &[Document], options: &Options<'_>) -> Imported {
    package_source::import(GROUP, documents, options)
}
