use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use kube::Config;
use rstest::rstest;

use serde_json::{Value, json};

use super::releases::{field_manager, operated};
use super::*;
use crate::rollout::Precondition;

/// An API server that refuses every write and has one object, to be read.
fn refusing(status: u16, there: Value) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut request, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                let header = line.to_ascii_lowercase();
                length = header.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap());
                if line.trim().is_empty() {
                    break;
                }
                request.push_str(&line);
            }
            stream.read_exact(&mut vec![0; length]).unwrap();
            let failure =
                json!({"kind": "Status", "status": "Failure", "code": status, "message": "no", "reason": "no"});
            let (code, body) = if request.starts_with("GET") { (200, &there) } else { (status, &failure) };
            let body = body.to_string();
            let head = format!("HTTP/1.1 {code} it\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.get_mut().write_all((head + &body).as_bytes()).unwrap();
        }
    });
    Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap()
}

#[rstest]
#[case::unprocessable(422, json!({}), true)]
#[case::conflict(409, json!({}), true)]
#[case::another_package(409, json!({"windlass.dev/package": "other", "app.kubernetes.io/managed-by": "windlass"}), true)]
#[case::ours(409, json!({"windlass.dev/package": "app", "app.kubernetes.io/managed-by": "windlass"}), false)]
#[tokio::test]
async fn somebody_elses_object_at_the_place_of_a_child_is_named(
    #[case] status: u16,
    #[case] labels: Value,
    #[case] taken: bool,
) {
    let release = |labels: &Value| {
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "app-a", "namespace": "packages", "labels": labels}, "spec": {},
        })
    };
    let client = refusing(status, release(&labels));
    let package = PackageName::parse("app").unwrap();
    let executor = Executor {
        own: client.clone(),
        account: client,
        namespace: "packages".into(),
        package,
        require_account: false,
    };
    let object = release(&json!({})).as_object().cloned().unwrap();
    let written = executor.act(&Action::Apply { object, precondition: Precondition::Absent }).await;
    assert_eq!(matches!(written, Err(WriteError::Taken { .. })), taken, "{written:?}");
}

#[test]
fn a_field_manager_fits_and_is_one_packages_own() {
    let name = |letter: &str| PackageName::parse(&letter.repeat(63)).unwrap();
    let (a, b) = (field_manager(&"n".repeat(63), &name("a")), field_manager(&"n".repeat(63), &name("b")));
    assert!(a.len() <= 128 && b.len() <= 128 && a != b);
    assert_eq!(field_manager("apps", &PackageName::parse("db").unwrap()), "windlass-apps-db");
}

fn executor(require_account: bool) -> Executor {
    let nowhere = || Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let package = PackageName::parse("app").unwrap();
    Executor { own: nowhere(), account: nowhere(), namespace: "ns".into(), package, require_account }
}

#[tokio::test]
async fn where_accounts_are_required_no_release_is_written_without_one() {
    let release = |spec: Value| {
        let object = json!({"kind": "HelmRelease", "metadata": {"namespace": "ns", "name": "a"}, "spec": spec});
        Action::Apply { object: object.as_object().unwrap().clone(), precondition: Precondition::Any }
    };
    let denied = |action: &Action| matches!(executor(true).names_an_account(action), Err(WriteError::Denied { .. }));
    assert!(denied(&release(json!({"chartRef": {}}))) && denied(&release(json!({"serviceAccountName": ""}))));
    assert!(!denied(&release(json!({"serviceAccountName": "deployer"}))));
    assert!(executor(false).names_an_account(&release(json!({}))).is_ok());
    let key = crate::rollout::live::key_of(json!({"kind": "HelmRelease"}).as_object().unwrap());
    let patch = |patch: Value| Action::Patch { object: key.clone(), uid: "u".into(), resource_version: None, patch };
    assert!(denied(&patch(json!({"spec": {"chartRef": {}, "serviceAccountName": null}}))));
    assert!(!denied(&patch(json!({"spec": {"suspend": true}}))));
}

#[test]
fn an_application_gets_exactly_the_wanted_spec_and_an_operation() {
    let live = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "a", "annotations": {"theirs": "1", "ours": "1"}, "finalizers": ["theirs"]},
        "spec": {"source": {"helm": {"valuesObject": {"gone": 1}}}},
        "status": {"operationState": {"phase": "Failed"}, "reconciledAt": "then"},
    });
    let wanted = json!({
        "metadata": {"name": "a", "annotations": {"ours": "2"}, "finalizers": ["cascade"]},
        "spec": {"source": {"helm": {"valuesObject": {"unset": null}}}},
    });
    let mut object: DynamicObject = serde_json::from_value(live).unwrap();
    operated(&mut object, wanted.as_object(), Some(&json!({"sync": {}})));
    assert_eq!(object.data["spec"], wanted["spec"]);
    assert_eq!(object.data["operation"], json!({"sync": {}}));
    assert_eq!(object.data["status"], json!({"reconciledAt": "then"}));
    let annotations = object.metadata.annotations.as_ref().unwrap();
    assert_eq!((annotations["theirs"].as_str(), annotations["ours"].as_str()), ("1", "2"));
    assert_eq!(object.metadata.finalizers, Some(vec!["theirs".to_owned(), "cascade".to_owned()]));
    operated(&mut object, None, None);
    assert_eq!(object.data["operation"], json!({"sync": {}}));
}
