//! What is read of charts is what Helm renders of them: nothing is made up.
//! `WINDLASS_CHARTS` may name a directory with more charts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};
use windlass::chart::{Look, Object, Release, look};
use windlass::package::tree::{EntryKind, Tree};

use super::common::{self, read_yaml, root, text};

/// A directory.
struct Directory(PathBuf);

fn kind(path: &Path) -> Option<EntryKind> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    Some(if kind.is_dir() { EntryKind::Directory } else { EntryKind::File })
}

impl Tree for Directory {
    fn entries(&self, path: &str) -> io::Result<Vec<(String, EntryKind)>> {
        let entries = fs::read_dir(self.0.join(path))?.map(Result::unwrap);
        let entries = entries.map(|entry| (entry.file_name().into_string().unwrap(), kind(&entry.path()).unwrap()));
        Ok(entries.collect())
    }

    fn read(&self, path: &str, _: u64) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(path))
    }

    fn kind(&self, path: &str) -> io::Result<Option<EntryKind>> {
        Ok(kind(&self.0.join(path)))
    }
}

fn charts_below(directory: &Path, found: &mut Vec<PathBuf>) {
    if directory.join("Chart.yaml").is_file() {
        return found.push(directory.to_owned());
    }
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    entries.sort();
    entries.iter().for_each(|entry| charts_below(entry, found));
}

/// Whether Helm renders an object that is as it was read.
fn is_rendered(read: &Object, rendered: &[Value]) -> bool {
    rendered.iter().any(|object| {
        let api_version = text(object, "/apiVersion");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("apps");
        let pods = ["/spec", "/spec/template/spec", "/spec/jobTemplate/spec/template/spec"];
        let account = |account: &String| {
            let named =
                |pod: &str| object.pointer(&format!("{pod}/serviceAccountName")) == Some(&account.as_str().into());
            pods.iter().any(|pod| named(pod))
        };
        group == read.group
            && text(object, "/kind") == read.kind
            && read.name.as_ref().is_none_or(|name| object.pointer("/metadata/name") == Some(&name.as_str().into()))
            && read.namespace.as_ref().is_none_or(|read| read == namespace)
            && read.account.as_ref().is_none_or(account)
    })
}

fn definitions_are_rendered(chart: &Path, look: &Look, rendered: &[Value]) {
    for read in &look.crds {
        let same = rendered.iter().find(|object| {
            text(object, "/kind") == "CustomResourceDefinition" && text(object, "/metadata/name") == read.name
        });
        let found = same.unwrap_or_else(|| panic!("{}: {} is not rendered", chart.display(), read.name));
        if !read.is_whole {
            continue;
        }
        let versions = found["spec"]["versions"].as_array().unwrap();
        assert_eq!(read.versions.len(), versions.len(), "{}", read.name);
        for (read, version) in read.versions.iter().zip(versions) {
            assert_eq!(version["name"], read.name.as_str());
            assert_eq!((version["served"].as_bool(), version["storage"].as_bool()), (read.served, read.storage));
            assert_eq!(version["schema"]["openAPIV3Schema"], read.schema);
        }
    }
}

#[test]
fn what_is_read_of_charts_is_what_helm_renders() {
    if !common::available("what_is_read_of_charts_is_what_helm_renders", "helm", &["version"]) {
        return;
    }
    let mut charts = Vec::new();
    for directory in ["examples", "tests/data/charts"] {
        charts_below(&root().join(directory), &mut charts);
    }
    let more = std::env::var_os("WINDLASS_CHARTS").map(PathBuf::from);
    more.iter().for_each(|directory| charts_below(directory, &mut charts));
    let (mut count, mut all, mut read) = (0, 0, 0);
    for chart in charts {
        let arguments = ["template", "web", chart.to_str().unwrap(), "-n", "apps", "--include-crds"];
        let output = Command::new("helm").args(arguments).output().unwrap();
        // Not every chart can be installed, and not with its own values.
        if !output.status.success() {
            continue;
        }
        count += 1;
        let rendered = read_yaml(&String::from_utf8(output.stdout).unwrap());
        let rendered: Vec<Value> = rendered.into_iter().filter(Value::is_object).collect();
        let values = Map::new();
        let release = Release { name: "web", namespace: "apps", values: Some(&values), values_files: &[] };
        let look = look(&Directory(chart.clone()), "", &release).unwrap();
        for object in &look.objects {
            assert!(is_rendered(object, &rendered), "{}: {object:?}", chart.display());
        }
        definitions_are_rendered(&chart, &look, &rendered);
        let named = look.objects.iter().filter(|object| object.name.is_some()).count() + look.crds.len();
        if more.is_some() {
            common::say(&format!(
                "{}: {named} of {} objects, may hide definitions: {}",
                chart.display(),
                rendered.len(),
                look.may_hide_crds
            ));
        }
        (all, read) = (all + rendered.len(), read + named);
    }
    assert!(count > 20, "Helm rendered only {count} charts");
    assert!(read * 10 >= all * 6, "only {read} of {all} objects were read with their names");
}
