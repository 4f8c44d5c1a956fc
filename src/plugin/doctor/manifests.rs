//! Looks at the manifests that an installation is made of.

use serde_json::Value;

use super::file::{self, PluginFile};
use super::{CONFIGURATION, Cause, Examination, SERVER, SOCKETS, USER};
use crate::package::definition::did_you_mean;

const REPO_SERVER: &str = "argocd-repo-server";
const POD: &str = "/spec/template/spec";

/// The pod of the repo-server.
struct Pod<'m> {
    /// How its Deployment is named in messages.
    place: String,
    spec: &'m Value,
    namespace: &'m str,
}

/// A volume of a container, as it is mounted.
struct Mount<'m> {
    volume: &'m str,
    path: &'m str,
    sub_path: &'m str,
    read_only: bool,
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn words<'v>(value: &'v Value, pointer: &str) -> Vec<&'v str> {
    list(value, pointer).filter_map(Value::as_str).collect()
}

/// The manifests of a list; any other by itself.
fn flat(manifest: &Value) -> Vec<&Value> {
    match manifest.get("items").and_then(Value::as_array) {
        Some(items) if text(manifest, "/kind").ends_with("List") => items.iter().flat_map(flat).collect(),
        _ => vec![manifest],
    }
}

/// Looks at everything that the plugin needs, as far as these manifests show it.
pub fn examine_manifests(manifests: &[&Value]) -> Examination {
    let mut found = Examination::default();
    let manifests: Vec<&Value> = manifests.iter().flat_map(|manifest| flat(manifest)).collect();
    let manifests = manifests.as_slice();
    let Some(pod) = manifests.iter().find_map(|manifest| Pod::of(manifest)) else {
        let help = format!(
            "give the Deployment {REPO_SERVER} as it runs, such as `kubectl get deployment {REPO_SERVER} -o yaml`"
        );
        found.find(Cause::SidecarMissing, REPO_SERVER, "there is no Deployment of the repo-server here", help);
        return found;
    };
    let Some(container) = pod.sidecar() else {
        let names: Vec<&str> = list(pod.spec, "/containers").map(|container| text(container, "/name")).collect();
        let message = format!("no container runs the plugin; there are {}", names.join(", "));
        let help = "add the patch argocd-plugin/repo-server.yaml to the kustomization that installs Argo CD";
        found.find(Cause::SidecarMissing, format!("{}: spec.template.spec.containers", pod.place), message, help);
        return found;
    };
    let place = format!("{}: container {}", pod.place, text(container, "/name"));
    entrypoint(&pod, container, &place, &mut found);
    user(&pod, container, &place, &mut found);
    let file = configuration(&pod, container, &place, manifests, &mut found);
    sockets(&pod, container, &place, &mut found);
    work(&pod, container, &place, &mut found);
    surroundings(&pod, container, &place, &mut found);
    match file {
        Some(file) => {
            applications(&file, manifests, &mut found);
            found.name = Some(file.served);
        }
        None if named_plugins(manifests).next().is_some() => {
            found.unknown.push("the plugin that each Application names: that needs plugin.yaml".to_owned());
        }
        None => {}
    }
    found
}

impl<'m> Pod<'m> {
    fn of(manifest: &'m Value) -> Option<Self> {
        let spec = manifest.pointer(POD)?;
        let is_it = list(spec, "/containers").any(|container| {
            text(container, "/name") == REPO_SERVER || mounts(container).any(|mount| mount.path == SOCKETS)
        });
        let place = format!("{} {}", text(manifest, "/kind"), text(manifest, "/metadata/name"));
        is_it.then(|| Self { place, spec, namespace: text(manifest, "/metadata/namespace") })
    }

    /// The container of the plugin: named so, of such an image, or with the mount
    /// of our configuration.
    fn sidecar(&self) -> Option<&'m Value> {
        let others = || list(self.spec, "/containers").filter(|container| text(container, "/name") != REPO_SERVER);
        let ours = |container: &&Value| {
            let image = text(container, "/image").rsplit('/').next().unwrap_or_default();
            text(container, "/name").contains("windlass") || image.starts_with("windlass")
        };
        others()
            .find(ours)
            .or_else(|| others().find(|container| mounts(container).any(|mount| mount.volume.contains("windlass"))))
    }

    fn repo_server(&self) -> Option<&'m Value> {
        list(self.spec, "/containers").find(|container| text(container, "/name") == REPO_SERVER)
    }

    fn volume(&self, name: &str) -> Option<&'m Value> {
        list(self.spec, "/volumes").find(|volume| text(volume, "/name") == name)
    }
}

fn mounts(container: &Value) -> impl Iterator<Item = Mount<'_>> {
    list(container, "/volumeMounts").map(|mount| Mount {
        volume: text(mount, "/name"),
        path: text(mount, "/mountPath").trim_end_matches('/'),
        sub_path: text(mount, "/subPath"),
        read_only: mount.get("readOnly").and_then(Value::as_bool) == Some(true),
    })
}

/// The mount that a path is in.
fn mount_of<'m>(container: &'m Value, path: &str) -> Option<Mount<'m>> {
    let holds = |mount: &Mount<'_>| {
        let rest = path.strip_prefix(mount.path);
        !mount.path.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    mounts(container).filter(holds).max_by_key(|mount| mount.path.len())
}

fn variable<'m>(container: &'m Value, name: &str) -> Option<&'m str> {
    let stated = list(container, "/env").find(|variable| text(variable, "/name") == name)?;
    Some(text(stated, "/value"))
}

fn entrypoint(pod: &Pod<'_>, container: &Value, place: &str, found: &mut Examination) {
    let command: Vec<&str> = words(container, "/command").into_iter().chain(words(container, "/args")).collect();
    if !command.iter().any(|word| word.contains("argocd-cmp-server")) {
        let message = match command.as_slice() {
            [] => "it has no command, so that the image's own is run and not Argo CD's server of plugins".to_owned(),
            command => format!("it runs `{}` and not Argo CD's server of plugins", command.join(" ")),
        };
        found.find(Cause::WrongEntrypoint, format!("{place}, command"), message, format!("write command: [{SERVER}]"));
        return;
    }
    let mount = mount_of(container, SERVER);
    let fills = |mount: &Mount<'_>| {
        let all = list(pod.spec, "/initContainers").flat_map(mounts);
        all.into_iter().any(|other| other.volume == mount.volume)
    };
    let shown = pod.spec.pointer("/initContainers").is_some();
    if mount.as_ref().is_none_or(|mount| shown && !fills(mount)) {
        let message = match &mount {
            None => format!("nothing is mounted at {SERVER}, and the image does not have it"),
            Some(mount) => format!("volume {} is mounted for {SERVER}, and no init container fills it", mount.volume),
        };
        let help = "mount the volume var-files at /var/run/argocd: Argo CD's init container copyutil fills it";
        found.find(Cause::ServerMissing, format!("{place}, volumeMounts"), message, help);
    }
}

fn user(pod: &Pod<'_>, container: &Value, place: &str, found: &mut Examination) {
    let of = |value: &Value| value.pointer("/securityContext/runAsUser").and_then(Value::as_u64);
    let stated = of(container).or_else(|| of(pod.spec));
    if stated == Some(USER) {
        return;
    }
    let message = match stated {
        Some(user) => format!("it runs as user {user}, the repo-server as {USER}"),
        None => format!("no runAsUser: it runs as the user of its image, the repo-server as {USER}"),
    };
    let help =
        format!("write runAsNonRoot: true and runAsUser: {USER}: the repo-server cannot use a socket of another user");
    found.find(Cause::WrongUser, format!("{place}, securityContext.runAsUser"), message, help);
}

fn configuration(
    pod: &Pod<'_>,
    container: &Value,
    place: &str,
    manifests: &[&Value],
    found: &mut Examination,
) -> Option<PluginFile> {
    const HELP: &str = "mount the ConfigMap of argocd-plugin/plugin.yaml there, with subPath: plugin.yaml";
    let mut missing = |message: String| {
        found.find(Cause::ConfigurationMissing, format!("{place}, volumeMounts"), message, HELP);
    };
    let Some(mount) = mount_of(container, CONFIGURATION) else {
        missing(format!("nothing is mounted at {CONFIGURATION}"));
        return None;
    };
    if mount.path == CONFIGURATION && mount.sub_path.is_empty() {
        missing(format!("volume {} is mounted at {CONFIGURATION} without subPath: a directory is there", mount.volume));
        return None;
    }
    let Some(volume) = pod.volume(mount.volume) else {
        missing(format!("there is no volume {}", mount.volume));
        return None;
    };
    let name = text(volume, "/configMap/name");
    let is_it = |manifest: &&&Value| {
        let (namespace, own) = (text(manifest, "/metadata/namespace"), pod.namespace);
        let same = namespace == own || namespace.is_empty() || own.is_empty();
        text(manifest, "/kind") == "ConfigMap" && text(manifest, "/metadata/name") == name && same
    };
    let Some(config_map) = manifests.iter().find(is_it).filter(|_| !name.is_empty()) else {
        return lying_there(name, manifests, found);
    };
    let file = if mount.sub_path.is_empty() { "plugin.yaml" } else { mount.sub_path };
    let moved = list(volume, "/configMap/items").find(|item| text(item, "/path") == file);
    let key = moved.map_or(file, |item| text(item, "/key"));
    let Some(content) = config_map.get("data").and_then(|data| data.get(key)).and_then(Value::as_str) else {
        missing(format!("ConfigMap {name} has no key {key}"));
        return None;
    };
    let place = format!("ConfigMap {name}: {key}");
    let file = file::read(content, &place, found)?;
    file.check_commands(&place, found);
    Some(file)
}

/// plugin.yaml as a file among the manifests, of which kustomize makes the ConfigMap.
fn lying_there(config_map: &str, manifests: &[&Value], found: &mut Examination) -> Option<PluginFile> {
    const PLACE: &str = "plugin.yaml";
    let Some(value) = manifests.iter().find(|manifest| text(manifest, "/kind") == file::KIND) else {
        found.unknown.push(format!("{PLACE}: the files hold no ConfigMap {config_map}"));
        return None;
    };
    let file = file::take(value, PLACE, found)?;
    file.check_commands(PLACE, found);
    Some(file)
}

fn sockets(pod: &Pod<'_>, container: &Value, place: &str, found: &mut Examination) {
    let directory = variable(container, "ARGOCD_PLUGINSOCKFILEPATH").unwrap_or(SOCKETS).trim_end_matches('/');
    let place = format!("{place}, volumeMounts");
    let help = format!("mount the volume plugins of the repo-server at {directory}, in both containers alike");
    let Some(mount) = mount_of(container, directory) else {
        let message = format!("no volume is mounted at {directory}: the repo-server does not see the socket");
        return found.find(Cause::SocketsNotShared, place, message, help);
    };
    if let Some(repo_server) = pod.repo_server() {
        let looks = variable(repo_server, "ARGOCD_PLUGINSOCKFILEPATH").unwrap_or(SOCKETS).trim_end_matches('/');
        let same = |other: &Mount<'_>| (other.volume, other.sub_path) == (mount.volume, mount.sub_path);
        if !mount_of(repo_server, looks).as_ref().is_some_and(same) {
            let message = format!("volume {} at {directory} is not what the repo-server has at {looks}", mount.volume);
            return found.find(Cause::SocketsNotShared, place, message, help);
        }
    } else {
        found.unknown.push(format!("what the repo-server mounts: there is no container {REPO_SERVER}"));
    }
    if mount.read_only {
        let message = format!("{directory} is mounted readOnly: the socket cannot be made");
        found.find(Cause::SocketsNotWritable, place, message, "take readOnly away");
    }
}

fn work(pod: &Pod<'_>, container: &Value, place: &str, found: &mut Examination) {
    let stated = ["ARGOCD_CMP_WORKDIR", "TMPDIR"].into_iter().find_map(|name| variable(container, name));
    let directory = stated.unwrap_or("/tmp").trim_end_matches('/');
    let place = format!("{place}, volumeMounts");
    let help = format!("mount an emptyDir of the plugin's own at {directory}");
    match mount_of(container, directory) {
        None => {
            let message = format!("nothing is mounted at {directory}: what Argo CD sends cannot be unpacked");
            found.find(Cause::WorkNotWritable, place, message, help);
        }
        Some(mount) if mount.read_only => {
            let message = format!("{directory} is mounted readOnly: what Argo CD sends cannot be unpacked");
            found.find(Cause::WorkNotWritable, place, message, help);
        }
        Some(mount) => {
            let shared = pod.repo_server().and_then(|other| mounts(other).find(|other| other.volume == mount.volume));
            if let Some(other) = shared {
                let (volume, path) = (mount.volume, other.path);
                let message = format!("volume {volume} at {directory} is what the repo-server has at {path}");
                found.find(Cause::WorkShared, place, message, help);
            }
        }
    }
}

fn surroundings(pod: &Pod<'_>, container: &Value, place: &str, found: &mut Examination) {
    if pod.spec.get("automountServiceAccountToken").and_then(Value::as_bool) != Some(false) {
        let place = format!("{}: spec.template.spec.automountServiceAccountToken", pod.place);
        let message = "a token of the cluster is mounted, which the plugin does not need";
        found.find(Cause::TokenMounted, place, message, "write automountServiceAccountToken: false");
    }
    if variable(container, "ARGOCD_EXEC_TIMEOUT").is_some() {
        let place = format!("{place}, env");
        found.find(Cause::TimeoutIgnored, place, super::TIMEOUT_MESSAGE, super::TIMEOUT_HELP);
    }
}

/// Applications, or what makes them, with the plugin that a source of theirs names.
fn named_plugins<'m>(manifests: &[&'m Value]) -> impl Iterator<Item = (&'m Value, &'m str)> {
    let with_spec = |manifest: &'m Value| {
        let spec = match text(manifest, "/kind") {
            "Application" => "/spec",
            "ApplicationSet" => "/spec/template/spec",
            _ => return None,
        };
        Some((manifest, manifest.pointer(spec)?))
    };
    manifests.iter().filter_map(move |manifest| with_spec(manifest)).flat_map(|(manifest, spec)| {
        let sources = spec.get("source").into_iter().chain(list(spec, "/sources"));
        let names = sources.map(|source| text(source, "/plugin/name"));
        names.filter(|name| !name.is_empty()).map(move |name| (manifest, name))
    })
}

/// Whether a name that is not served stands for the one that is: our own with a version,
/// or with a slip.
fn is_meant(name: &str, served: &str) -> bool {
    let (name, served) = (name.to_lowercase(), served.to_lowercase());
    name.starts_with("windlass") || !did_you_mean(&name, std::iter::once(served.as_str())).is_empty()
}

/// Applications that mean this plugin, and name another.
fn applications(file: &PluginFile, manifests: &[&Value], found: &mut Examination) {
    let others = named_plugins(manifests).filter(|(_, name)| *name != file.served && is_meant(name, &file.served));
    for (application, name) in others {
        let place = format!("{} {}: plugin.name", text(application, "/kind"), text(application, "/metadata/name"));
        let message = format!("it names the plugin `{name}`, and there is `{}`", file.served);
        found.find(Cause::NameNotServed, place, message, format!("write plugin: {{name: {}}}", file.served));
    }
}
