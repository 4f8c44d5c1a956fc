//! What the controller is told when it starts.

use std::net::SocketAddr;
use std::time::Duration;

use crate::api::Engine;
use crate::package::names::ObjectName;

/// Settings of one controller.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Engine of Packages that name none.
    pub engine: Option<Engine>,
    /// Argo CD project of Applications.
    pub argo_project: String,
    /// The only namespace that is watched; `None`: all of them.
    pub watch_namespace: Option<String>,
    /// Account of Packages that name none.
    pub default_service_account: Option<ObjectName>,
    /// Refuses Packages without an account.
    pub require_service_account: bool,
    /// How long Packages that require others must be still before they start.
    pub requirements_settle: Duration,
    /// How long a deleted Package is left alone before anything of it is uninstalled.
    pub deletion_settle: Duration,
    /// Packages that are looked at at the same time.
    pub concurrency: usize,
    /// Namespace of the Lease; `None`: no election, this is the only controller.
    pub lease_namespace: Option<String>,
    /// Name of the Lease.
    pub lease_name: String,
    /// Name this process holds the Lease under.
    pub identity: String,
    /// Where health and metrics are served.
    pub listen: SocketAddr,
}

/// Longest time one request to the API server may take.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

#[cfg(test)]
pub mod testing {
    //! Settings for tests.

    use super::*;

    /// Settings of a process without an election.
    pub fn settings() -> Settings {
        Settings {
            engine: None,
            argo_project: String::new(),
            watch_namespace: None,
            default_service_account: None,
            require_service_account: false,
            requirements_settle: Duration::ZERO,
            deletion_settle: Duration::ZERO,
            concurrency: 1,
            lease_namespace: None,
            lease_name: String::new(),
            identity: String::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        }
    }
}
