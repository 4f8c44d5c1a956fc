//! Commands that talk to a cluster, against answers that an API server would give.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use common::{root, text};
use serde_json::{Value, json};

const PACKAGES: &str = "/apis/windlass.dev/v1alpha1/namespaces/shop/packages";
const REVISIONS: &str = "/apis/windlass.dev/v1alpha1/namespaces/shop/packagerevisions";
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/shop/applications";

/// Answers by path without its query; every other path is not found.
struct Server {
    kubeconfig: tempfile::TempDir,
    /// Method and path of every request.
    asked: Arc<(Mutex<Vec<String>>, Condvar)>,
    answers: Arc<Mutex<BTreeMap<String, Value>>>,
}

/// A command that goes on; killed when dropped.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    fn of(server: &Server, arguments: &[&str]) -> Self {
        let mut command = server.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self { child, stdout: BufReader::new(stdout), stderr: BufReader::new(stderr) }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn error_line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Ends it by a signal; what it has printed since.
    fn end(mut self, signal: &str) -> (String, String) {
        self.signal(signal);
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        self.child.wait().unwrap();
        (stdout, stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

impl Server {
    fn answering(answers: &[(&str, Value)]) -> Self {
        let answers: BTreeMap<String, Value> =
            answers.iter().map(|(path, answer)| ((*path).to_owned(), answer.clone())).collect();
        let answers = Arc::new(Mutex::new(answers));
        let given = Arc::clone(&answers);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<(Mutex<Vec<String>>, Condvar)> = Arc::default();
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &given, &seen);
            }
        });
        let kubeconfig = tempfile::tempdir().unwrap();
        let content = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
            "users": [{"name": "u", "user": {}}],
        });
        std::fs::write(kubeconfig.path().join("config"), content.to_string()).unwrap();
        Self { kubeconfig, asked, answers }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(arguments).env("KUBECONFIG", self.kubeconfig.path().join("config")).env("NO_COLOR", "1");
        command.current_dir(root());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn until_asked(&self, request: &str) {
        let (asked, news) = &*self.asked;
        let is_open = |asked: &mut Vec<String>| !asked.iter().any(|known| known == request);
        drop(news.wait_while(asked.lock().unwrap(), is_open).unwrap());
    }

    /// From now on.
    fn answer(&self, path: &str, answer: Value) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    fn has_written(&self) -> bool {
        self.asked.0.lock().unwrap().iter().any(|request| !request.starts_with("GET "))
    }
}

fn answer(stream: TcpStream, answers: &Mutex<BTreeMap<String, Value>>, (asked, news): &(Mutex<Vec<String>>, Condvar)) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap_or(0) == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) =
            header.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse().unwrap_or_else(|_| panic!("{name}"));
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = target.split('?').next().unwrap_or_default();
    asked.lock().unwrap().push(format!("{method} {path}"));
    news.notify_all();
    let (code, answer) = match answers.lock().unwrap().get(path) {
        Some(answer) if answer["kind"] == "Status" => (answer["code"].as_u64().unwrap(), answer.clone()),
        Some(answer) => (200, answer.clone()),
        None => (404, status(404, "NotFound", path.rsplit('/').next().unwrap_or_default())),
    };
    let is_watch = target.split(['?', '&']).any(|word| matches!(word, "watch=true" | "watch=1"));
    let body = if is_watch { events(&answer) } else { answer.to_string() };
    let head = format!(
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = reader.into_inner();
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

/// What a watch tells that begins before anything of a list was there, and ends.
fn events(list: &Value) -> String {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| format!("{}\n", json!({"type": "ADDED", "object": item}))).collect()
}

fn status(code: u16, reason: &str, name: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": format!("{reason}: {name}"), "details": {"name": name},
    })
}

fn list(items: Vec<Value>) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})
}

fn package() -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Package",
        "metadata": {
            "name": "shop", "namespace": "shop", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "git"}],
        },
        "spec": {"version": "2.0.0", "components": []},
        "status": {
            "observedGeneration": 2, "version": "2.0.0", "revision": 2, "engine": "argo", "summary": "Progressing: api",
            "conditions": [{
                "type": "Ready", "status": "Unknown", "reason": "Progressing", "message": "component api: waits",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
            "components": [{"name": "api", "state": "Progressing"}],
        },
    })
}

fn revision(number: u64, safe: bool) -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "PackageRevision",
        "metadata": {"name": format!("shop-{number}"), "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "package": "shop", "number": number, "version": format!("{number}.0.0"), "timeout": "1m", "retries": 0,
            "engine": "argo", "rollback": {"safe": safe},
            "components": [{
                "name": "api", "wave": 0, "digest": format!("v1:{number}"), "chartVersion": format!("{number}.0.0"),
                "release": {"storageNamespace": "shop", "namespace": "shop", "name": "api"},
            }],
        },
        "status": {"phase": "Succeeded", "succeeded": true, "components": [{"name": "api", "moved": true}]},
    })
}

fn one(name: &str) -> String {
    format!("{PACKAGES}/{name}")
}

fn server(safe: bool) -> Server {
    Server::answering(&[
        (&one("shop"), package()),
        (PACKAGES, list(vec![package()])),
        (REVISIONS, list(vec![revision(1, true), revision(2, safe)])),
    ])
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_package_that_is_not_there_yet_is_waited_for() {
    let server = server(true);
    let (code, _, stderr) = said(&server.run(&["status", "other"]));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("there is no Package shop/other"), "{stderr}");
    server.answer(PACKAGES, list(Vec::new()));
    let mut watching = Running::of(&server, &["status", "shop", "--watch"]);
    assert_eq!(watching.error_line(), "there is no Package shop/shop yet: waiting for it");
    server.answer(PACKAGES, list(vec![package()]));
    assert_eq!(watching.line(), "Package:   shop/shop");
    let (stdout, stderr) = watching.end("KILL");
    assert!(!stdout.contains("is gone"), "{stdout}");
    assert!(!stderr.contains("waiting for it"), "it is said once: {stderr}");
}

#[rstest::rstest]
#[case::terminated("TERM")]
#[case::interrupted("INT")]
fn the_controller_says_that_it_ends(#[case] signal: &str) {
    let server = Server::answering(&[
        (
            "/version",
            json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
        ),
        (
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
                "status": {"userInfo": {"username": "it"}},
            }),
        ),
    ]);
    let controller = Running::of(&server, &["controller", "--listen=127.0.0.1:0", "--lease-namespace=here"]);
    server.until_asked("GET /version");
    let (_, log) = controller.end(signal);
    let name = format!("SIG{signal}");
    assert!(log.contains(&name) && log.contains("here/windlass") && log.contains("ended"), "{log}");
}

#[test]
fn a_rollback_that_would_be_refused_is_refused_at_once() {
    let server = server(false);
    for arguments in [&["rollback", "shop"][..], &["rollback", "shop", "--to", "1", "--dry-run"]] {
        let (code, stdout, stderr) = said(&server.run(arguments));
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.contains("revision 2 (2.0.0) does not say rollback.safe: true"), "{stderr}");
        assert!(stderr.contains("To do: Fix forward"), "{stderr}");
    }
    assert!(!server.has_written());
}

#[test]
fn a_dry_run_of_a_rollback_says_what_goes_back_and_asks_for_nothing() {
    let server = server(true);
    let (code, stdout, stderr) = said(&server.run(&["rollback", "shop", "--dry-run"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("revision 1 (1.0.0)") && stdout.contains("api: chart 2.0.0 -> 1.0.0"), "{stdout}");
    assert!(!server.has_written());
    let (code, stdout, stderr) = said(&server.run(&["rollback", "shop"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("revision 1 (1.0.0) was asked for"), "{stdout}");
    assert!(server.has_written());
}

#[test]
fn objects_are_printed_as_kubectl_prints_them() {
    let server = server(true);
    let printed = |arguments: &[&str]| {
        let (code, stdout, stderr) = said(&server.run(arguments));
        assert_eq!(code, Some(0), "{stderr}");
        stdout
    };
    assert_eq!(printed(&["status", "-o", "name"]), "package.windlass.dev/shop\n");
    let found: Value = serde_json::from_str(&printed(&["status", "shop", "-o", "json"])).unwrap();
    assert_eq!((text(&found, "/kind"), text(&found, "/spec/version")), ("Package", "2.0.0"));
    assert!(found.pointer("/metadata/managedFields").is_none(), "{found}");
    assert!(printed(&["history", "shop", "-o", "yaml"]).contains("kind: List"));
    assert_eq!(
        printed(&["history", "shop", "-o", "name"]),
        "packagerevision.windlass.dev/shop-1\npackagerevision.windlass.dev/shop-2\n"
    );
    assert!(printed(&["status", "-o", "wide"]).lines().next().unwrap().ends_with("ENGINE"));
    let (code, _, stderr) = said(&server.run(&["status", "--watch", "-o", "json"]));
    assert_eq!(code, Some(2), "{stderr}");
}

fn application() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": "shop-api", "namespace": "shop",
            "labels": {"windlass.dev/package": "shop", "windlass.dev/component": "api"},
        },
        "spec": {"destination": {"namespace": "run"}},
        "status": {
            "sync": {"status": "Synced"}, "health": {"status": "Progressing"},
            "resources": [{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "run", "name": "api"}],
        },
    })
}

#[test]
fn why_reaches_down_to_the_pods() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "run", "generation": 1},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "api"}}},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1},
    });
    let pod = json!({
        "metadata": {"name": "api-1", "namespace": "run"},
        "status": {"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available",
        }]},
    });
    let answers = [
        (one("shop"), package()),
        (APPLICATIONS.to_owned(), list(vec![application()])),
        ("/apis/apps/v1/namespaces/run/deployments/api".to_owned(), deployment),
        ("/api/v1/namespaces/run/pods".to_owned(), list(vec![pod])),
    ];
    let with = |pods: Value| {
        let mut answers: Vec<(&str, Value)> =
            answers.iter().map(|(path, answer)| (path.as_str(), answer.clone())).collect();
        answers[3].1 = pods;
        let server = Server::answering(&answers);
        said(&server.run(&["why", "shop"]))
    };
    let (code, stdout, stderr) = with(answers[3].1.clone());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("Deployment/run/api: 0 of 1 replicas are available"), "{stdout}");
    assert!(stdout.contains("pod api-1: not scheduled: Unschedulable: 0/1 nodes are available"), "{stdout}");
    let (code, stdout, stderr) = with(status(403, "Forbidden", ""));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("you may not list pods in run"), "{stderr}");
    assert!(stdout.contains("Deployment/run/api: 0 of 1 replicas are available"), "{stdout}");
}

#[test]
fn revisions_that_may_not_be_listed_are_called_revisions() {
    let refused =
        [(format!("{PACKAGES}/shop"), package()), (REVISIONS.to_owned(), status(403, "Forbidden", "revisions"))];
    let answers: Vec<(&str, Value)> = refused.iter().map(|(path, answer)| (path.as_str(), answer.clone())).collect();
    let server = Server::answering(&answers);
    for arguments in [&["history", "shop", "-o", "yaml"][..], &["history", "shop"]] {
        let output = server.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("the revisions") && !said.contains("Packages"), "{said}");
    }
}
