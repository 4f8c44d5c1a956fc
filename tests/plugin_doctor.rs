//! `windlass plugin doctor`: broken installations of the sidecar, each with its
//! cause, and sound ones.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;
use windlass::plugin::doctor::Cause;

use common::text;

const PLUGIN: &str = include_str!("../argocd-plugin/plugin.yaml");
const CONFIGURATION: &str = "home/argocd/cmp-server/config/plugin.yaml";
const SOCKETS: &str = "home/argocd/cmp-server/plugins";
const BINARY: &str = "usr/local/bin/windlass";
const SERVER: &str = "var/run/argocd/argocd-cmp-server";
const MOUNTS: &str = "\
700 600 0:50 / / ro,relatime - overlay overlay rw
701 700 8:1 /kubelet/plugins /home/argocd/cmp-server/plugins rw,relatime - ext4 /dev/sda1 rw
702 700 8:1 /kubelet/windlass-tmp /tmp rw,relatime - ext4 /dev/sda1 rw
703 700 8:1 /kubelet/var-files /var/run/argocd rw,relatime - ext4 /dev/sda1 rw
";

/// The files of a container in which the plugin runs as it should.
struct Container(TempDir);

impl Container {
    fn sound() -> Self {
        let container = Self(tempfile::tempdir().unwrap());
        container.write(
            "proc/self/status",
            "Name:\twindlass\nUid:\t999\t999\t999\t999\nGid:\t999\t999\t999\t999\nGroups:\t999\n",
        );
        container.write("proc/self/mountinfo", MOUNTS);
        container.write("proc/1/cmdline", "/var/run/argocd/argocd-cmp-server\0");
        container.write(CONFIGURATION, PLUGIN);
        for program in [BINARY, SERVER] {
            container.write(program, "");
            container.allow(program, 0o755);
        }
        container.directory(SOCKETS, 0o777);
        container.directory("tmp", 0o1777);
        container.serve("windlass");
        container
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn replace(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.at(path)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(self.at(path), text.replace(from, to)).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.at(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    fn directory(&self, path: &str, mode: u32) {
        fs::create_dir_all(self.at(path)).unwrap();
        self.allow(path, mode);
    }

    fn allow(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Makes the socket of a plugin; it stays when nobody listens any more.
    fn serve(&self, name: &str) {
        UnixListener::bind(self.at(&format!("{SOCKETS}/{name}.sock"))).unwrap();
    }

    fn examine(&self, variables: &[(&str, &str)]) -> Examined {
        let root = self.0.path().to_str().unwrap();
        Examined::new(&["--root", root], variables, "")
    }
}

struct Examined {
    code: Option<i32>,
    report: Value,
    said: String,
}

impl Examined {
    fn new(arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Self {
        let json = doctor(&[arguments, &["--format", "json"]].concat(), variables, input);
        let plain = doctor(arguments, variables, input);
        assert_eq!(json.status.code(), plain.status.code());
        let report = serde_json::from_slice(&json.stdout).unwrap_or_else(|_| panic!("{json:?}"));
        Self { code: json.status.code(), report, said: String::from_utf8(plain.stdout).unwrap() }
    }

    fn findings(&self) -> &[Value] {
        self.report["findings"].as_array().unwrap()
    }

    /// Codes of what was found, all of which name a place and a remedy.
    fn codes(&self) -> Vec<&str> {
        let codes = self.findings().iter().map(|finding| {
            assert!(["/place", "/message", "/help"].iter().all(|part| !text(finding, part).is_empty()), "{finding}");
            assert!(self.said.contains(text(finding, "/help")), "{}", self.said);
            text(finding, "/code")
        });
        codes.collect()
    }
}

fn doctor(arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.env_clear().args(["plugin", "doctor"]).args(arguments).envs(variables.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn without_line(text: &str, part: &str) -> String {
    text.lines().filter(|line| !line.contains(part)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn nothing_is_wrong_with_a_sound_sidecar() {
    let examined = Container::sound().examine(&[]);
    assert_eq!(examined.codes(), Vec::<&str>::new(), "{}", examined.said);
    assert_eq!(examined.code, Some(0));
    assert_eq!(
        examined.said,
        "Applications name this plugin `windlass`.\nAll right: nothing is wrong with this installation.\n"
    );
    let summary =
        json!({"plugin": "windlass", "findings": [], "notLookedAt": [], "summary": {"errors": 0, "warnings": 0}});
    assert_eq!(examined.report, summary);
}

#[rstest]
#[case::server_missing(|c: &Container| c.remove(SERVER), Cause::ServerMissing, "/var/run/argocd/argocd-cmp-server")]
#[case::entrypoint(
    |c: &Container| c.write("proc/1/cmdline", "/usr/local/bin/windlass\0controller\0"),
    Cause::WrongEntrypoint,
    "/proc/1/cmdline"
)]
#[case::user(
    |c: &Container| c.replace("proc/self/status", "Uid:\t999\t999", "Uid:\t65532\t65532"),
    Cause::WrongUser,
    "/proc/self/status"
)]
#[case::no_configuration(|c: &Container| c.remove(CONFIGURATION), Cause::ConfigurationMissing, "config/plugin.yaml")]
#[case::no_such_key(
    |c: &Container| {
        c.remove(CONFIGURATION);
        c.directory(CONFIGURATION, 0o755);
    },
    Cause::ConfigurationMissing,
    "config/plugin.yaml"
)]
#[case::other_kind(
    |c: &Container| c.replace(CONFIGURATION, "kind: ConfigManagementPlugin", "kind: Plugin"),
    Cause::ConfigurationInvalid,
    "config/plugin.yaml"
)]
#[case::no_yaml(|c: &Container| c.write(CONFIGURATION, "kind: [\n"), Cause::ConfigurationInvalid, "config/plugin.yaml")]
#[case::no_name(
    |c: &Container| c.replace(CONFIGURATION, "name: windlass", "labels: {}"),
    Cause::ConfigurationInvalid,
    "config/plugin.yaml"
)]
#[case::no_binary(|c: &Container| c.remove(BINARY), Cause::CommandMissing, "config/plugin.yaml")]
#[case::not_to_be_run(|c: &Container| c.allow(BINARY, 0o644), Cause::CommandMissing, "config/plugin.yaml")]
#[case::other_command(
    |c: &Container| c.replace(CONFIGURATION, "windlass, plugin, generate", "windlass, render"),
    Cause::WrongCommand,
    "config/plugin.yaml"
)]
#[case::no_volume(
    |c: &Container| c.write("proc/self/mountinfo", &without_line(MOUNTS, "/plugins")),
    Cause::SocketsNotShared,
    "/home/argocd/cmp-server/plugins"
)]
#[case::read_only(
    |c: &Container| c.replace("proc/self/mountinfo", "plugins rw", "plugins ro"),
    Cause::SocketsNotWritable,
    "/home/argocd/cmp-server/plugins"
)]
#[case::others_directory(|c: &Container| c.allow(SOCKETS, 0o555), Cause::SocketsNotWritable, "/home/argocd/cmp-server/plugins")]
#[case::no_socket(
    |c: &Container| c.remove(&format!("{SOCKETS}/windlass.sock")),
    Cause::SocketMissing,
    "/home/argocd/cmp-server/plugins/windlass.sock"
)]
#[case::no_tmp(|c: &Container| c.remove("tmp"), Cause::WorkNotWritable, "/tmp")]
#[case::tmp_of_the_image(
    |c: &Container| c.write("proc/self/mountinfo", &without_line(MOUNTS, "/tmp")),
    Cause::WorkNotWritable,
    "/tmp"
)]
fn a_broken_sidecar_has_its_cause_named(#[case] break_it: fn(&Container), #[case] cause: Cause, #[case] place: &str) {
    let container = Container::sound();
    break_it(&container);
    let examined = container.examine(&[]);
    let mut codes = examined.codes();
    if cause == Cause::CommandMissing {
        // The other command of plugin.yaml is the same program.
        codes.retain(|code| *code != Cause::WrongParametersCommand.as_str());
    }
    assert_eq!(codes, [cause.as_str()], "{}", examined.said);
    assert!(text(&examined.findings()[0], "/place").ends_with(place), "{}", examined.said);
    assert_eq!(examined.code, Some(1), "{}", examined.said);
}

#[test]
fn what_is_only_unwise_is_a_warning() {
    let container = Container::sound();
    container.replace(CONFIGURATION, "spec:\n", "spec:\n  version: v1\n  discover: {fileName: package.yaml}\n");
    container.serve("windlass-v1");
    container.write("var/run/secrets/kubernetes.io/serviceaccount/token", "x");
    let examined = container.examine(&[("ARGOCD_EXEC_TIMEOUT", "5m")]);
    let expected = [Cause::NameHasVersion, Cause::Discovers, Cause::TokenMounted, Cause::TimeoutIgnored];
    assert_eq!(examined.codes(), expected.map(Cause::as_str), "{}", examined.said);
    assert_eq!((examined.code, text(&examined.report, "/plugin")), (Some(0), "windlass-v1"));
}

/// A list of everything that is missing would hide that it is the wrong place.
#[test]
fn a_machine_that_is_no_sidecar_is_said_to_be_none() {
    let elsewhere = Container(tempfile::tempdir().unwrap());
    elsewhere.write("proc/1/cmdline", "/sbin/init\0");
    let examined = elsewhere.examine(&[]);
    assert_eq!((examined.codes(), examined.code), (vec!["SidecarMissing"], Some(1)), "{}", examined.said);
    let start = "error[SidecarMissing]: this is no sidecar of Argo CD";
    assert!(examined.said.starts_with(start) && examined.said.contains("manifests"), "{}", examined.said);
}

#[test]
fn other_directories_are_looked_at_where_argo_cd_is_told_so() {
    let container = Container::sound();
    let variables = [("ARGOCD_PLUGINSOCKFILEPATH", "/sockets"), ("ARGOCD_CMP_WORKDIR", "/work")];
    assert_eq!(container.examine(&variables).codes(), ["SocketsNotShared", "WorkNotWritable"]);
    container.directory("work", 0o777);
    container.directory("sockets", 0o777);
    let mounts = MOUNTS.replace(" /tmp ", " /work ").replace(" /home/argocd/cmp-server/plugins ", " /sockets ");
    container.write("proc/self/mountinfo", &mounts);
    assert_eq!(container.examine(&variables).codes(), ["SocketMissing"]);
    UnixListener::bind(container.at("sockets/windlass.sock")).unwrap();
    assert_eq!(container.examine(&variables).code, Some(0));
}

#[test]
fn what_cannot_be_looked_at_is_said() {
    let container = Container::sound();
    container.remove("proc");
    let examined = container.examine(&[]);
    assert_eq!(
        (examined.code, examined.report["notLookedAt"].as_array().unwrap().len()),
        (Some(0), 3),
        "{}",
        examined.said
    );
    assert!(examined.said.contains("Nothing wrong was found"), "{}", examined.said);
}

fn yaml(path: &str) -> Value {
    common::read_yaml(&fs::read_to_string(common::root().join(path)).unwrap()).remove(0)
}

/// The repo-server as Argo CD installs it, as far as it matters here, with our patch.
fn installation() -> Value {
    let mut deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "argocd-repo-server", "namespace": "argocd"},
        "spec": {"template": {"spec": {
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "argocd-repo-server", "image": "argocd", "args": ["/usr/local/bin/argocd-repo-server"],
                "volumeMounts": [
                    {"name": "tmp", "mountPath": "/tmp"},
                    {"name": "plugins", "mountPath": "/home/argocd/cmp-server/plugins"},
                ],
            }],
            "initContainers": [{"name": "copyutil", "volumeMounts": [{"name": "var-files", "mountPath": "/var/run/argocd"}]}],
            "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "plugins", "emptyDir": {}}, {"name": "var-files", "emptyDir": {}}],
        }}},
    });
    let patch = yaml("argocd-plugin/repo-server.yaml");
    for list in ["/spec/template/spec/containers", "/spec/template/spec/volumes"] {
        let more = patch.pointer(list).unwrap().as_array().unwrap().clone();
        deployment.pointer_mut(list).unwrap().as_array_mut().unwrap().extend(more);
    }
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "windlass-plugin", "namespace": "argocd"},
        "data": {"plugin.yaml": PLUGIN},
    });
    let applications = ["packages", "native"].map(|name| yaml(&format!("argocd-plugin/examples/{name}.yaml")));
    let items: Vec<Value> = [deployment, config_map].into_iter().chain(applications).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn examine(installation: &Value) -> Examined {
    Examined::new(&["-"], &[], &installation.to_string())
}

#[test]
fn nothing_is_wrong_with_our_own_manifests() {
    let examined = examine(&installation());
    assert_eq!(examined.codes(), Vec::<&str>::new(), "{}", examined.said);
    assert_eq!((examined.code, text(&examined.report, "/plugin")), (Some(0), "windlass"));
    assert!(examined.said.ends_with("All right: nothing is wrong with this installation.\n"), "{}", examined.said);
}

const POD: &str = "/items/0/spec/template/spec";
const SIDECAR: &str = "/items/0/spec/template/spec/containers/1";
const FILE: &str = "/items/1/data/plugin.yaml";

fn set(value: &mut Value, pointer: &str, new: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = new,
        other => other[key] = new,
    }
}

fn take(value: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match value.pointer_mut(parent).unwrap() {
        Value::Array(list) => drop(list.remove(key.parse().unwrap())),
        other => drop(other.as_object_mut().unwrap().remove(key)),
    }
}

fn sidecar(path: &str) -> String {
    format!("{SIDECAR}/{path}")
}

#[rstest]
#[case::no_deployment(|i: &mut Value| take(i, "/items/0"), Cause::SidecarMissing, "argocd-repo-server")]
#[case::no_sidecar(|i: &mut Value| take(i, SIDECAR), Cause::SidecarMissing, "containers")]
#[case::no_command(|i: &mut Value| take(i, &sidecar("command")), Cause::WrongEntrypoint, "command")]
#[case::other_command(
    |i: &mut Value| set(i, &sidecar("command"), json!(["windlass", "plugin", "generate"])),
    Cause::WrongEntrypoint,
    "command"
)]
#[case::no_server(|i: &mut Value| take(i, &sidecar("volumeMounts/0")), Cause::ServerMissing, "volumeMounts")]
#[case::empty_server(
    |i: &mut Value| set(i, &format!("{POD}/initContainers"), json!([])),
    Cause::ServerMissing,
    "volumeMounts"
)]
#[case::user(|i: &mut Value| set(i, &sidecar("securityContext/runAsUser"), json!(65532)), Cause::WrongUser, "runAsUser")]
#[case::no_user(|i: &mut Value| take(i, &sidecar("securityContext/runAsUser")), Cause::WrongUser, "runAsUser")]
#[case::no_configuration(|i: &mut Value| take(i, &sidecar("volumeMounts/2")), Cause::ConfigurationMissing, "volumeMounts")]
#[case::no_sub_path(
    |i: &mut Value| take(i, &sidecar("volumeMounts/2/subPath")),
    Cause::ConfigurationMissing,
    "volumeMounts"
)]
#[case::no_volume(|i: &mut Value| take(i, &format!("{POD}/volumes/3")), Cause::ConfigurationMissing, "volumeMounts")]
#[case::no_key(
    |i: &mut Value| set(i, "/items/1/data", json!({"config.yaml": PLUGIN})),
    Cause::ConfigurationMissing,
    "volumeMounts"
)]
#[case::configuration(
    |i: &mut Value| set(i, FILE, json!(PLUGIN.replace("  generate:", "  init:"))),
    Cause::ConfigurationInvalid,
    "ConfigMap windlass-plugin: plugin.yaml"
)]
#[case::shell(
    |i: &mut Value| set(i, FILE, json!(PLUGIN.replace("[/usr/local/bin/windlass, plugin, generate]", "[sh, -c, 'windlass plugin generate']"))),
    Cause::WrongCommand,
    "ConfigMap windlass-plugin: plugin.yaml"
)]
#[case::own_sockets(|i: &mut Value| take(i, &sidecar("volumeMounts/1")), Cause::SocketsNotShared, "volumeMounts")]
#[case::other_sockets(
    |i: &mut Value| set(i, &sidecar("volumeMounts/1/name"), json!("windlass-plugins")),
    Cause::SocketsNotShared,
    "volumeMounts"
)]
#[case::read_only_sockets(
    |i: &mut Value| set(i, &sidecar("volumeMounts/1/readOnly"), json!(true)),
    Cause::SocketsNotWritable,
    "volumeMounts"
)]
#[case::no_tmp(|i: &mut Value| take(i, &sidecar("volumeMounts/3")), Cause::WorkNotWritable, "volumeMounts")]
#[case::read_only_tmp(
    |i: &mut Value| set(i, &sidecar("volumeMounts/3/readOnly"), json!(true)),
    Cause::WorkNotWritable,
    "volumeMounts"
)]
#[case::other_name(
    |i: &mut Value| set(i, "/items/2/spec/source/plugin/name", json!("windlass-v0.1.0")),
    Cause::NameNotServed,
    "Application packages: plugin.name"
)]
#[case::misspelt(
    |i: &mut Value| set(i, "/items/2/spec/source/plugin/name", json!("windlas")),
    Cause::NameNotServed,
    "Application packages: plugin.name"
)]
#[case::capital(
    |i: &mut Value| set(i, "/items/3/spec/source/plugin/name", json!("Windlass")),
    Cause::NameNotServed,
    "plugin.name"
)]
#[case::in_a_set(
    |i: &mut Value| set(i, "/items/2", json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "all"},
        "spec": {"template": {"spec": {"sources": [{"plugin": {"name": "winldass"}}]}}},
    })),
    Cause::NameNotServed,
    "ApplicationSet all: plugin.name"
)]
fn broken_manifests_have_their_cause_named(
    #[case] break_it: fn(&mut Value),
    #[case] cause: Cause,
    #[case] place: &str,
) {
    let mut installation = installation();
    break_it(&mut installation);
    let examined = examine(&installation);
    assert_eq!(examined.codes(), [cause.as_str()], "{}", examined.said);
    assert!(text(&examined.findings()[0], "/place").ends_with(place), "{}", examined.said);
    assert_eq!(examined.code, Some(1), "{}", examined.said);
}

#[test]
fn manifests_that_are_only_unwise_are_warned_of() {
    let mut installation = installation();
    set(&mut installation, &sidecar("volumeMounts/3/name"), json!("tmp"));
    set(&mut installation, &sidecar("env"), json!([{"name": "ARGOCD_EXEC_TIMEOUT", "value": "5m"}]));
    take(&mut installation, &format!("{POD}/automountServiceAccountToken"));
    let other = PLUGIN.replace("[/usr/local/bin/windlass, plugin, parameters]", "[windlass, parameters]");
    set(&mut installation, FILE, json!(other));
    let examined = examine(&installation);
    let expected = [Cause::WrongParametersCommand, Cause::WorkShared, Cause::TokenMounted, Cause::TimeoutIgnored];
    assert_eq!(examined.codes(), expected.map(Cause::as_str), "{}", examined.said);
    assert_eq!(examined.code, Some(0));
    assert!(examined.said.ends_with("It works; 4 warnings.\n"), "{}", examined.said);
}

#[test]
fn a_config_map_that_is_not_given_is_said() {
    let mut installation = installation();
    take(&mut installation, "/items/1");
    let examined = examine(&installation);
    assert_eq!((examined.codes(), examined.code), (vec![], Some(0)), "{}", examined.said);
    assert!(
        examined.said.contains("not looked at: plugin.yaml: the files hold no ConfigMap windlass-plugin"),
        "{}",
        examined.said
    );
}

#[test]
fn names_of_plugins_are_said_not_to_be_compared_without_a_plugin_yaml() {
    let mut installation = installation();
    take(&mut installation, "/items/1");
    set(&mut installation, "/items/1/spec/source/plugin/name", json!("windlas"));
    let examined = examine(&installation);
    assert!(examined.said.contains("not looked at: the plugin that each Application names"), "{}", examined.said);
    assert!(!examined.said.contains("All right"), "{}", examined.said);
}

/// A plugin of somebody else is none of our business.
#[test]
fn other_plugins_may_be_named() {
    let mut installation = installation();
    set(&mut installation, "/items/2/spec/source/plugin/name", json!("helmfile"));
    let examined = examine(&installation);
    assert_eq!((examined.codes(), examined.code), (vec![], Some(0)), "{}", examined.said);
}

/// As it lies there before kustomize has made a ConfigMap of it.
#[test]
fn plugin_yaml_is_read_from_a_directory_of_manifests() {
    let mut installation = installation();
    take(&mut installation, "/items/1");
    set(&mut installation, "/items/1/spec/source/plugin/name", json!("windlas"));
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("all.yaml"), installation.to_string()).unwrap();
    fs::write(directory.path().join("plugin.yaml"), PLUGIN).unwrap();
    let examined = Examined::new(&[directory.path().to_str().unwrap()], &[], "");
    assert_eq!(examined.codes(), ["NameNotServed"], "{}", examined.said);
    assert_eq!(text(&examined.report, "/plugin"), "windlass");
}

#[test]
fn files_that_are_no_manifests_are_shown_as_validate_shows_them() {
    let output = doctor(&["-"], &[], "a: [");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error[WL001]"), "{output:?}");
    assert_eq!(doctor(&["nowhere.yaml"], &[], "").status.code(), Some(3));
}

/// Every code is explained once, as the fault or warning that it is.
#[test]
fn every_cause_is_explained() {
    let readme = fs::read_to_string(common::root().join("argocd-plugin/README.md")).unwrap();
    let rows = readme.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 4);
    let told: Vec<(&str, bool)> = rows
        .filter_map(|row| {
            let mut cells = row.trim_matches('|').split('|').map(str::trim);
            let code = cells.next()?.trim_matches('`');
            Cause::ALL.iter().any(|cause| cause.as_str() == code).then_some((code, row.ends_with("(warning) |")))
        })
        .collect();
    let warns = |cause: &Cause| cause.severity().as_str() == "warning";
    assert_eq!(told, Cause::ALL.iter().map(|cause| (cause.as_str(), warns(cause))).collect::<Vec<_>>());
}

#[test]
fn no_file_is_changed() {
    let container = Container::sound();
    let files = |directory: &Path| {
        let mut names: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = [SOCKETS, "tmp", ""].map(|path| files(&container.at(path)));
    container.examine(&[]);
    assert_eq!([SOCKETS, "tmp", ""].map(|path| files(&container.at(path))), before);
}
