//! PackageSources, the shape that Cozystack and kubepkg share.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::wire::{Ignored, Unreadable, nullable, read};
use super::{DEFAULT_NAMESPACE, Document, ForeignSource, Imported, Options, Severity, bare, join_path, stated};
use crate::api::{
    Chart, Component, HealthCheckExpr, Install, PackageSpec, Phase, ReadyWhen, Requirement, Rollback, SourceKind,
    SourceRef, UpgradeCrds,
};

/// Name of the variant that is taken unless another one is chosen.
const DEFAULT_VARIANT: &str = "default";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SourceDocument {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default, deserialize_with = "nullable")]
    version: String,
    source_ref: Option<WireSource>,
    rollback: Option<WireRollback>,
    #[serde(default, deserialize_with = "nullable")]
    variants: Vec<Value>,
}

#[derive(Clone, Default, Deserialize)]
struct WireSource {
    #[serde(default, deserialize_with = "nullable")]
    kind: String,
    #[serde(default, deserialize_with = "nullable")]
    name: String,
    namespace: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    path: String,
}

#[derive(Deserialize)]
struct WireRollback {
    safe: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Variant {
    #[serde(default, deserialize_with = "nullable", rename = "name")]
    _name: String,
    #[serde(default, deserialize_with = "nullable")]
    depends_on: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    requires: Vec<WireRequirement>,
    #[serde(default, deserialize_with = "nullable")]
    components: Vec<WireComponent>,
}

#[derive(Deserialize)]
struct WireRequirement {
    package: Option<String>,
    capability: Option<String>,
    version: Option<String>,
    optional: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireComponent {
    name: String,
    path: Option<String>,
    chart: Option<WireChart>,
    values: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "nullable")]
    values_files: Vec<String>,
    install: Option<WireInstall>,
}

#[derive(Deserialize)]
struct WireChart {
    repository: String,
    name: String,
    version: String,
    digest: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireInstall {
    namespace: Option<String>,
    release_name: Option<String>,
    privileged: Option<bool>,
    #[serde(default, deserialize_with = "nullable")]
    depends_on: Vec<String>,
    phase: Option<Phase>,
    #[serde(rename = "upgradeCRDs")]
    upgrade_crds: Option<UpgradeCrds>,
    #[serde(default, deserialize_with = "nullable")]
    ready_when: Vec<ReadyWhen>,
    #[serde(default, deserialize_with = "nullable")]
    health_check_exprs: Vec<HealthCheckExpr>,
}

/// Turns the PackageSources of an API group into Packages.
pub(super) fn import(group: &str, documents: &[Document], options: &Options<'_>) -> Imported {
    let mut imported = Imported::default();
    let mut sources = Vec::new();
    for document in documents {
        if (document.group(), document.kind()) != (group, "PackageSource") {
            not_a_source(&mut imported, group, document);
            continue;
        }
        match read::<SourceDocument>(&document.value) {
            Ok((source, ignored)) => sources.push((document, source, ignored)),
            Err(error) => imported.error(document.place(&error), format!("no {group} PackageSource: {error}")),
        }
    }
    let namespace = namespace(&sources.iter().map(|(_, source, _)| &source.spec).collect::<Vec<_>>(), options);
    if sources.is_empty() {
        imported.error(group, format!("there is no PackageSource of {group} in the input"));
    } else if options.namespace.is_none() && namespace == DEFAULT_NAMESPACE {
        imported.warn(group, format!("the Packages are in namespace {namespace}: give -n to say another one"));
    }
    for (document, source, ignored) in sources {
        let name = source.metadata.name.clone();
        report_ignored(&mut imported, &name, &ignored);
        Translation { imported: &mut imported, options, document, name: &name, namespace: &namespace }
            .source(source.spec);
    }
    imported
}

fn not_a_source(imported: &mut Imported, group: &str, document: &Document) {
    let (kind, name) = (document.kind(), document.text("/metadata/name"));
    if (document.group(), kind) == (group, "Package") {
        let message = "its variant, values and disabled components are not carried over: merge them into the result";
        imported.error(&document.origin, format!("Package {name}: {message}"));
    } else {
        let other = if kind == "PackageSource" { format!(" of {}", document.group()) } else { String::new() };
        imported.warn(&document.origin, format!("not read: {kind} {name}{other}"));
    }
}

/// The namespace asked for, else the one that all sources are in, since a
/// Package uses sources of its own namespace.
fn namespace(specs: &[&Spec], options: &Options<'_>) -> String {
    if let Some(namespace) = &options.namespace {
        return namespace.to_string();
    }
    let named = specs.iter().filter_map(|spec| spec.source_ref.as_ref()?.namespace.as_deref());
    let mut named = named.collect::<BTreeSet<_>>().into_iter();
    match (named.next(), named.next()) {
        (Some(only), None) => only.to_owned(),
        _ => DEFAULT_NAMESPACE.to_owned(),
    }
}

fn report_ignored(imported: &mut Imported, package: &str, ignored: &[Ignored]) {
    for Ignored { path, field, item } in ignored {
        let subject = item.as_ref().map_or_else(|| package.to_owned(), |item| format!("{package}/{item}"));
        let reason = match field.as_str() {
            "libraries" => "Helm finds library charts only in the chart's own `charts/` directory: put them there",
            "waitStrategy" => "releases are always waited for by polling",
            "provides" | "capability" => "there are no capabilities: requirements name packages",
            "conflicts" => "there are no conflicts between packages",
            "build" => "a changed chart or value moves a release, whatever the version says",
            "crds" | "images" | "permissions" => "it describes the package and installs nothing",
            "url" => "the source is an object of the cluster",
            "requires" | "dependsOn" | "to" | "secretRef" => {
                "the other format has no such field at this place, \
                                                             Windlass has one: write it into the Package"
            }
            "annotations" | "labels" => "it belongs to the other format",
            _ => "Windlass has no such field",
        };
        // Without it the order would be another one.
        let severity = match field.as_str() {
            "requires" | "dependsOn" => Severity::Error,
            _ => Severity::Warning,
        };
        imported.note(severity, subject, format!("{path} is not carried over: {reason}"));
    }
}

/// The first component of a variant that cannot be read, with its position, and why.
fn unreadable(variant: &Value) -> Option<(usize, &str, Unreadable)> {
    let mut components = variant["components"].as_array().into_iter().flatten().enumerate();
    components
        .find_map(|(at, component)| Some((at, component["name"].as_str()?, read::<WireComponent>(component).err()?)))
}

struct Translation<'a, 'o> {
    imported: &'a mut Imported,
    options: &'a Options<'o>,
    document: &'a Document,
    name: &'a str,
    namespace: &'a str,
}

impl Translation<'_, '_> {
    fn source(&mut self, spec: Spec) {
        let given = self.options.version.as_ref().map(|version| version.as_written());
        let version = if spec.version.is_empty() { given } else { Some(spec.version.as_str()) };
        let Some(version) = version.map(str::to_owned) else {
            return self.imported.error(self.name, "left out, since it has no version: give --version");
        };
        let Some(variant) = self.variant(&spec.variants) else { return };
        let source = spec.source_ref.unwrap_or_default();
        let components = self.components(&variant.components, &source, &version);
        let has_paths = components.iter().any(|component| component.path.is_some());
        let has_source = has_paths && !source.name.is_empty();
        if has_paths && !has_source {
            let message = "its charts at a path have no source, since it has no sourceRef: write the sourceRef of the \
                           Package, a GitRepository in its namespace";
            self.imported.error(self.name, message);
        }
        if has_source {
            let foreign =
                ForeignSource { kind: &source.kind, name: &source.name, namespace: source.namespace.as_deref() };
            self.imported.source(self.name, &foreign, self.namespace);
        }
        let spec = PackageSpec {
            source_ref: has_source.then(|| SourceRef { kind: SourceKind::GitRepository, name: source.name.clone() }),
            requires: self.requires(&variant),
            rollback: spec.rollback.map(|rollback| Rollback { safe: rollback.safe, to: None }),
            ..bare(version, components)
        };
        self.imported.push(self.name, self.namespace, spec);
    }

    /// The variant asked for, else the one named `default`, else the first.
    fn variant(&mut self, variants: &[Value]) -> Option<Variant> {
        let names: Vec<&str> = variants.iter().map(|variant| variant["name"].as_str().unwrap_or_default()).collect();
        let asked = self.options.variants.get(self.name);
        let position = match asked {
            Some(asked) => names.iter().position(|name| name == asked),
            None => names.iter().position(|name| *name == DEFAULT_VARIANT).or((!names.is_empty()).then_some(0)),
        };
        let listed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let Some((at, chosen, name)) = position.and_then(|at| Some((at, variants.get(at)?, names.get(at)?))) else {
            let asked = asked.map_or_else(|| "left out, since".to_owned(), |asked| format!("no variant {asked}:"));
            self.imported.error(self.name, format!("{asked} its variants are: {listed}"));
            return None;
        };
        if names.len() > 1 && asked.is_none() {
            let others: Vec<_> = names.iter().filter(|other| *other != name).copied().collect();
            let others = others.join(", ");
            let message = format!("variant {name} is taken; --variant PKG=NAME chooses another one: {others}");
            self.imported.warn(self.name, message);
        }
        match read::<Variant>(chosen) {
            Ok((variant, mut ignored)) => {
                // Nothing is lost of a component that is left out as a whole.
                let left_out = variant.components.iter().filter(|component| component.install.is_none());
                let left_out: BTreeSet<_> = left_out.map(|component| component.name.as_str()).collect();
                let on_component = |field: &Ignored| field.path.starts_with("components[]");
                ignored.retain(|field| {
                    !on_component(field) || field.item.as_deref().is_none_or(|item| !left_out.contains(item))
                });
                report_ignored(self.imported, self.name, &ignored);
                Some(variant)
            }
            Err(error) => {
                match unreadable(chosen) {
                    Some((position, component, error)) => {
                        let part = format!("/spec/variants/{at}/components/{position}");
                        let place = self.document.place_below(&part, &error);
                        let subject = format!("{}/{component}", self.name);
                        let message = format!(
                            "the package is left out, since this component cannot be read: {error}, at {place}"
                        );
                        self.imported.error(subject, message);
                    }
                    None => {
                        let place = self.document.place_below(&format!("/spec/variants/{at}"), &error);
                        let message = format!("left out, since variant {name} cannot be read: {error}, at {place}");
                        self.imported.error(self.name, message);
                    }
                }
                None
            }
        }
    }

    fn requires(&mut self, variant: &Variant) -> Vec<Requirement> {
        let plain = variant
            .depends_on
            .iter()
            .map(|package| Requirement { package: Some(package.clone()), ..Requirement::default() });
        let mut requires: Vec<_> = plain.collect();
        for wanted in &variant.requires {
            match (&wanted.package, &wanted.capability) {
                (Some(package), None) => {
                    requires.retain(|known| known.package.as_ref() != Some(package));
                    requires.push(Requirement {
                        package: Some(package.clone()),
                        version: wanted.version.clone().filter(|range| !range.is_empty()),
                        optional: wanted.optional,
                        kubernetes: None,
                    });
                }
                (_, Some(capability)) => self.imported.error(
                    self.name,
                    format!("the required capability {capability} is not carried over: name a package that has it"),
                ),
                (None, None) => self.imported.error(self.name, "a requirement names neither package nor capability"),
            }
        }
        requires
    }

    fn components(&mut self, components: &[WireComponent], source: &WireSource, version: &str) -> Vec<Component> {
        let mut installed = Vec::new();
        for component in components {
            match &component.install {
                Some(install) => installed.push(self.component(component, install, components, source, version)),
                None => self.imported.warn(
                    self.subject(component),
                    "left out, since it has no install: its chart is only published, not released",
                ),
            }
        }
        installed
    }

    fn subject(&self, component: &WireComponent) -> String {
        format!("{}/{}", self.name, component.name)
    }

    fn component(
        &mut self,
        component: &WireComponent,
        install: &WireInstall,
        all: &[WireComponent],
        source: &WireSource,
        version: &str,
    ) -> Component {
        let subject = self.subject(component);
        let mut depends_on = install.depends_on.clone();
        let published = |name: &String| all.iter().any(|other| other.name == *name && other.install.is_none());
        for dependency in depends_on.extract_if(.., |name| published(name)) {
            self.imported.warn(&subject, format!("dependsOn {dependency} is left out with that component"));
        }
        if install.upgrade_crds == Some(UpgradeCrds::Create) {
            self.imported.warn(&subject, "upgradeCRDs: Create is refused on engine argo");
        }
        let mut translated = Component {
            name: component.name.clone(),
            path: component.path.as_ref().map(|path| join_path(&source.path, path)),
            chart: component.chart.as_ref().map(|chart| Chart {
                repository: chart.repository.clone(),
                name: chart.name.clone(),
                version: chart.version.clone(),
                digest: chart.digest.clone(),
                secret_ref: None,
            }),
            values_files: component.values_files.clone(),
            values: component.values.clone(),
            install: stated(Install {
                namespace: install.namespace.clone(),
                release_name: install.release_name.clone().filter(|name| *name != component.name),
                privileged: install.privileged,
                depends_on,
                phase: install.phase,
                upgrade_crds: install.upgrade_crds,
                ready_when: install.ready_when.clone(),
                health_check_exprs: install.health_check_exprs.clone(),
                ..Install::default()
            }),
            ..Component::default()
        };
        self.imported.chart_version(&subject, &mut translated, version, self.options);
        translated
    }
}
