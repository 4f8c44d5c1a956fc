//! Where the chart of a source of an Application comes from.

use super::Application;
use super::application::Member;
use super::values;
use crate::api::{Chart, Component};
use crate::import::{Imported, Options};
use crate::package::definition::RelativePath;
use crate::package::version::Version;

/// Revisions that follow a repository, as the charts of a Package do.
const FOLLOWING: [&str; 4] = ["", "HEAD", "main", "master"];

/// Finds chart and values of one component.
pub(super) struct ChartFinder<'a, 'o> {
    pub imported: &'a mut Imported,
    pub options: &'a Options<'o>,
    pub member: &'a Member<'a>,
    /// The Application that holds this one.
    pub parent: Option<&'a Application>,
}

impl ChartFinder<'_, '_> {
    /// Fills `chart` or `path`, and values. Returns the Git repository that a path
    /// is in.
    pub fn find(&mut self, component: &mut Component) -> Option<String> {
        let source = self.member.source;
        let is_oci = source.repo_url.starts_with("oci://");
        let git = match (source.chart(), source.path()) {
            (Some(chart), _) => {
                component.chart = Some(self.chart(&address(&source.repo_url), chart));
                None
            }
            (None, Some(path)) if is_oci => {
                component.chart = self.artifact(path);
                None
            }
            (None, Some(path)) => {
                let tidied = RelativePath::parse(path);
                component.path = Some(tidied.map_or_else(|| path.to_owned(), |path| path.as_str().to_owned()));
                self.revision();
                Some(source.repo_url.trim_end_matches('/').trim_end_matches(".git").to_owned())
            }
            (None, None) => None,
        };
        values::fill(self.imported, self.options, self.member, component);
        git
    }

    fn chart(&mut self, repository: &str, name: &str) -> Chart {
        let version = &self.member.source.target_revision;
        if Version::parse(version).is_err() {
            self.pin(version);
        }
        Chart {
            repository: repository.to_owned(),
            name: name.to_owned(),
            version: version.clone(),
            digest: None,
            secret_ref: None,
        }
    }

    fn pin(&mut self, version: &str) {
        let application = self.member.application;
        let is_alone = application.spec.sources.is_empty();
        let runs = application.runs.as_deref().filter(|runs| is_alone && Version::parse(runs).is_ok());
        let how = runs.map_or_else(
            || "pin it to the version that runs, as `argocd app get` shows it".to_owned(),
            |runs| format!("pin it to the version that runs, {runs}"),
        );
        let written = if version.is_empty() { "nothing".to_owned() } else { format!("`{version}`") };
        let message = format!("chart.version: targetRevision is {written}, which is no exact version: {how}");
        self.imported.error(&self.member.subject, message);
    }

    /// A chart that Argo CD reads from an image of the registry itself: the last
    /// part of its address is the chart's name.
    fn artifact(&mut self, path: &str) -> Option<Chart> {
        let url = self.member.source.repo_url.trim_end_matches('/');
        match (url.rsplit_once('/'), path.trim_matches('/')) {
            (Some((repository, name)), "." | "") if repository.len() > "oci:/".len() => {
                Some(self.chart(repository, name))
            }
            _ => {
                let message = format!("{path} of {url} is not carried over: a chart is an image of its own");
                self.imported.error(&self.member.subject, message);
                None
            }
        }
    }

    /// A chart at a path is as in the commit of its Package, whatever the
    /// Application said.
    fn revision(&mut self) {
        let revision = self.member.source.target_revision.as_str();
        let of_parent = |parent: &Application| {
            let sources = parent.spec.all_sources();
            sources
                .iter()
                .any(|source| source.repo_url == self.member.source.repo_url && source.target_revision == revision)
        };
        if !FOLLOWING.contains(&revision) && !self.parent.is_some_and(of_parent) {
            let message = format!(
                "targetRevision {revision} is not carried over: a chart at a path is as in the commit of the Package; \
                 see that it is the same there"
            );
            self.imported.error(&self.member.subject, message);
        }
    }
}

/// Argo CD takes an address without a scheme for that of a registry.
fn address(repo_url: &str) -> String {
    let url = repo_url.trim_end_matches('/');
    if url.contains("://") || url.is_empty() { repo_url.to_owned() } else { format!("oci://{url}") }
}
