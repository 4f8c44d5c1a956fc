//! What is logged of a watch that is interrupted. That a right is lacking is said once,
//! with what it is for, however often the watch is tried again.

use kube::runtime::watcher;

use super::kinds::Kind;
use super::lookups::refusal;
use crate::api::Engine;

/// One watch.
#[derive(Clone, Debug)]
pub struct Interruption {
    /// `plural.group`, as `kubectl auth can-i` takes it.
    resource: String,
    /// What it is for, and what becomes of that meanwhile.
    purpose: &'static str,
    is_refused: bool,
}

impl Interruption {
    /// Of a watch that serves a purpose.
    pub fn of(resource: impl Into<String>, purpose: &'static str) -> Self {
        Self { resource: resource.into(), purpose, is_refused: false }
    }

    /// Of the watch of one of our kinds.
    pub fn of_kind(kind: Kind) -> Self {
        let purpose = match kind.engine() {
            None => "nothing is done before they can be read",
            Some(Engine::Flux) => {
                "it is needed where Flux is installed, and there nothing begins before they can be read"
            }
            Some(Engine::Argo) => {
                "it is needed where Argo CD is installed, and there nothing begins before they can be read"
            }
        };
        Self::of(kind.definition(), purpose)
    }

    /// Logs an error of the watch.
    pub fn tell(&mut self, error: &watcher::Error) {
        match refusal(error) {
            Some(403) if self.is_news() => tracing::warn!(resource = self.resource, "{}", self.missing()),
            Some(403) => tracing::debug!(resource = self.resource, %error, "still refused"),
            Some(_) | None => tracing::warn!(resource = self.resource, %error, "watch interrupted"),
        }
    }

    /// Logs that the watch goes on, if it was refused before.
    pub fn over(&mut self) {
        if std::mem::take(&mut self.is_refused) {
            tracing::info!(resource = self.resource, "can be read now");
        }
    }

    /// Whether a refusal has not been told yet; it is from now on.
    fn is_news(&mut self) -> bool {
        !std::mem::replace(&mut self.is_refused, true)
    }

    fn missing(&self) -> String {
        format!(
            "no right to get, list and watch {}: {}; it is tried again without another word",
            self.resource, self.purpose
        )
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::ours(Kind::Package, "list and watch packages.windlass.dev: nothing is done")]
    #[case::flux(
        Kind::HelmChart,
        "list and watch helmcharts.source.toolkit.fluxcd.io: it is needed where Flux is installed"
    )]
    #[case::argo(Kind::Application, "list and watch applications.argoproj.io: it is needed where Argo CD is installed")]
    fn a_right_that_is_lacking_is_named_with_what_it_is_for(#[case] kind: Kind, #[case] told: &str) {
        let message = Interruption::of_kind(kind).missing();
        assert!(message.contains(told), "{message}");
    }

    #[test]
    fn a_refusal_is_news_once_until_it_is_over() {
        let mut interruption = Interruption::of("nodes", "only for canaries");
        assert_eq!([interruption.is_news(), interruption.is_news()], [true, false]);
        interruption.over();
        assert!(interruption.is_news());
    }
}
