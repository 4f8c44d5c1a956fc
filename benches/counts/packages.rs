//! Packages and charts that the cases work on.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Fills a directory: `large`, 100 Packages with 1,000 components, and `small`,
/// 10 Packages with 50 components, of which 10 are charts beside them; and
/// `repository`, two commits to 3,000 files that differ in 2 Packages.
pub fn write(root: &Path) {
    write_repository(&root.join("repository"));
    write_packages(&root.join("large"), 100, 10);
    write_packages(&root.join("small/packages"), 10, 5);
    write_charts(&root.join("small/charts"), 10);
}

/// Packages with a chain of components each.
fn write_packages(directory: &Path, packages: usize, components: usize) {
    fs::create_dir_all(directory).unwrap();
    let with_paths = directory.ends_with("packages");
    for package in 0..packages {
        let text = package_text(package, &format!("1.{package}.0"), components, with_paths);
        fs::write(directory.join(format!("p{package}.yaml")), text).unwrap();
    }
}

/// Every second Package requires the one before.
fn package_text(package: usize, version: &str, components: usize, with_paths: bool) -> String {
    let requires = if package % 2 == 1 { format!("[{{package: p{}}}]", package - 1) } else { "[]".to_owned() };
    let mut text = format!(
        "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: p{package}}}\nspec:\n  \
         version: {version}\n  requires: {requires}\n  components:\n"
    );
    for component in 0..components {
        text.push_str(&component_text(package, component, with_paths && component == 0));
    }
    text
}

/// 100 Packages, and 290 charts of 10 files each. The branch `after` has another
/// version, with other releases, of two Packages.
fn write_repository(directory: &Path) {
    let git = git2::Repository::init_bare(directory).unwrap();
    let author = git2::Signature::new("Bench", "bench@windlass.dev", &git2::Time::new(0, 0)).unwrap();
    for (branch, changed) in [("before", 0), ("after", 2)] {
        let mut index = git2::Index::new().unwrap();
        for package in 0..100 {
            let patch = u8::from(package % 10 == 0 && package / 10 < changed);
            let text = package_text(package, &format!("1.{package}.{patch}"), 10, false);
            let text = text.replace("'v1.2.", &format!("'v1.2.{patch}."));
            add(&git, &mut index, &format!("packages/p{package}.yaml"), &text);
        }
        for file in 0..2900 {
            let text = format!("kind: ConfigMap\nmetadata: {{name: f{file}}}\n");
            add(&git, &mut index, &format!("charts/c{}/templates/t{}.yaml", file / 10, file % 10), &text);
        }
        let tree = git.find_tree(index.write_tree_to(&git).unwrap()).unwrap();
        git.commit(Some(&format!("refs/heads/{branch}")), &author, &author, branch, &tree, &[]).unwrap();
    }
}

fn add(git: &git2::Repository, index: &mut git2::Index, path: &str, text: &str) {
    let time = git2::IndexTime::new(0, 0);
    let entry = git2::IndexEntry {
        ctime: time,
        mtime: time,
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: git.blob(text.as_bytes()).unwrap(),
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    };
    index.add(&entry).unwrap();
}

fn component_text(package: usize, component: usize, path: bool) -> String {
    let mut text = format!("  - name: c{component}\n");
    let chart = if path {
        format!("path: charts/c{package}")
    } else {
        let repository = format!("https://charts.example.org/r{}", package % 7);
        format!("chart: {{repository: '{repository}', name: c{component}, version: 1.2.{package}}}")
    };
    let depends_on = if component > 0 { format!("[c{}]", component - 1) } else { "[]".to_owned() };
    // No CEL: its limit on wall time could end a run under callgrind.
    let ready = "{apiVersion: example.org/v1, kind: Thing, name: t, condition: Current}";
    let image = format!("{{repository: images.example.org/c{component}, tag: 'v1.2.{package}'}}");
    let _ = write!(
        text,
        "    {chart}\n    values:\n      replicas: {component}\n      image: {image}\n      config: |\n        a = 1\n        \
         b = [on, off]\n    install:\n      namespace: n{package}\n      dependsOn: {depends_on}\n      readyWhen:\n      - {ready}\n"
    );
    text
}

fn write_charts(directory: &Path, charts: usize) {
    for chart in 0..charts {
        let root = directory.join(format!("c{chart}"));
        fs::create_dir_all(root.join("templates")).unwrap();
        fs::write(root.join("Chart.yaml"), format!("apiVersion: v2\nname: c{chart}\nversion: 1.0.0\n")).unwrap();
        fs::write(root.join("values.yaml"), "replicas: 1\n".repeat(50)).unwrap();
        for template in 0..10 {
            fs::write(root.join(format!("templates/t{template}.yaml")), "kind: ConfigMap\n".repeat(100)).unwrap();
        }
    }
}
