//! Rules of one Package that its schema cannot say.

use std::collections::BTreeMap;

use super::Component;
use crate::api::{self, Engine, PackageSpec, UpgradeCrds};
use crate::package::duration::GoDuration;
use crate::package::names::{ComponentName, Namespace, ObjectName, ReleaseName};
use crate::package::violation::{Code, Violation};

/// What the Package asks of an engine that it cannot do, or does not give it
/// though it needs it.
pub fn engine_rules(spec: &PackageSpec, engine: Engine) -> Vec<Violation> {
    let components = spec.components.iter().enumerate();
    let found = components.flat_map(|(index, component)| match engine {
        Engine::Argo => argo_rules(&format!("/spec/components/{index}"), component),
        Engine::Flux => flux_rules(&format!("/spec/components/{index}"), component, spec.source_ref.is_some()),
    });
    found.collect()
}

fn argo_rules(at: &str, component: &api::Component) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut refuse = |pointer: String, what: &str, help: &str| {
        let message = format!("{what} is not available on engine argo");
        found.push(Violation::new(Code::NotOnEngine, pointer, message).help(help));
    };
    if !component.values_from.is_empty() {
        refuse(
            format!("{at}/valuesFrom"),
            "valuesFrom",
            "Argo CD does not read values from the cluster: write them in `values`",
        );
    }
    if component.chart.as_ref().is_some_and(|chart| chart.digest.is_some()) {
        refuse(format!("{at}/chart/digest"), "chart.digest", "Argo CD does not check it: remove it");
    }
    let install = component.install.as_ref();
    if install.and_then(|install| install.upgrade_crds) == Some(UpgradeCrds::Create) {
        refuse(format!("{at}/install/upgradeCRDs"), "upgradeCRDs Create", "use Skip or CreateReplace");
    }
    found
}

fn flux_rules(at: &str, component: &api::Component, has_source: bool) -> Vec<Violation> {
    let mut found = Vec::new();
    if component.path.is_none() {
        return found;
    }
    if component.chart_version.is_none() {
        let message = format!("component `{}` has a path but no chartVersion", component.name);
        let help = "write the version of its Chart.yaml: on Flux it shows that the right commit is there";
        found.push(Violation::new(Code::NeededByEngine, format!("{at}/path"), message).help(help));
    }
    if !has_source {
        let message = format!("component `{}` has a path, but the Package has no sourceRef", component.name);
        let help = "name the GitRepository that holds it: `sourceRef: {kind: GitRepository, name: …}`";
        found.push(Violation::new(Code::NeededByEngine, format!("{at}/path"), message).help(help));
    }
    found
}

/// Components that claim one Helm release. `positions` are those of the
/// components in the Package.
pub fn release_rules(components: &[(usize, &Component)]) -> Vec<Violation> {
    let mut claimed: BTreeMap<(&Namespace, &ReleaseName), &ComponentName> = BTreeMap::new();
    let mut found = Vec::new();
    for (position, component) in components {
        let identity = (&component.namespace, &component.release_name);
        if let Some(first) = claimed.get(&identity) {
            let message = format!(
                "components `{first}` and `{}` are both release `{}` in namespace `{}`",
                component.name, component.release_name, component.namespace
            );
            let help = "give one of them another releaseName or namespace: the second would overwrite the first";
            let pointer = format!("/spec/components/{position}/install/releaseName");
            found.push(Violation::new(Code::ReleaseConflict, pointer, message).help(help));
        } else {
            claimed.insert(identity, &component.name);
        }
    }
    found
}

/// Components whose child would have the name of a hook's: `migrate` runs in
/// revision 2 as `<package>-migrate-2`.
pub fn hook_child_rules(components: &[(usize, &Component)]) -> Vec<Violation> {
    let hooks: Vec<&ComponentName> = components.iter().filter(|(_, c)| c.hook).map(|(_, c)| &c.name).collect();
    let number_of = |name: &ComponentName, hook: &ComponentName| {
        let rest = name.as_str().strip_prefix(hook.as_str())?.strip_prefix('-')?;
        rest.bytes().all(|byte| byte.is_ascii_digit()).then(|| rest.to_owned())
    };
    let clash = |(position, component): &(usize, &Component)| {
        let (hook, number) =
            hooks.iter().find_map(|hook| number_of(&component.name, hook).map(|number| (*hook, number)))?;
        let message = format!(
            "in revision {number} hook `{hook}` has the same name in the cluster as component `{}`",
            component.name
        );
        let pointer = format!("/spec/components/{position}/name");
        Some(Violation::new(Code::ChildNameConflict, pointer, message).help("rename one of them"))
    };
    components.iter().filter_map(clash).collect()
}

/// What is wrong with the address of a repository, and what to do. Credentials
/// are never repeated.
fn repository_fault(repository: &str) -> Option<(String, &'static str)> {
    let (oci, address) = match repository.strip_prefix("oci://") {
        Some(address) => (true, address),
        None => {
            (false, ["https://", "http://"].iter().find_map(|scheme| repository.strip_prefix(scheme)).unwrap_or(""))
        }
    };
    if address.is_empty() || address.contains(char::is_whitespace) {
        let message = format!("`{}` is no repository", repository.chars().take(80).collect::<String>());
        let help = "write the address of a Helm repository (`https://…`) or of an OCI repository (`oci://…`)";
        return Some((message, help));
    }
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    if host.contains('@') {
        let help = "put them into a Secret that secretRef names, and change them: they have been in a file";
        return Some(("the repository's address holds credentials".to_owned(), help));
    }
    if oci && path.contains([':', '@']) {
        let message = format!("`{}` names a tag or a digest", repository.chars().take(80).collect::<String>());
        return Some((message, "write only the repository: `version` and `digest` say which of its charts"));
    }
    if oci && path.contains(char::is_uppercase) {
        let message = format!("`{}` has capital letters in its path", repository.chars().take(80).collect::<String>());
        return Some((message, LOWER_CASE));
    }
    None
}

const LOWER_CASE: &str = "an OCI registry knows names in lower case alone";

/// Rules of a chart that comes from a repository.
pub fn chart_rules(at: &str, chart: &api::Chart) -> Vec<Violation> {
    let mut found = Vec::new();
    if let Some((message, help)) = repository_fault(&chart.repository) {
        found.push(Violation::new(Code::InvalidValue, format!("{at}/repository"), message).help(help));
    }
    if chart.repository.starts_with("oci://") && chart.name.contains(char::is_uppercase) {
        let message = format!("`{}` has capital letters", chart.name.chars().take(80).collect::<String>());
        found.push(Violation::new(Code::InvalidValue, format!("{at}/name"), message).help(LOWER_CASE));
    }
    let hex =
        |digest: &str| digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if let Some(digest) = chart.digest.as_deref().filter(|digest| !digest.strip_prefix("sha256:").is_some_and(hex)) {
        let message = format!("`{}` is no digest", digest.chars().take(80).collect::<String>());
        let help = "write `sha256:` and 64 lower-case hex digits";
        found.push(Violation::new(Code::InvalidValue, format!("{at}/digest"), message).help(help));
    }
    found
}

/// Rules of a canary.
pub fn canary_rules(at: &str, canary: &api::Canary, hook: bool) -> Vec<Violation> {
    let mut found = Vec::new();
    if hook {
        let message = "a hook has no canary: it runs once and leaves nothing to roll out";
        found.push(Violation::new(Code::NotTogether, at, message).help("remove `canary`"));
    }
    for (field, text) in
        [("soak", &canary.soak), ("timeout", &canary.timeout), ("progressDeadline", &canary.progress_deadline)]
    {
        let message = match text.as_deref().map(GoDuration::parse) {
            Some(Err(error)) => error.to_string(),
            Some(Ok(limit)) if limit.get().is_zero() && field != "soak" => {
                format!("a {field} of nothing fails every rollout at once")
            }
            Some(Ok(_)) | None => continue,
        };
        found.push(Violation::new(Code::InvalidDuration, format!("{at}/{field}"), message));
    }
    for (index, name) in canary.daemon_sets.iter().enumerate() {
        if let Err(error) = ObjectName::parse(name) {
            found.push(Violation::new(Code::InvalidName, format!("{at}/daemonSets/{index}"), error.to_string()));
        }
    }
    for (index, step) in canary.steps.iter().flatten().enumerate() {
        let number: Option<u32> = step.strip_suffix('%').unwrap_or(step).parse().ok();
        let fits = number.is_some_and(|number| number > 0 && (number <= 100 || !step.ends_with('%')));
        if !fits || step.starts_with(['0', '+']) {
            let message = format!("`{}` is no step", step.chars().take(40).collect::<String>());
            let help = "write a number of pods such as `3`, or a share such as `10%`, above zero and in quotes";
            found.push(Violation::new(Code::InvalidValue, format!("{at}/steps/{index}"), message).help(help));
        }
    }
    found
}
