//! Which Applications belong together: those of one app-of-apps.

use super::Application;
use crate::api::wellknown::ARGO_TRACKING_ID;
use crate::import::group::common_words;
use crate::package::definition::RelativePath;

/// Applications that become one Package, by their positions in the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// Name of the Package.
    pub name: String,
    /// Position of the Application whose source they are, if it is in the input.
    pub parent: Option<usize>,
    /// Whether that one is in turn part of another one.
    pub nested: bool,
    /// Those that become components.
    pub members: Vec<usize>,
}

/// What tells of an Application that it is part of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Parent {
    Position(usize),
    /// One that is not in the input.
    Name(String),
}

/// The families of the input, in the order of their first members.
pub(super) fn families(applications: &[Application]) -> Vec<Family> {
    let parents: Vec<Option<Parent>> =
        (0..applications.len()).map(|position| parent_of(applications, position)).collect();
    let is_parent = |position: usize| parents.iter().flatten().any(|parent| *parent == Parent::Position(position));
    let mut families: Vec<(Option<&Parent>, Vec<usize>)> = Vec::new();
    for (position, parent) in parents.iter().enumerate().filter(|(position, _)| !is_parent(*position)) {
        match families.iter_mut().find(|(known, _)| *known == parent.as_ref()) {
            Some((_, members)) => members.push(position),
            None => families.push((parent.as_ref(), vec![position])),
        }
    }
    let named = families.into_iter().map(|(parent, members)| {
        let of = |position: usize| applications.get(position).map(|application| application.key.name.as_str());
        let (name, parent) = match parent {
            Some(Parent::Position(position)) => (of(*position).unwrap_or_default().to_owned(), Some(*position)),
            Some(Parent::Name(name)) => (name.clone(), None),
            None => {
                let common = common_words(members.iter().filter_map(|member| of(*member)));
                let first = members.first().and_then(|first| of(*first)).unwrap_or_default();
                (if common.is_empty() { first.to_owned() } else { common }, None)
            }
        };
        let nested = parent.and_then(|parent| parents.get(parent)).is_some_and(Option::is_some);
        Family { name, parent, nested, members }
    });
    named.collect()
}

/// What Argo CD has written on a live one, else whose directory it lies in.
fn parent_of(applications: &[Application], child: usize) -> Option<Parent> {
    let application = applications.get(child)?;
    let tracked = application.annotation(ARGO_TRACKING_ID).and_then(|id| tracked_by(id, &application.key.name));
    if let Some(name) = tracked {
        let known = applications.iter().position(|other| other.key.name == name);
        return Some(known.map_or_else(|| Parent::Name(name.to_owned()), Parent::Position));
    }
    let holds = applications.iter().enumerate().filter(|(position, _)| *position != child);
    let holds = holds.filter_map(|(position, other)| Some((depth_that_holds(other, &application.origin)?, position)));
    holds.max_by_key(|(depth, position)| (*depth, std::cmp::Reverse(*position))).map(|(_, at)| Parent::Position(at))
}

/// The Application in `<name>:argoproj.io/Application:<namespace>/<child>`; its
/// name may have its namespace in front, `<namespace>_<name>`. One that names
/// another object was copied from there.
fn tracked_by<'a>(id: &'a str, child: &str) -> Option<&'a str> {
    let (parent, object) = id.split_once(':')?;
    let (_, name) = object.strip_prefix("argoproj.io/Application:")?.split_once('/')?;
    let parent = parent.split_once('_').map_or(parent, |(_, name)| name);
    (name == child && parent != child).then_some(parent)
}

/// How many directories deep the place is from which an Application takes plain
/// manifests, if the file is one of these. The files may have been read from
/// anywhere, so that only the end of their directory has to be it.
fn depth_that_holds(parent: &Application, file: &str) -> Option<usize> {
    let directory = file.rsplit_once('/').map(|(directory, _)| directory)?;
    let directory: Vec<&str> = directory.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let sources = parent.spec.all_sources().into_iter().filter(|source| source.chart().is_none());
    let depths = sources.filter_map(|source| {
        let path = RelativePath::parse(source.path()?)?;
        let path: Vec<&str> = path.as_str().split('/').filter(|part| !part.is_empty()).collect();
        let recurse = source.directory.as_ref().and_then(|directory| directory.get("recurse")?.as_bool());
        let holds = if recurse == Some(true) {
            directory.windows(path.len().max(1)).any(|part| part == path)
        } else {
            directory.ends_with(&path)
        };
        (!path.is_empty() && holds).then_some(path.len())
    });
    depths.max()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::import::Document;

    fn application(origin: &str, name: &str, annotations: serde_json::Value, source: serde_json::Value) -> Application {
        let value = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "annotations": annotations}, "spec": {"source": source},
        });
        Application::read(&Document { origin: origin.to_owned(), value, written: None }).unwrap()
    }

    fn child(origin: &str, name: &str) -> Application {
        application(origin, name, json!({}), json!({"chart": "c"}))
    }

    fn names(applications: &[Application]) -> Vec<(String, Option<usize>, Vec<usize>)> {
        families(applications).into_iter().map(|family| (family.name, family.parent, family.members)).collect()
    }

    #[rstest]
    #[case::same_directory("apps/db.yaml", json!({"path": "apps"}), true)]
    #[case::read_from_elsewhere("/src/infra/apps/db.yaml", json!({"path": "./infra/apps/"}), true)]
    #[case::another_directory("other/db.yaml", json!({"path": "apps"}), false)]
    #[case::half_a_name("my-apps/db.yaml", json!({"path": "apps"}), false)]
    #[case::below_it("apps/a/db.yaml", json!({"path": "apps"}), false)]
    #[case::below_it_and_asked_for("apps/a/db.yaml", json!({"path": "apps", "directory": {"recurse": true}}), true)]
    #[case::a_chart("apps/db.yaml", json!({"path": "apps", "chart": "c"}), false)]
    #[case::root_of_the_repository("apps/db.yaml", json!({"path": "."}), false)]
    #[case::no_directory("db.yaml", json!({"path": "apps"}), false)]
    fn a_parent_takes_the_files_of_its_children(
        #[case] file: &str,
        #[case] source: serde_json::Value,
        #[case] is: bool,
    ) {
        let found = names(&[application("root.yaml", "platform", json!({}), source), child(file, "db")]);
        let wanted =
            if is { ("platform".to_owned(), Some(0), vec![1]) } else { ("platform".to_owned(), None, vec![0, 1]) };
        assert_eq!(found, [wanted]);
    }

    #[rstest]
    #[case::its_own("up:argoproj.io/Application:argocd/db", "up")]
    #[case::with_namespace("team_up:argoproj.io/Application:argocd/db", "up")]
    #[case::copied_from_another_object("up:argoproj.io/Application:argocd/other", "db")]
    #[case::another_kind("up:apps/Deployment:argocd/db", "db")]
    #[case::itself("db:argoproj.io/Application:argocd/db", "db")]
    fn a_live_application_tells_its_parent(#[case] id: &str, #[case] name: &str) {
        let live = application("-", "db", json!({ARGO_TRACKING_ID: id}), json!({"chart": "c"}));
        assert_eq!(names(&[live]), [(name.to_owned(), None, vec![0])]);
    }

    #[test]
    fn each_parent_has_a_family_of_its_own() {
        let found = names(&[
            child("b/web.yaml", "web"),
            application("root.yaml", "one", json!({}), json!({"path": "a"})),
            application("root.yaml", "two", json!({}), json!({"path": "b"})),
            child("a/db.yaml", "db"),
            child("other/queue.yaml", "queue"),
            child("a/cache.yaml", "cache"),
        ]);
        let wanted = [("two", Some(2), vec![0]), ("one", Some(1), vec![3, 5]), ("queue", None, vec![4])];
        assert_eq!(found, wanted.map(|(name, parent, members)| (name.to_owned(), parent, members)));
    }

    #[test]
    fn a_family_within_another_one_is_told_apart() {
        let found = families(&[
            application("root.yaml", "all", json!({}), json!({"path": "teams"})),
            application("teams/a.yaml", "team", json!({}), json!({"path": "teams/a"})),
            child("teams/web.yaml", "web"),
            child("teams/a/db.yaml", "db"),
        ]);
        let told: Vec<_> = found.into_iter().map(|family| (family.name, family.nested, family.members)).collect();
        assert_eq!(told, [("all".to_owned(), false, vec![2]), ("team".to_owned(), true, vec![3])]);
    }

    #[test]
    fn without_a_parent_the_common_words_name_the_package() {
        assert_eq!(names(&[child("a", "shop-db"), child("a", "shop-web")])[0].0, "shop");
        assert_eq!(names(&[child("a", "db"), child("a", "web")])[0].0, "db");
    }
}
