//! Looks at the sidecar from within.

use super::file::{self, PluginFile};
use super::{CONFIGURATION, Cause, Examination, SERVER, SOCKETS, USER};

const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// What a path leads to, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner.
    pub user: u64,
    /// Its group.
    pub group: u64,
}

/// What a path can lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A socket.
    Socket,
    /// Something else.
    Other,
}

/// The container, seen from within. Paths are absolute.
pub trait Machine {
    /// The text of a file; `None` if there is none that can be read.
    fn read(&self, path: &str) -> Option<String>;
    /// What a path leads to.
    fn look(&self, path: &str) -> Option<Entry>;
    /// An environment variable that is not empty.
    fn variable(&self, name: &str) -> Option<String>;
}

/// A mount, as `/proc/self/mountinfo` shows it.
struct Mount {
    path: String,
    read_only: bool,
}

/// Who the container runs as.
struct Identity {
    user: u64,
    groups: Vec<u64>,
}

struct Sidecar<'m> {
    machine: &'m dyn Machine,
    /// `None`: nobody says.
    mounts: Option<Vec<Mount>>,
    identity: Option<Identity>,
}

/// Looks at everything that the plugin needs in its container.
pub fn examine_sidecar(machine: &dyn Machine) -> Examination {
    let mut found = Examination::default();
    let mounts = machine.read("/proc/self/mountinfo").map(|text| text.lines().filter_map(mount).collect());
    let identity = machine.read("/proc/self/status").and_then(|text| identity(&text));
    let sidecar = Sidecar { machine, mounts, identity };
    if !sidecar.is_one() {
        let help = "run it inside, with `kubectl exec`, or give it manifests: `kubectl kustomize argocd | windlass plugin \
                    doctor -`";
        found.find(
            Cause::SidecarMissing,
            "this machine",
            "this is no sidecar of Argo CD: nothing of one is here",
            help,
        );
        return found;
    }
    sidecar.server(&mut found);
    sidecar.user(&mut found);
    let file = sidecar.configuration(&mut found);
    if let Some(file) = &file {
        sidecar.commands(file, &mut found);
    }
    sidecar.sockets(file.as_ref(), &mut found);
    sidecar.work(&mut found);
    sidecar.surroundings(&mut found);
    found.name = file.map(|file| file.served);
    found
}

fn mount(line: &str) -> Option<Mount> {
    let fields: Vec<&str> = line.split(' ').collect();
    let path = fields.get(4)?.replace("\\040", " ");
    let options = [fields.get(5), fields.last()].into_iter().flatten();
    let read_only = options.flat_map(|options| options.split(',')).any(|option| option == "ro");
    Some(Mount { path, read_only })
}

fn identity(status: &str) -> Option<Identity> {
    let numbers = |name: &str| -> Option<Vec<u64>> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().map(|number| number.parse().ok()).collect()
    };
    // Real, effective, saved, and that of file systems.
    let user = *numbers("Uid")?.get(1)?;
    let group = numbers("Gid").and_then(|groups| groups.get(1).copied());
    Some(Identity { user, groups: numbers("Groups").unwrap_or_default().into_iter().chain(group).collect() })
}

impl Sidecar<'_> {
    /// Whether anything at all makes this the container of a plugin.
    fn is_one(&self) -> bool {
        let first = self.machine.read("/proc/1/cmdline").unwrap_or_default();
        first.contains("argocd-cmp-server")
            || [SERVER, CONFIGURATION, SOCKETS].iter().any(|path| self.machine.look(path).is_some())
            || self.machine.variable("ARGOCD_PLUGINSOCKFILEPATH").is_some()
    }

    fn server(&self, found: &mut Examination) {
        let is_there =
            self.machine.look(SERVER).is_some_and(|entry| entry.kind == EntryKind::File && entry.mode & 0o111 != 0);
        if !is_there {
            let help = "mount the volume var-files of the repo-server's pod at /var/run/argocd: Argo CD's init container \
                        copyutil puts the program there";
            found.find(
                Cause::ServerMissing,
                SERVER,
                "Argo CD's server of plugins is not there, or cannot be run",
                help,
            );
            return;
        }
        let Some(first) = self.machine.read("/proc/1/cmdline") else {
            found.unknown.push("what the container runs: /proc/1/cmdline cannot be read".to_owned());
            return;
        };
        let words: Vec<&str> = first.split('\0').filter(|word| !word.is_empty()).collect();
        // With a shared process namespace the first process is that of the pod.
        let of_the_pod = words.first().is_some_and(|word| word.ends_with("pause"));
        if !words.is_empty() && !of_the_pod && !words.iter().any(|word| word.contains("argocd-cmp-server")) {
            let message = format!("the container runs `{}` and not Argo CD's server of plugins", words.join(" "));
            let help = format!("write command: [{SERVER}] in the container");
            found.find(Cause::WrongEntrypoint, "/proc/1/cmdline", message, help);
        }
    }

    fn user(&self, found: &mut Examination) {
        match &self.identity {
            Some(identity) if identity.user != USER => {
                let message = format!("the container runs as user {}, the repo-server as {USER}", identity.user);
                let help = format!(
                    "write runAsNonRoot: true and runAsUser: {USER} in its securityContext: the repo-server cannot use a \
                     socket of another user"
                );
                found.find(Cause::WrongUser, "/proc/self/status", message, help);
            }
            Some(_) => {}
            None => found.unknown.push("the user: /proc/self/status cannot be read".to_owned()),
        }
    }

    fn configuration(&self, found: &mut Examination) -> Option<PluginFile> {
        const HELP: &str =
            "mount the ConfigMap of argocd-plugin/plugin.yaml there, with subPath: plugin.yaml, and restart the pod";
        match (self.machine.look(CONFIGURATION), self.machine.read(CONFIGURATION)) {
            (None, _) => {
                found.find(Cause::ConfigurationMissing, CONFIGURATION, "there is no plugin.yaml", HELP);
                None
            }
            (Some(entry), _) if entry.kind == EntryKind::Directory => {
                let message = "plugin.yaml is a directory: the ConfigMap has no such key, or the mount no subPath";
                found.find(Cause::ConfigurationMissing, CONFIGURATION, message, HELP);
                None
            }
            (Some(_), None) => {
                found.find(Cause::ConfigurationMissing, CONFIGURATION, "plugin.yaml cannot be read as text", HELP);
                None
            }
            (Some(_), Some(text)) => file::read(&text, CONFIGURATION, found),
        }
    }

    fn commands(&self, file: &PluginFile, found: &mut Examination) {
        file.check_commands(CONFIGURATION, found);
        for (command, cause) in
            [(&file.generate, Cause::CommandMissing), (&file.parameters, Cause::WrongParametersCommand)]
        {
            let Some(program) = command.first() else { continue };
            let is_file = |path: &str| {
                self.machine.look(path).is_some_and(|entry| entry.kind == EntryKind::File && entry.mode & 0o111 != 0)
            };
            let path = self.machine.variable("PATH").unwrap_or_default();
            let is_there = if program.contains('/') {
                is_file(program)
            } else {
                path.split(':').any(|directory| is_file(&format!("{directory}/{program}")))
            };
            if !is_there {
                let message = format!("the image has no program `{program}`, or it cannot be run");
                let help = "build the image with the binary at /usr/local/bin/windlass, or write where it is";
                found.find(cause, CONFIGURATION, message, help);
            }
        }
    }

    fn sockets(&self, file: Option<&PluginFile>, found: &mut Examination) {
        let stated = self.machine.variable("ARGOCD_PLUGINSOCKFILEPATH");
        let directory = stated.as_deref().unwrap_or(SOCKETS).trim_end_matches('/');
        let mount = self.mounts.as_ref().map(|mounts| mounts.iter().any(|mount| mount.path == directory));
        if mount == Some(false) {
            let message = "no volume is mounted there: the repo-server does not see the socket";
            let help = format!("mount the volume plugins of the repo-server's pod at {directory}, in both containers");
            found.find(Cause::SocketsNotShared, directory, message, help);
            return;
        }
        if mount.is_none() {
            found.unknown.push("mounts: /proc/self/mountinfo cannot be read".to_owned());
        }
        let Some(reason) = self.cannot_write(directory) else {
            if let Some(file) = file {
                self.socket(directory, file, found);
            }
            return;
        };
        let help = "mount the volume there without readOnly, for the user that the container runs as";
        found.find(Cause::SocketsNotWritable, directory, format!("the socket cannot be made: {reason}"), help);
    }

    fn socket(&self, directory: &str, file: &PluginFile, found: &mut Examination) {
        let socket = format!("{directory}/{}.sock", file.served);
        if self.machine.look(&socket).is_none_or(|entry| entry.kind != EntryKind::Socket) {
            let help =
                "look at the log of this container; if plugin.yaml has changed since it started, restart the pod";
            found.find(Cause::SocketMissing, socket, "Argo CD's server of plugins has not made its socket", help);
        }
    }

    /// Where Argo CD's server unpacks what it is sent.
    fn work(&self, found: &mut Examination) {
        let stated = ["ARGOCD_CMP_WORKDIR", "TMPDIR"].into_iter().find_map(|name| self.machine.variable(name));
        let directory = stated.as_deref().unwrap_or("/tmp").trim_end_matches('/');
        if let Some(reason) = self.cannot_write(directory) {
            let message = format!("what Argo CD sends cannot be unpacked: {reason}");
            let help = format!("mount an emptyDir of the plugin's own at {directory}");
            found.find(Cause::WorkNotWritable, directory, message, help);
        }
    }

    fn surroundings(&self, found: &mut Examination) {
        if self.machine.look(TOKEN).is_some() {
            let message = "a token of the cluster is mounted, which the plugin does not need";
            found.find(Cause::TokenMounted, TOKEN, message, "write automountServiceAccountToken: false in the pod");
        }
        if self.machine.variable("ARGOCD_EXEC_TIMEOUT").is_some() {
            let place = "the variable ARGOCD_EXEC_TIMEOUT";
            found.find(Cause::TimeoutIgnored, place, super::TIMEOUT_MESSAGE, super::TIMEOUT_HELP);
        }
    }

    /// Why nothing can be written to a directory, if so.
    fn cannot_write(&self, directory: &str) -> Option<String> {
        let entry = match self.machine.look(directory) {
            None => return Some("there is no such directory".to_owned()),
            Some(entry) if entry.kind != EntryKind::Directory => return Some("it is no directory".to_owned()),
            Some(entry) => entry,
        };
        let holds = |mount: &&Mount| {
            let rest = directory.strip_prefix(mount.path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mount = self.mounts.iter().flatten().filter(holds).max_by_key(|mount| mount.path.len());
        if mount.is_some_and(|mount| mount.read_only) {
            return Some("it is read-only".to_owned());
        }
        let identity = self.identity.as_ref()?;
        let bits = match (identity.user == entry.user, identity.groups.contains(&entry.group)) {
            (true, _) => entry.mode >> 6,
            (false, true) => entry.mode >> 3,
            (false, false) => entry.mode,
        };
        let may = identity.user == 0 || bits & 0o3 == 0o3;
        (!may).then(|| format!("it belongs to user {} with mode {:o}", entry.user, entry.mode & 0o7777))
    }
}
