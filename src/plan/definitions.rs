//! CustomResourceDefinitions that change with their charts.

use super::{Finding, Sides, gates};
use crate::api::{Engine, UpgradeCrds};
use crate::chart::Crd;
use crate::chart::compare::{CrdChange, Stored, changes};
use crate::package::definition::{ChartSource, Component, Definition};
use crate::package::violation::Code;

/// So many fields are named one by one.
const NAMED: usize = 5;

/// What changes of the kinds that a Package's charts define. Nothing is said of
/// what cannot be read, nor of what may only have moved there.
pub fn findings(sides: &Sides<'_>) -> Vec<Finding> {
    let Some(from) = sides.from.map(|package| &package.definition) else { return Vec::new() };
    let mut findings = Vec::new();
    for before in from.components.iter().filter(|component| !component.hook) {
        let Some(look) = sides.states.0.library.look(before) else { continue };
        let pair = Pair { sides, from, before, after: sides.after(before) };
        for crd in &look.crds {
            pair.compare(crd, &mut findings);
        }
    }
    findings
}

/// A component before and after.
struct Pair<'a> {
    sides: &'a Sides<'a>,
    from: &'a Definition,
    before: &'a Component,
    after: Option<&'a Component>,
}

impl<'a> Sides<'a> {
    fn to_definition(&self) -> Option<&'a Definition> {
        self.to.map(|package| &package.definition)
    }

    fn after(&self, before: &Component) -> Option<&'a Component> {
        self.to_definition().and_then(|to| gates::component(to, before.name.as_str()))
    }
}

impl Pair<'_> {
    fn compare(&self, before: &Crd, findings: &mut Vec<Finding>) {
        match self.counterpart(&before.name) {
            Some((component, after)) => {
                if is_applied(component, &after) {
                    let changes = changes(before, &after).into_iter();
                    findings.extend(changes.map(|change| told(component, &before.name, change)));
                }
            }
            None => findings.extend(self.gone(before)),
        }
    }

    /// The definition of that name afterwards, and whose it is: the same
    /// component's, else any other's.
    fn counterpart(&self, name: &str) -> Option<(&Component, Crd)> {
        let to = self.sides.states.1;
        let of = |component: &Component| {
            let look = to.library.look(component)?;
            look.crds.iter().find(|crd| crd.name == name).cloned()
        };
        let own = self.after.into_iter().chain(self.sides.to_definition().into_iter().flat_map(|to| &to.components));
        let others = to.packages.iter().flat_map(|package| &package.definition.components);
        own.chain(others).find_map(|component| Some((component, of(component)?)))
    }

    /// What becomes of a definition that is in no chart any more.
    fn gone(&self, crd: &Crd) -> Option<Finding> {
        let engine = self.from.engine.unwrap_or(Engine::Flux);
        let goes_with_it = match engine {
            Engine::Flux => crd.is_templated && self.before.delete_data && !crd.is_kept,
            Engine::Argo => self.after.is_some() && !crd.is_kept,
        };
        let message = match (self.after, goes_with_it) {
            (None, true) => "goes with the component, and with it every object of its kind: install.deleteData is true",
            // That everything stays is said where the component goes.
            (None, false) => return None,
            (Some(_), true) if engine == Engine::Argo => {
                "is not in the chart any more: Argo CD prunes it, and with it every object of its kind; annotate it \
                 with argocd.argoproj.io/sync-options: Prune=false first, if they are to stay"
            }
            (Some(_), true) => {
                "is not in the chart any more: Helm deletes it, and with it every object of its kind, since \
                 install.deleteData is true"
            }
            (Some(_), false) => {
                "is not in the chart any more: the cluster keeps it and its objects, and nobody updates it"
            }
        };
        let is_unknown = self.after.is_some() && self.may_be_elsewhere(&crd.name);
        (!is_unknown).then(|| finding(Code::DefinitionGone, self.before, &crd.name, message.to_owned()))
    }

    /// Whether a definition may be where it cannot be seen: in a chart that
    /// cannot be read, and was not the same before.
    fn may_be_elsewhere(&self, name: &str) -> bool {
        let library = self.sides.states.1.library;
        let hides = |component: &Component| match library.look(component) {
            Some(look) => look.may_hide_crds || library.mentions(component, name),
            None => !is_as_before(self.from, component),
        };
        self.sides.to_definition().is_some_and(|to| to.components.iter().any(hides))
    }
}

/// Whether a component has the chart that it had.
fn is_as_before(from: &Definition, component: &Component) -> bool {
    let chart = |component: &Component| match &component.chart {
        ChartSource::Repository(chart) => Some((chart.name.clone(), chart.version.clone())),
        // Its files may be others at the same path.
        ChartSource::Path(_) => None,
    };
    let before = gates::component(from, component.name.as_str());
    before.and_then(chart).is_some_and(|before| chart(component) == Some(before))
}

/// Whether the engine brings what the chart says of a definition that is there.
fn is_applied(component: &Component, crd: &Crd) -> bool {
    crd.is_templated || component.upgrade_crds == UpgradeCrds::CreateReplace
}

fn told(component: &Component, name: &str, change: CrdChange) -> Finding {
    let (code, message) = match change {
        CrdChange::NotServed { version } => (
            Code::VersionNotServed,
            format!("version {version} is not served any more: whatever still asks for it gets an error"),
        ),
        CrdChange::StoredRemoved { version, stored } => {
            let why = match stored {
                Stored::Now => "objects are stored in it",
                Stored::Stated => "its status says that objects are stored in it",
                Stored::Presumably => {
                    "it was kept without being served, as versions are that objects are still stored in"
                }
            };
            let remedy = "an API server refuses that while status.storedVersions names it; write every object anew and take it out there first";
            (Code::StoredVersionRemoved, format!("version {version} is removed, and {why}: {remedy}"))
        }
        CrdChange::FieldsGone { version, fields } => {
            let named: Vec<String> = fields.iter().take(NAMED).map(|field| format!("`{field}`")).collect();
            let more = match fields.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!(
                "version {version} has no {}{more} any more: what objects say there is dropped when they are next written",
                named.join(", ")
            );
            (Code::FieldGone, message)
        }
    };
    finding(code, component, name, message)
}

fn finding(code: Code, component: &Component, name: &str, message: String) -> Finding {
    Finding { code, component: component.name.to_string(), object: format!("CustomResourceDefinition/{name}"), message }
}
