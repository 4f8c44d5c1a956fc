//! Cozystack PackageSources (`cozystack.io/v1alpha1`).

use super::{Document, Imported, Options, package_source};

/// API group of Cozystack's PackageSources.
pub const GROUP: &str = "cozystack.io";

/// Turns PackageSources into Packages of the version in `options`, since
/// Cozystack's have none. `dependsOn` of the chosen variant becomes `requires`.
pub fn import(documents: &[Document], options: &Options<'_>) -> Imported {
    package_source::import(GROUP, documents, options)
}
