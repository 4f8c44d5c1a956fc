//! Requests to the API server, each bounded in time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use kube::api::{ApiResource, DynamicObject};
use kube::client::{Client, ClientBuilder};
use kube::core::DynamicResourceScope;
use kube::error::DiscoveryError;
use kube::{Api, Config};
use thiserror::Error;

use super::settings::REQUEST_TIMEOUT;

/// Why a request did not do what it should.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The API server said no.
    #[error("{}", plain(.0))]
    Refused(Box<kube::Error>),
    /// It did not answer in time.
    #[error("the API server did not answer within {}s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
}

impl RequestError {
    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(error) => match error.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Timeout => None,
        }
    }

    /// Whether the object, or its kind, is not there. A group that is served
    /// without the kind is no answer of the API server but of kube's discovery.
    pub fn is_not_found(&self) -> bool {
        let Self::Refused(error) = self else { return false };
        match error.as_ref() {
            kube::Error::Api(status) => status.code == 404,
            kube::Error::Discovery(
                DiscoveryError::MissingKind(_)
                | DiscoveryError::MissingApiGroup(_)
                | DiscoveryError::MissingResource(_)
                | DiscoveryError::EmptyApiGroup(_),
            ) => true,
            _ => false,
        }
    }

    /// Whether the API server does not serve the kind: it names no object then.
    pub fn is_kind_unknown(&self) -> bool {
        let Self::Refused(error) = self else { return false };
        match error.as_ref() {
            kube::Error::Api(status) => {
                status.code == 404 && status.details.as_ref().is_none_or(|details| details.name.is_empty())
            }
            _ => self.is_not_found(),
        }
    }

    /// Whether the object is not as it was expected. Where the uid is another
    /// one the API server may say that it cannot be changed.
    pub fn is_conflict(&self) -> bool {
        matches!(self.code(), Some(409 | 412)) || self.is_about(&["metadata.uid", "metadata.resourceVersion"])
    }

    /// Whether the API server does not take an object as it is.
    pub fn is_invalid(&self) -> bool {
        matches!(self.code(), Some(400 | 413 | 422)) && !self.is_conflict()
    }

    fn is_about(&self, fields: &[&str]) -> bool {
        let Self::Refused(error) = self else { return false };
        let kube::Error::Api(status) = error.as_ref() else { return false };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes.map(|cause| cause.field.as_str()).any(|field| fields.contains(&field))
    }

    /// Whether the API server answered with what cannot be read.
    pub fn is_unreadable(&self) -> bool {
        let Self::Refused(error) = self else { return false };
        matches!(error.as_ref(), kube::Error::SerdeError(_))
    }

    /// Whether the account in use lacks a right.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }
}

/// What the API server has written for people; kube shows its whole answer.
fn plain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

/// Waits for a request, but not for ever: kube's client has no time limit of
/// its own.
///
/// # Errors
/// See [`RequestError`].
pub async fn bounded<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, RequestError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(RequestError::Refused(Box::new(error))),
        Err(_) => Err(RequestError::Timeout),
    }
}

/// Clients of one API server: our own, and one for each account we act as.
pub struct Accounts {
    config: Config,
    own: Client,
    clients: Mutex<HashMap<String, Client>>,
}

/// Most clients that are kept; each is a connection pool.
const MOST_CLIENTS: usize = 256;

impl Accounts {
    /// Connects as ourselves.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn new(config: Config) -> kube::Result<Self> {
        let own = client(&config)?;
        Ok(Self { config, own, clients: Mutex::default() })
    }

    /// Ourselves.
    pub fn own(&self) -> Client {
        self.own.clone()
    }

    /// A service account; without one ourselves.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn of(&self, namespace: &str, account: Option<&str>) -> kube::Result<Client> {
        let Some(account) = account else { return Ok(self.own()) };
        let user = format!("system:serviceaccount:{namespace}:{account}");
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&user) {
            return Ok(client.clone());
        }
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(user.clone());
        // Without groups the API server adds those of a service account by itself.
        let client = client(&config)?;
        if clients.len() >= MOST_CLIENTS {
            clients.clear();
        }
        clients.insert(user, client.clone());
        Ok(client)
    }
}

/// Retries are ours, with a pause per Package.
fn client(config: &Config) -> kube::Result<Client> {
    let mut config = config.clone();
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?.build())
}

/// The objects of a kind in a namespace, or cluster-wide where it is empty.
pub fn api(client: Client, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
    typed_api(client, namespace, resource)
}

/// The same, read as another type.
pub fn typed_api<K: kube::Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>>(
    client: Client,
    namespace: &str,
    resource: &ApiResource,
) -> Api<K> {
    if namespace.is_empty() {
        Api::all_with(client, resource)
    } else {
        Api::namespaced_with(client, namespace, resource)
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use rstest::rstest;

    use super::*;

    fn refused(error: kube::Error) -> RequestError {
        RequestError::Refused(Box::new(error))
    }

    fn answer(code: u16) -> kube::Error {
        kube::Error::Api(Status { code, message: "said so".to_owned(), ..Status::default() }.boxed())
    }

    #[rstest]
    #[case::answer(answer(404), true)]
    #[case::kind_of_a_served_group(kube::Error::Discovery(DiscoveryError::MissingKind("a".to_owned())), true)]
    #[case::group(kube::Error::Discovery(DiscoveryError::MissingApiGroup("a".to_owned())), true)]
    #[case::unavailable(answer(503), false)]
    #[case::refusal(answer(403), false)]
    fn a_kind_that_is_not_served_is_not_found(#[case] error: kube::Error, #[case] expected: bool) {
        assert_eq!(refused(error).is_not_found(), expected);
    }

    #[test]
    fn an_object_that_is_not_there_is_told_from_a_kind_that_is_not_served() {
        let named = serde_json::from_value(serde_json::json!({"name": "db"})).unwrap();
        let object = Status { code: 404, details: Some(named), ..Status::default() };
        assert!(!refused(kube::Error::Api(object.boxed())).is_kind_unknown());
        assert!(refused(answer(404)).is_kind_unknown());
    }

    #[test]
    fn people_read_what_was_written_for_them() {
        assert_eq!(refused(answer(403)).to_string(), "said so");
    }
}
