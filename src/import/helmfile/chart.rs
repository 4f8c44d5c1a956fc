//! Where the chart of a release comes from.

use super::{Helmfile, wire};
use crate::api::{Chart, Component};
use crate::import::{Imported, resolved};
use crate::package::version::Version;

/// Finds the chart of one release.
pub(super) struct ChartFinder<'a> {
    pub imported: &'a mut Imported,
    pub helmfile: &'a Helmfile,
    pub release: &'a wire::Release,
    /// The component, for notes.
    pub subject: &'a str,
}

/// What helmfile takes the name of a chart for.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    Directory(&'a str),
    Registry { repository: String, name: &'a str },
    Repository { repository: &'a str, name: &'a str },
    Elsewhere,
}

fn place(chart: &str) -> Place<'_> {
    if let Some(image) = chart.strip_prefix("oci://") {
        return match image.rsplit_once('/') {
            Some((repository, name)) => Place::Registry { repository: format!("oci://{repository}"), name },
            None => Place::Elsewhere,
        };
    }
    if chart.contains("://") || chart.contains("::") {
        return Place::Elsewhere;
    }
    let is_directory = ["./", "../", "/"].iter().any(|start| chart.starts_with(start));
    match chart.split_once('/').filter(|_| !is_directory && chart.split('/').count() <= 3) {
        Some((repository, name)) => Place::Repository { repository, name },
        None => Place::Directory(chart),
    }
}

impl ChartFinder<'_> {
    /// Fills `chart` or `path`.
    pub fn find(&mut self, component: &mut Component) {
        match place(&self.release.chart) {
            Place::Directory(path) => component.path = self.directory(path),
            Place::Registry { repository, name } => component.chart = Some(self.chart(repository, name)),
            Place::Repository { repository, name } => component.chart = self.repository(repository, name),
            Place::Elsewhere => {
                let chart = &self.release.chart;
                self.imported.error(
                    self.subject,
                    format!(
                        "has no chart, since {chart} is neither of a repository nor a directory: name its repository"
                    ),
                );
            }
        }
    }

    /// A directory as seen from where the command runs.
    fn directory(&mut self, path: &str) -> Option<String> {
        if !self.release.version.is_empty() {
            let message = "version is not carried over: a chart in a directory has the version of its Chart.yaml";
            self.imported.warn(self.subject, message);
        }
        let directory = &self.helmfile.directory;
        let is_absolute = directory.starts_with('/') || path.starts_with('/');
        let found = resolved(directory, path).filter(|_| !is_absolute);
        if found.is_none() {
            let message = format!(
                "has no chart, since {path} is not below the directory that this command runs in: run it at the root \
                 of the repository, and name the helmfile from there"
            );
            self.imported.error(self.subject, message);
        }
        found
    }

    fn repository(&mut self, repository: &str, name: &str) -> Option<Chart> {
        let Some(known) = self.helmfile.repositories.iter().find(|known| known.name == repository) else {
            let message = format!(
                "has no chart, since the helmfile has no repository {repository}: add it to `repositories`, or write \
                 ./{repository}/{name} for a directory"
            );
            self.imported.error(self.subject, message);
            return None;
        };
        let url = known.url.trim_end_matches('/');
        let is_bare = known.oci && !url.contains("://");
        let url = if is_bare { format!("oci://{url}") } else { known.url.clone() };
        Some(self.chart(url, name))
    }

    fn chart(&mut self, repository: String, name: &str) -> Chart {
        let version = &self.release.version;
        if Version::parse(version).is_err() {
            let written = if version.is_empty() { "not written".to_owned() } else { format!("`{version}`") };
            let message = format!(
                "chart.version: its version is {written}, which is no exact version: pin it to the one that runs, as \
                 `helm list` shows it, or to that of helmfile.lock"
            );
            self.imported.error(self.subject, message);
        }
        Chart { repository, name: name.to_owned(), version: version.clone(), digest: None, secret_ref: None }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::of_a_repository("stable/db", Place::Repository { repository: "stable", name: "db" })]
    #[case::deeper_in_a_registry("acme/charts/db", Place::Repository { repository: "acme", name: "charts/db" })]
    #[case::registry("oci://r.example.org/charts/db", Place::Registry { repository: "oci://r.example.org/charts".into(), name: "db" })]
    #[case::directory("./db", Place::Directory("./db"))]
    #[case::directory_above("../charts/db", Place::Directory("../charts/db"))]
    #[case::one_word("db", Place::Directory("db"))]
    #[case::many_words("a/b/c/db", Place::Directory("a/b/c/db"))]
    #[case::archive("https://e.org/db-1.0.0.tgz", Place::Elsewhere)]
    #[case::git("git::https://g.org/x.git@charts/db?ref=v1", Place::Elsewhere)]
    fn a_chart_is_what_helmfile_takes_it_for(#[case] chart: &str, #[case] wanted: Place<'_>) {
        assert_eq!(place(chart), wanted);
    }
}
