//! What plugin.yaml says.

use serde_json::Value;

use super::{Cause, Examination};
use crate::package::yaml;

/// What of plugin.yaml counts.
pub(super) struct PluginFile {
    pub(super) generate: Vec<String>,
    pub(super) parameters: Vec<String>,
    /// The name that Applications write, and that the socket has.
    pub(super) served: String,
}

/// The kind of plugin.yaml.
pub(super) const KIND: &str = "ConfigManagementPlugin";

fn invalid(place: &str, message: &str, found: &mut Examination) {
    const AS_SHIPPED: &str = "use argocd-plugin/plugin.yaml as it is shipped, and restart the pod";
    found.find(Cause::ConfigurationInvalid, place, message, AS_SHIPPED);
}

/// Reads plugin.yaml and says what is wrong with it; `None` if Argo CD cannot
/// read it.
pub(super) fn read(text: &str, place: &str, found: &mut Examination) -> Option<PluginFile> {
    let mut documents = yaml::parse(text);
    if let Some(problem) = documents.problems.first() {
        invalid(place, &format!("it is no YAML: {}", problem.message), found);
        return None;
    }
    let value = if documents.documents.is_empty() { Value::Null } else { documents.documents.remove(0).into_value() };
    take(&value, place, found)
}

/// The same of a document that has been read.
pub(super) fn take(value: &Value, place: &str, found: &mut Examination) -> Option<PluginFile> {
    let mut invalid = |message: &str| invalid(place, message, found);
    let word = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    if word("/kind") != KIND {
        invalid(&format!("its kind is `{}` and not {KIND}", word("/kind")));
        return None;
    }
    let (name, version) = (word("/metadata/name"), word("/spec/version"));
    if name.is_empty() {
        invalid("it has no metadata.name");
        return None;
    }
    let generate = command(value, "/spec/generate");
    if generate.is_empty() {
        invalid("it has no spec.generate.command");
        return None;
    }
    let served = if version.is_empty() { name } else { format!("{name}-{version}") };
    if !version.is_empty() {
        let message = format!(
            "spec.version is {version}: the plugin is named `{served}`, and no Application finds it by another name"
        );
        let help = format!("take spec.version away, or write `{served}` in every Application");
        found.find(Cause::NameHasVersion, place, message, help);
    }
    if value.pointer("/spec/discover").is_some_and(|discover| !discover.is_null()) {
        let message = "spec.discover is there: every repository is sent to this plugin, and one that does not match is \
                       not compiled, even if its Application names the plugin";
        found.find(Cause::Discovers, place, message, "take spec.discover away: Applications name the plugin");
    }
    Some(PluginFile { generate, parameters: command(value, "/spec/parameters/dynamic"), served })
}

/// `command` and `args`, which are one list to Argo CD.
fn command(value: &Value, pointer: &str) -> Vec<String> {
    let words =
        |name: &str| value.pointer(&format!("{pointer}/{name}")).and_then(Value::as_array).into_iter().flatten();
    let command: Vec<String> = words("command").filter_map(Value::as_str).map(str::to_owned).collect();
    if command.is_empty() {
        return command;
    }
    command.into_iter().chain(words("args").filter_map(Value::as_str).map(str::to_owned)).collect()
}

impl PluginFile {
    /// Says whether its commands are ours.
    pub(super) fn check_commands(&self, place: &str, found: &mut Examination) {
        if self.generate.get(1..) != Some(&["plugin".to_owned(), "generate".to_owned()]) {
            let message = format!("spec.generate runs `{}`", self.generate.join(" "));
            let help = "write command: [/usr/local/bin/windlass, plugin, generate]; there is no shell";
            found.find(Cause::WrongCommand, place, message, help);
        }
        let announces = self.parameters.get(1..) == Some(&["plugin".to_owned(), "parameters".to_owned()]);
        if !self.parameters.is_empty() && !announces {
            let message = format!("spec.parameters.dynamic runs `{}`", self.parameters.join(" "));
            let help = "write command: [/usr/local/bin/windlass, plugin, parameters]";
            found.find(Cause::WrongParametersCommand, place, message, help);
        }
    }
}
