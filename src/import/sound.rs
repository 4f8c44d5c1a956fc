//! What `validate` would refuse of what was imported.

use std::collections::BTreeSet;

use super::{Imported, Severity};
use crate::package::check::{Options, check};
use crate::package::diagnostic;
use crate::package::load::{Input, NamespaceRule, load};
use crate::package::names::Namespace;
use crate::package::yaml;

impl Imported {
    /// Says what is wrong with the Packages as they are written, but for those parts of
    /// which an error has been said already.
    pub fn check(&mut self) {
        let said = self.notes.iter().filter(|note| note.severity == Severity::Error);
        let said: BTreeSet<String> = said.map(|note| note.subject.clone()).collect();
        for (subject, message) in self.errors().into_iter().filter(|(subject, _)| !said.contains(subject)) {
            self.error(subject, message);
        }
    }

    fn errors(&self) -> Vec<(String, String)> {
        let values: Result<Vec<_>, _> = self.packages.iter().map(serde_json::to_value).collect();
        let text = values.ok().and_then(|values| yaml::write::write(&values).ok());
        let Some((text, namespace)) = text.zip(Namespace::parse(super::DEFAULT_NAMESPACE).ok()) else {
            return Vec::new();
        };
        let input = Input::Text { bytes: text.into_bytes(), shown: String::new() };
        let Ok(mut loaded) = load(&[input], &NamespaceRule::Default(namespace)) else { return Vec::new() };
        loaded.diagnostics.extend(check(&loaded, &Options::default()).unwrap_or_default());
        let errors = loaded.diagnostics.into_iter().filter(|found| found.severity == diagnostic::Severity::Error);
        let told = errors.map(|found| {
            let package = found.package.unwrap_or_default();
            let subject = found.component.map_or_else(|| package.clone(), |component| format!("{package}/{component}"));
            let help = if found.help.is_empty() { String::new() } else { format!(": {}", found.help) };
            (subject, format!("{} ({}){help}", found.message, found.code))
        });
        told.collect()
    }
}
