//! What was rendered is, to a YAML 1.1 reader, what the translator meant.

use serde_json::Value;
use windlass::api::{ComponentSource, Engine, Package};
use windlass::package::definition::{self, Definition};
use windlass::translate::{Options, managed, native};

use super::{printed, read_yaml_1_1};

/// Where charts at a path are said to come from.
pub const REPOSITORY: &str = "https://git.example.org/packages.git";
pub const COMMIT: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// What Packages say that come from [`REPOSITORY`] at [`COMMIT`].
pub fn definitions(packages: &[Package]) -> Vec<Definition> {
    let parse = |package: &Package| {
        let (name, namespace) = (package.metadata.name.as_deref().unwrap(), package.metadata.namespace.as_deref());
        // Argo CD must be told where charts at a path come from.
        let mut spec = package.spec.clone();
        for component in spec.components.iter_mut().filter(|component| component.path.is_some()) {
            component.source = Some(ComponentSource {
                repo_url: REPOSITORY.into(),
                revision: COMMIT.into(),
                ..ComponentSource::default()
            });
        }
        definition::parse(name, namespace.unwrap(), &spec).unwrap()
    };
    packages.iter().map(parse).collect()
}

/// Renders the files of some Packages in both modes and has PyYAML read them.
/// Gives the number of objects that were compared.
pub fn check(files: &str, packages: &[Package], engine: Engine) -> usize {
    let definitions = definitions(packages);
    let options = Options { skip_hooks: true, ..Options::for_engine(Some(engine)) };
    let mut compared = 0;
    for (mode, translation) in
        [("managed", managed(&definitions, &options)), ("native", native(&definitions, &options))]
    {
        let objects = translation.unwrap().objects;
        let meant: Vec<Value> = objects.iter().map(|object| Value::Object(object.as_map().clone())).collect();
        let mut arguments = vec!["render", files, "--engine", engine.as_str(), "--mode", mode];
        arguments.extend(["--repo-url", REPOSITORY, "--revision", COMMIT]);
        if mode == "native" {
            arguments.push("--skip-hooks");
        }
        let read = read_yaml_1_1(&printed(arguments));
        assert_eq!(read.len(), meant.len());
        for (read, meant) in read.iter().zip(&meant) {
            assert_eq!(read, meant);
        }
        compared += meant.len();
    }
    compared
}
