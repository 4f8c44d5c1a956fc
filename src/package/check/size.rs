//! Whether the record of a revision fits into one object.

use super::Findings;
use crate::package::load::LoadedPackage;
use crate::package::violation::{Code, Violation};

/// Most bytes of a PackageRevision: below what etcd takes with its defaults.
const MAX_REVISION: usize = 1 << 20;
/// What a component's manifests and record take besides what its author wrote.
const OVERHEAD: usize = 4096;

/// A PackageRevision holds every child exactly as applied, so what an author
/// writes is in it once, and what is too much already here is too much there.
pub fn check(package: &LoadedPackage, findings: &mut Findings<'_>) {
    let Some(typed) = &package.package else { return };
    let size = |component| serde_json::to_string(component).map_or(0, |text| text.len());
    let sizes: Vec<usize> = typed.spec.components.iter().map(size).collect();
    let total: usize = sizes.iter().map(|size| size + OVERHEAD).sum();
    let Some((largest, size)) = sizes.iter().enumerate().max_by_key(|(_, size)| **size) else { return };
    if total > MAX_REVISION {
        let name = typed.spec.components.get(largest).map_or("", |component| component.name.as_str());
        let message = format!(
            "a revision of this Package would have about {} KiB, at most {} are allowed; the largest component is `{name}` with {} KiB",
            total >> 10,
            MAX_REVISION >> 10,
            size >> 10
        );
        let help = "move values into the chart, or into a Secret or ConfigMap named by valuesFrom";
        let pointer = format!("/spec/components/{largest}/name");
        findings.error(package, Violation::new(Code::RevisionTooLarge, pointer, message).help(help));
    }
}
