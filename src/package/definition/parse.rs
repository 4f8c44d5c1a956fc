//! From the wire format to [`Definition`]: all rules of one Package.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use serde_json::Value;

use super::rules::{canary_rules, chart_rules, engine_rules, hook_child_rules, release_rules};
use super::{
    ChartSource, Component, DEFAULT_HISTORY_LIMIT, DEFAULT_RETRIES, DEFAULT_SETTLE, DEFAULT_TIMEOUT,
    DEFAULT_VALUES_KEY, Definition, MAX_READY_OBJECTS, PathChart, ReadyTest, ReadyWhen, RelativePath, RepositoryChart,
    Requirement, Rollback, Upgrade, ValuesFrom,
};
use crate::api;
use crate::api::{DeletionPolicy, PackageSpec, UpgradeCrds};
use crate::package::derived::{Derived, ForEngine};
use crate::package::duration::GoDuration;
use crate::package::names::{ComponentName, NameError, Namespace, ObjectName, PackageName, ReleaseName};
use crate::package::order::order;
use crate::package::range::Range;
use crate::package::version::Version;
use crate::package::violation::{Code, Violation};
use crate::package::yaml::MAX_DEPTH;

/// Parses a Package of the given name and namespace.
///
/// # Errors
/// Every rule that the Package breaks, in the order of the fields. Pointers
/// start at the object: `/spec/…`, `/metadata/name`.
pub fn parse(name: &str, namespace: &str, spec: &PackageSpec) -> Result<Definition, Vec<Violation>> {
    let mut parser = Parser::default();
    let definition = parser.definition(name, namespace, spec);
    match definition {
        Some(definition) if parser.violations.is_empty() => Ok(definition),
        _ => Err(parser.violations),
    }
}

/// Parses one `readyWhen` entry of a component in `namespace`.
///
/// # Errors
/// Every rule that the entry breaks; pointers start at the entry.
pub fn parse_ready_when(entry: &api::ReadyWhen, namespace: &Namespace) -> Result<ReadyWhen, Vec<Violation>> {
    let mut parser = Parser::default();
    let parsed = parser.ready_when("", entry, namespace);
    match parsed {
        Some(parsed) if parser.violations.is_empty() => Ok(parsed),
        _ => Err(parser.violations),
    }
}

#[derive(Default)]
struct Parser {
    violations: Vec<Violation>,
}

impl Parser {
    fn report(&mut self, code: Code, pointer: impl Into<String>, message: impl Into<String>, help: &str) {
        self.violations.push(Violation::new(code, pointer, message).help(help));
    }

    /// Keeps a parsed value, or reports why there is none.
    fn keep<T, E: ToString>(&mut self, code: Code, pointer: impl Display, parsed: Result<T, E>) -> Option<T> {
        parsed.map_err(|error| self.report(code, pointer.to_string(), error.to_string(), help_for(code))).ok()
    }

    fn name<T>(&mut self, pointer: impl Display, parsed: Result<T, NameError>) -> Option<T> {
        self.keep(Code::InvalidName, pointer, parsed)
    }

    fn range(&mut self, pointer: impl Display, text: Option<&str>) -> Option<Range> {
        let range = text.and_then(|text| self.keep(Code::InvalidRange, &pointer, Range::parse(text)))?;
        if range.is_empty() {
            let written = range.as_written();
            let has_bounds = written.contains('>') && written.contains('<') && !written.contains("||");
            let help = if has_bounds {
                "its lower bound is not below its upper one: exchange them, or write alternatives with `||` between them"
            } else {
                "write alternatives with `||` between them"
            };
            self.report(Code::InvalidRange, pointer.to_string(), format!("no version is in the range `{range}`"), help);
        }
        Some(range)
    }

    fn duration(&mut self, pointer: impl Display, text: Option<&str>, default: GoDuration) -> GoDuration {
        let parsed = text.map(|text| self.keep(Code::InvalidDuration, pointer, GoDuration::parse(text)));
        parsed.flatten().unwrap_or(default)
    }

    fn definition(&mut self, name: &str, namespace: &str, spec: &PackageSpec) -> Option<Definition> {
        let name = self.name("/metadata/name", PackageName::parse(name));
        let namespace = self.name("/metadata/namespace", Namespace::parse(namespace));
        let version = self.keep(Code::InvalidVersion, "/spec/version", Version::parse(&spec.version));
        let service_account = spec.service_account_name.as_deref();
        let service_account =
            service_account.and_then(|name| self.name("/spec/serviceAccountName", ObjectName::parse(name)));
        let requires = self.requires(&spec.requires);
        self.own_requirement(name.as_ref(), &requires);
        let upgrade = self.upgrade(spec.upgrade.as_ref());
        let rollback = self.rollback(spec.rollback.as_ref(), &upgrade);
        let components = self.components(spec, namespace.as_ref());
        if let Some(engine) = spec.engine {
            self.violations.extend(engine_rules(spec, engine));
        }
        Some(Definition {
            name: name?,
            namespace: namespace?,
            version: version?,
            engine: spec.engine,
            suspend: spec.suspend.unwrap_or(false),
            service_account,
            source: spec.source_ref.clone(),
            requires,
            upgrade,
            rollback,
            deletion_policy: spec.deletion_policy.unwrap_or(DeletionPolicy::Uninstall),
            revision_history_limit: spec.revision_history_limit.unwrap_or(DEFAULT_HISTORY_LIMIT),
            components,
            digests: ForEngine::default(),
            order: Derived::default(),
            outlines: ForEngine::default(),
        })
    }

    fn own_requirement(&mut self, own: Option<&PackageName>, requires: &[Requirement]) {
        for (index, requirement) in requires.iter().enumerate() {
            if matches!(requirement, Requirement::Package { name, .. } if Some(name) == own) {
                let at = format!("/spec/requires/{index}/package");
                self.report(Code::PackageCycle, at, "a Package cannot require itself", "remove the requirement");
            }
        }
    }

    fn requires(&mut self, requires: &[api::Requirement]) -> Vec<Requirement> {
        let parsed = requires.iter().enumerate().map(|(index, requirement)| {
            let at = format!("/spec/requires/{index}");
            match (&requirement.package, &requirement.kubernetes) {
                (Some(package), None) => {
                    let range = self.range(format_args!("{at}/version"), requirement.version.as_deref());
                    let name = self.name(format_args!("{at}/package"), PackageName::parse(package))?;
                    Some(Requirement::Package { name, range, optional: requirement.optional.unwrap_or(false) })
                }
                (None, Some(range)) => {
                    if requirement.version.is_some() || requirement.optional.is_some() {
                        self.report(
                            Code::NotTogether,
                            &at,
                            "version and optional go with package",
                            "remove them: `kubernetes` is a range by itself",
                        );
                    }
                    let range = self.range(format_args!("{at}/kubernetes"), Some(range))?;
                    Some(Requirement::Kubernetes { range })
                }
                (Some(_), Some(_)) | (None, None) => {
                    let help = one_of(requirement.package.is_some(), "package", "kubernetes");
                    let message = "a requirement names exactly one of package and kubernetes";
                    self.report(Code::ExactlyOne, at, message, &help);
                    None
                }
            }
        });
        parsed.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    fn upgrade(&mut self, upgrade: Option<&api::Upgrade>) -> Upgrade {
        let upgrade = upgrade.cloned().unwrap_or_default();
        let timeout = self.duration("/spec/upgrade/timeout", upgrade.timeout.as_deref(), DEFAULT_TIMEOUT);
        if timeout.get().is_zero() {
            let message = "a timeout of nothing fails every component at once";
            self.report(Code::InvalidDuration, "/spec/upgrade/timeout", message, "leave it out for the default of 10m");
        }
        Upgrade {
            timeout,
            retries: upgrade.retries.unwrap_or(DEFAULT_RETRIES),
            from: self.range("/spec/upgrade/from", upgrade.from.as_deref()),
            allow_downgrade: upgrade.allow_downgrade.unwrap_or(false),
        }
    }

    fn rollback(&mut self, rollback: Option<&api::Rollback>, upgrade: &Upgrade) -> Rollback {
        let rollback = rollback.cloned().unwrap_or_default();
        let to = self.range("/spec/rollback/to", rollback.to.as_deref());
        Rollback { safe: rollback.safe.unwrap_or(false), to: to.or_else(|| upgrade.from.clone()) }
    }

    fn components(&mut self, spec: &PackageSpec, namespace: Option<&Namespace>) -> Vec<Component> {
        let mut parsed = Vec::new();
        let mut positions = Vec::new();
        for (index, component) in spec.components.iter().enumerate() {
            let at = format!("/spec/components/{index}");
            if let Some(component) = self.component(&at, component, namespace) {
                parsed.push(component);
                positions.push(index);
            }
        }
        self.edges(&spec.components);
        self.ready_objects(&parsed);
        let placed: Vec<_> = positions.iter().copied().zip(&parsed).collect();
        self.violations.extend(release_rules(&placed));
        self.violations.extend(hook_child_rules(&placed));
        if let Err(cycle) = order(&parsed) {
            let first = cycle.positions.first().and_then(|&first| positions.get(first)).copied().unwrap_or_default();
            let at = format!("/spec/components/{first}/install/dependsOn");
            let help = if cycle.positions.len() == 1 { "remove the edge" } else { "remove one of these edges" };
            self.report(Code::Cycle, at, cycle.to_string(), help);
        }
        parsed
    }

    fn ready_objects(&mut self, components: &[Component]) {
        let entries = components.iter().flat_map(|component| &component.ready_when);
        let objects: BTreeSet<_> =
            entries.map(|entry| (&entry.api_version, &entry.kind, &entry.namespace, &entry.name)).collect();
        if objects.len() > MAX_READY_OBJECTS {
            let message =
                format!("readyWhen names {} objects, {MAX_READY_OBJECTS} are allowed in a Package", objects.len());
            let help = "name one object that sums the others up, or divide the Package";
            self.report(Code::TooLarge, "/spec/components", message, help);
        }
    }

    fn edges(&mut self, components: &[api::Component]) {
        let mut first: BTreeMap<&str, &api::Component> = BTreeMap::new();
        for (index, component) in components.iter().enumerate() {
            if first.contains_key(component.name.as_str()) {
                let message = format!("two components are named `{}`", component.name);
                let help = "rename one of them, or remove it";
                self.report(Code::DuplicateComponent, format!("/spec/components/{index}/name"), message, help);
            } else {
                first.insert(&component.name, component);
            }
        }
        let is_hook = |component: &api::Component| component.install.as_ref().is_some_and(|i| i.phase.is_some());
        for (index, component) in components.iter().enumerate() {
            let at = format!("/spec/components/{index}/install/dependsOn");
            let edges = component.install.as_ref().map_or(&[][..], |install| &install.depends_on);
            if is_hook(component) && !edges.is_empty() {
                let help = "hooks run in the order they are written: remove dependsOn";
                self.report(Code::HookDependency, &at, format!("hook `{}` has dependsOn", component.name), help);
            }
            for (position, edge) in edges.iter().enumerate() {
                let at = format!("{at}/{position}");
                if edges.iter().take(position).any(|earlier| earlier == edge) {
                    let message = format!("`{edge}` is there twice");
                    self.report(Code::InvalidValue, at, message, "remove one, or name what else was meant");
                    continue;
                }
                match first.get(edge.as_str()) {
                    None => {
                        let help = match did_you_mean(edge, first.keys().copied()) {
                            similar if !similar.is_empty() => similar,
                            _ => format!(
                                "known here: {}; what another Package installs is named in `requires`",
                                first.keys().copied().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")
                            ),
                        };
                        self.report(Code::UnknownDependency, at, format!("there is no component `{edge}`"), &help);
                    }
                    Some(target) if is_hook(target) => {
                        let help = "hooks run before every component of an upgrade: remove the edge";
                        self.report(Code::HookDependency, at, format!("`{edge}` is a hook"), help);
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn component(&mut self, at: &str, component: &api::Component, package: Option<&Namespace>) -> Option<Component> {
        let default = api::Install::default();
        let install = component.install.as_ref().unwrap_or(&default);
        let name = self.name(format_args!("{at}/name"), ComponentName::parse(&component.name));
        let namespace = match &install.namespace {
            Some(namespace) => self.name(format_args!("{at}/install/namespace"), Namespace::parse(namespace)),
            None => package.cloned(),
        };
        let release = install.release_name.as_deref().unwrap_or(&component.name);
        let release_at = if install.release_name.is_some() { "install/releaseName" } else { "name" };
        let release_name = match ReleaseName::parse(release) {
            Err(_) if install.release_name.is_none() => None,
            parsed => self.name(format_args!("{at}/{release_at}"), parsed),
        };
        let chart = self.chart(at, component);
        if component.values.as_ref().is_some_and(|values| values.values().any(|value| !is_within(value, MAX_DEPTH - 1)))
        {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            let help = "no chart has values as deep as that: write them on fewer levels";
            self.report(Code::TooLarge, format!("{at}/values"), message, help);
        }
        if let Some(canary) = &component.canary {
            self.violations.extend(canary_rules(&format!("{at}/canary"), canary, install.phase.is_some()));
        }
        let values_from = component.values_from.iter().enumerate();
        let values_from: Vec<_> = values_from
            .filter_map(|(index, from)| self.values_from(&format!("{at}/valuesFrom/{index}"), from))
            .collect();
        let depends_on: Vec<_> = install.depends_on.iter().filter_map(|name| ComponentName::parse(name).ok()).collect();
        let namespace = namespace?;
        let ready_when = install.ready_when.iter().enumerate();
        let ready_when: Vec<_> = ready_when
            .filter_map(|(index, entry)| self.ready_when(&format!("{at}/install/readyWhen/{index}"), entry, &namespace))
            .collect();
        Some(Component {
            name: name?,
            chart: chart?,
            values: component.values.clone().unwrap_or_default(),
            values_from,
            namespace,
            release_name: release_name?,
            privileged: install.privileged.unwrap_or(false),
            depends_on,
            hook: install.phase.is_some(),
            replace: install.replace.unwrap_or(false),
            delete_data: install.delete_data.unwrap_or(false),
            upgrade_crds: install.upgrade_crds.unwrap_or(UpgradeCrds::CreateReplace),
            ready_when,
            health_check_exprs: install.health_check_exprs.clone(),
            ignore: install.ignore.clone(),
            canary: component.canary.clone(),
        })
    }

    fn chart(&mut self, at: &str, component: &api::Component) -> Option<ChartSource> {
        match (&component.chart, &component.path) {
            (Some(chart), None) => {
                self.path_only_fields(at, component);
                self.repository_chart(&format!("{at}/chart"), chart).map(ChartSource::Repository)
            }
            (None, Some(path)) => self.path_chart(at, component, path).map(ChartSource::Path),
            (Some(_), Some(_)) | (None, None) => {
                let message = format!("component `{}` must have exactly one of chart and path", component.name);
                self.report(Code::ExactlyOne, at, message, &one_of(component.chart.is_some(), "chart", "path"));
                None
            }
        }
    }

    fn path_only_fields(&mut self, at: &str, component: &api::Component) {
        let fields = [
            ("chartVersion", component.chart_version.is_some()),
            ("valuesFiles", !component.values_files.is_empty()),
            ("source", component.source.is_some()),
        ];
        for (field, present) in fields {
            if present {
                let message = format!("{field} goes with path, not with chart");
                self.report(Code::NotTogether, format!("{at}/{field}"), message, &format!("remove `{field}`"));
            }
        }
    }

    fn repository_chart(&mut self, at: &str, chart: &api::Chart) -> Option<RepositoryChart> {
        self.violations.extend(chart_rules(at, chart));
        let version = self.keep(Code::InvalidVersion, format_args!("{at}/version"), Version::parse(&chart.version));
        let secret = chart.secret_ref.as_ref();
        let secret =
            secret.and_then(|secret| self.name(format_args!("{at}/secretRef/name"), ObjectName::parse(&secret.name)));
        Some(RepositoryChart {
            repository: chart.repository.clone(),
            name: chart.name.clone(),
            version: version?,
            digest: chart.digest.clone(),
            secret,
        })
    }

    fn path_chart(&mut self, at: &str, component: &api::Component, path: &str) -> Option<PathChart> {
        let mut relative = |pointer: String, path: &str| {
            let parsed = RelativePath::parse(path);
            if parsed.is_none() {
                let (message, help) = path_fault(path);
                self.report(Code::PathEscapes, pointer, message, help);
            }
            parsed
        };
        let directory = relative(format!("{at}/path"), path);
        let files = component.values_files.iter().enumerate();
        let values_files: Vec<_> =
            files.filter_map(|(index, file)| relative(format!("{at}/valuesFiles/{index}"), file)).collect();
        let version = component.chart_version.as_deref();
        let chart_version = version.and_then(|version| {
            self.keep(Code::InvalidVersion, format_args!("{at}/chartVersion"), Version::parse(version))
        });
        Some(PathChart { path: directory?, chart_version, values_files, source: component.source.clone() })
    }

    fn values_from(&mut self, at: &str, from: &api::ValuesFrom) -> Option<ValuesFrom> {
        Some(ValuesFrom {
            kind: from.kind,
            name: self.name(format_args!("{at}/name"), ObjectName::parse(&from.name))?,
            values_key: from.values_key.clone().unwrap_or_else(|| DEFAULT_VALUES_KEY.to_owned()),
            target_path: from.target_path.clone(),
            optional: from.optional.unwrap_or(false),
        })
    }

    fn ready_when(&mut self, at: &str, entry: &api::ReadyWhen, default: &Namespace) -> Option<ReadyWhen> {
        let test = match (&entry.condition, &entry.expr) {
            (Some(condition), None) => {
                let status = entry.status.clone().unwrap_or_else(|| "True".to_owned());
                Some(ReadyTest::Condition { condition: condition.clone(), status })
            }
            (None, Some(expr)) => {
                if entry.status.is_some() {
                    let help = "remove it, or ask for a condition";
                    self.report(Code::NotTogether, format!("{at}/status"), "status goes with condition", help);
                }
                Some(ReadyTest::Expr(expr.clone()))
            }
            (Some(_), Some(_)) | (None, None) => {
                let help = one_of(entry.condition.is_some(), "condition", "expr");
                self.report(Code::ExactlyOne, at, "a readyWhen entry has exactly one of condition and expr", &help);
                None
            }
        };
        let namespace = match &entry.namespace {
            Some(namespace) => self.name(format_args!("{at}/namespace"), Namespace::parse(namespace))?,
            None => default.clone(),
        };
        Some(ReadyWhen {
            api_version: entry.api_version.clone(),
            kind: entry.kind.clone(),
            name: entry.name.clone(),
            namespace,
            test: test?,
            settle: self.duration(format_args!("{at}/settle"), entry.settle.as_deref(), DEFAULT_SETTLE),
            failed: entry.failed.clone(),
        })
    }
}

/// Whether a value has no more levels than that.
fn is_within(value: &Value, levels: usize) -> bool {
    let below = |value: &Value| levels > 0 && is_within(value, levels - 1);
    match value {
        Value::Array(items) => items.iter().all(below),
        Value::Object(entries) => entries.values().all(below),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// What to do where both of two fields are there, or neither is.
fn one_of(both: bool, one: &str, other: &str) -> String {
    if both { format!("both are there: remove `{one}` or `{other}`") } else { format!("add `{one}` or `{other}`") }
}

/// What to do about a text that cannot be parsed, where its message does not say it.
fn help_for(code: Code) -> &'static str {
    match code {
        Code::InvalidRange => "such as \">=1.2 <2\": what is side by side holds together, `||` is between alternatives",
        _ => "",
    }
}

/// Why a path is none, and what to write.
fn path_fault(path: &str) -> (String, &'static str) {
    if path.contains('\\') {
        return (format!("`{path}` has backslashes"), "write `/` between directories: a source is no Windows drive");
    }
    (format!("`{path}` leads out of the source"), "write a path below the root, without `..`")
}

/// `did you mean …?` for the closest of `candidates`, or the one that `text` is
/// short for, or nothing.
pub(crate) fn did_you_mean<'a>(text: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> String {
    let distance = |candidate: &&str| strsim::damerau_levenshtein(text, candidate);
    let near = |candidate: &&str| distance(candidate) <= text.chars().count().max(3) / 3;
    let mut longer = candidates.clone().filter(|candidate| text.len() >= SHORTEST && candidate.starts_with(text));
    let meant = match (longer.next(), longer.next()) {
        (Some(only), None) => Some(only),
        (Some(_), Some(_)) | (None, _) => candidates.min_by_key(distance).filter(near),
    };
    meant.map_or_else(String::new, |candidate| format!("did you mean `{candidate}`?"))
}

/// Fewest letters that are taken for the beginning of a longer word.
const SHORTEST: usize = 3;
