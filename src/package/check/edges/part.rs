//! What a component brings and what it uses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use crate::chart::{Look, group};
use crate::package::check::names::Owned;

/// Something that one component brings and another one uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// A kind, by its definition.
    Kind { group: String, kind: String },
    /// A namespace.
    Namespace(String),
    /// An account of pods.
    Account { namespace: String, name: String },
}

impl fmt::Display for Thing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { group, kind } => write!(formatter, "{kind} of {group}"),
            Self::Namespace(name) => write!(formatter, "Namespace `{name}`"),
            Self::Account { namespace, name } => write!(formatter, "ServiceAccount `{name}` in `{namespace}`"),
        }
    }
}

/// What is used, and where.
pub type Uses = BTreeMap<Thing, String>;

/// One component and what its chart says.
pub struct Part<'a> {
    pub own: Owned<'a>,
    pub look: Option<Rc<Look>>,
}

impl<'a> Part<'a> {
    pub fn package(&self) -> (&'a str, &'a str) {
        (self.own.definition.namespace.as_str(), self.own.definition.name.as_str())
    }

    pub fn name(&self) -> &'a str {
        self.own.component.name.as_str()
    }

    pub fn brings(&self) -> BTreeSet<Thing> {
        let Some(look) = &self.look else { return BTreeSet::new() };
        let kinds = look.crds.iter().map(|crd| Thing::Kind { group: crd.group.clone(), kind: crd.kind.clone() });
        let objects = look.objects.iter().filter(|object| object.group.is_empty());
        let objects = objects.filter_map(|object| match (object.kind.as_str(), &object.name, &object.namespace) {
            ("Namespace", Some(name), _) => Some(Thing::Namespace(name.clone())),
            ("ServiceAccount", Some(name), Some(namespace)) => {
                Some(Thing::Account { namespace: namespace.clone(), name: name.clone() })
            }
            _ => None,
        });
        kinds.chain(objects).collect()
    }

    pub fn uses(&self) -> Uses {
        let component = self.own.component;
        let mut uses = Uses::new();
        let mut add = |thing: Thing, place: &str| {
            uses.entry(thing).or_insert_with(|| place.to_owned());
        };
        for object in self.look.iter().flat_map(|look| &look.objects) {
            add(Thing::Kind { group: object.group.clone(), kind: object.kind.clone() }, &object.file);
            let Some(namespace) = &object.namespace else { continue };
            if let Some(name) = &object.account {
                add(Thing::Account { namespace: namespace.clone(), name: name.clone() }, &object.file);
            }
            if *namespace != component.namespace.as_str() {
                add(Thing::Namespace(namespace.clone()), &object.file);
            }
        }
        add(Thing::Namespace(component.namespace.to_string()), "install.namespace");
        for entry in &component.ready_when {
            add(Thing::Kind { group: group(&entry.api_version).to_owned(), kind: entry.kind.clone() }, "readyWhen");
        }
        // It holds the Package, so it is there.
        uses.remove(&Thing::Namespace(self.own.definition.namespace.to_string()));
        uses
    }
}
