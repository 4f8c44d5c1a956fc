//! Packages and charts that the cases work on.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Fills a directory: `large`, 100 Packages with 1,000 components, and `small`,
/// 10 Packages with 50 components, of which 10 are charts beside them.
pub fn write(root: &Path) {
    write_packages(&root.join("large"), 100, 10);
    write_packages(&root.join("small/packages"), 10, 5);
    write_charts(&root.join("small/charts"), 10);
}

/// Packages with a chain of components each; every second one requires the one before.
fn write_packages(directory: &Path, packages: usize, components: usize) {
    fs::create_dir_all(directory).unwrap();
    let with_paths = directory.ends_with("packages");
    for package in 0..packages {
        let requires = if package % 2 == 1 { format!("[{{package: p{}}}]", package - 1) } else { "[]".to_owned() };
        let mut text = format!(
            "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: p{package}}}\nspec:\n  \
             version: 1.{package}.0\n  requires: {requires}\n  components:\n"
        );
        for component in 0..components {
            text.push_str(&component_text(package, component, with_paths && component == 0));
        }
        fs::write(directory.join(format!("p{package}.yaml")), text).unwrap();
    }
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
