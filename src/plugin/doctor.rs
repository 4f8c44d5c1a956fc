//! Why Argo CD does not find or does not use the plugin: looks at the sidecar
//! from within, or at the manifests that it comes from.

mod file;
mod manifests;
mod report;
mod sidecar;

use crate::package::diagnostic::Severity;

pub use manifests::examine_manifests;
pub use report::{write_json, write_text};
pub use sidecar::{Entry, EntryKind, Machine, examine_sidecar};

/// Where Argo CD's server of a plugin looks for its configuration.
pub const CONFIGURATION: &str = "/home/argocd/cmp-server/config/plugin.yaml";
/// Where it makes its socket, and where the repo-server looks for it.
pub const SOCKETS: &str = "/home/argocd/cmp-server/plugins";
/// That server. An init container of Argo CD's copies it.
pub const SERVER: &str = "/var/run/argocd/argocd-cmp-server";
/// The user that the repo-server runs as.
pub const USER: u64 = 999;

/// What can be wrong with an installation. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// No container of the repo-server's pod runs the plugin.
    SidecarMissing,
    /// The container does not run Argo CD's server of a plugin.
    WrongEntrypoint,
    /// Argo CD's server of a plugin is not there.
    ServerMissing,
    /// The container runs as another user than the repo-server.
    WrongUser,
    /// There is no plugin.yaml.
    ConfigurationMissing,
    /// plugin.yaml is not what Argo CD reads.
    ConfigurationInvalid,
    /// The program that plugin.yaml names is not in the image.
    CommandMissing,
    /// plugin.yaml runs something else than `windlass plugin generate`.
    WrongCommand,
    /// The socket is made where the repo-server does not look.
    SocketsNotShared,
    /// The socket cannot be made.
    SocketsNotWritable,
    /// Argo CD's server runs, and has no socket.
    SocketMissing,
    /// The files that Argo CD sends cannot be unpacked.
    WorkNotWritable,
    /// An Application names another plugin than there is.
    NameNotServed,
    /// Files of the repo-server are within reach of the plugin.
    WorkShared,
    /// Argo CD sends every repository here.
    Discovers,
    /// The version is part of the name that Applications write.
    NameHasVersion,
    /// The command that prints parameters does not work.
    WrongParametersCommand,
    /// The plugin is given rights on the cluster.
    TokenMounted,
    /// A setting that has no effect.
    TimeoutIgnored,
}

impl Cause {
    /// Every one, the faults first.
    pub const ALL: [Self; 19] = [
        Self::SidecarMissing,
        Self::WrongEntrypoint,
        Self::ServerMissing,
        Self::WrongUser,
        Self::ConfigurationMissing,
        Self::ConfigurationInvalid,
        Self::CommandMissing,
        Self::WrongCommand,
        Self::SocketsNotShared,
        Self::SocketsNotWritable,
        Self::SocketMissing,
        Self::WorkNotWritable,
        Self::NameNotServed,
        Self::WorkShared,
        Self::Discovers,
        Self::NameHasVersion,
        Self::WrongParametersCommand,
        Self::TokenMounted,
        Self::TimeoutIgnored,
    ];

    /// Its stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SidecarMissing => "SidecarMissing",
            Self::WrongEntrypoint => "WrongEntrypoint",
            Self::ServerMissing => "ServerMissing",
            Self::WrongUser => "WrongUser",
            Self::ConfigurationMissing => "ConfigurationMissing",
            Self::ConfigurationInvalid => "ConfigurationInvalid",
            Self::CommandMissing => "CommandMissing",
            Self::WrongCommand => "WrongCommand",
            Self::SocketsNotShared => "SocketsNotShared",
            Self::SocketsNotWritable => "SocketsNotWritable",
            Self::SocketMissing => "SocketMissing",
            Self::WorkNotWritable => "WorkNotWritable",
            Self::NameNotServed => "NameNotServed",
            Self::WorkShared => "WorkShared",
            Self::Discovers => "Discovers",
            Self::NameHasVersion => "NameHasVersion",
            Self::WrongParametersCommand => "WrongParametersCommand",
            Self::TokenMounted => "TokenMounted",
            Self::TimeoutIgnored => "TimeoutIgnored",
        }
    }

    /// Whether the plugin cannot work, or works worse than it could.
    pub const fn severity(self) -> Severity {
        match self {
            Self::SidecarMissing
            | Self::WrongEntrypoint
            | Self::ServerMissing
            | Self::WrongUser
            | Self::ConfigurationMissing
            | Self::ConfigurationInvalid
            | Self::CommandMissing
            | Self::WrongCommand
            | Self::SocketsNotShared
            | Self::SocketsNotWritable
            | Self::SocketMissing
            | Self::WorkNotWritable
            | Self::NameNotServed => Severity::Error,
            Self::WorkShared
            | Self::Discovers
            | Self::NameHasVersion
            | Self::WrongParametersCommand
            | Self::TokenMounted
            | Self::TimeoutIgnored => Severity::Warning,
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub cause: Cause,
    /// A path in the container, or a manifest and a field of it.
    pub place: String,
    /// What is there.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// What was looked at, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examination {
    /// The name that Applications have to write; `None` if nobody knows.
    pub name: Option<String>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What could not be looked at.
    pub unknown: Vec<String>,
}

impl Examination {
    /// How much of a severity was found.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.cause.severity() == severity).count()
    }

    fn find(&mut self, cause: Cause, place: impl Into<String>, message: impl Into<String>, help: impl Into<String>) {
        let (place, message, help) = (place.into(), message.into(), help.into());
        self.findings.push(Finding { cause, place, message, help });
    }
}

const TIMEOUT_MESSAGE: &str = "ARGOCD_EXEC_TIMEOUT is set, which Argo CD's server of plugins does not read";
const TIMEOUT_HELP: &str = "raise controller.repo.server.timeout.seconds and server.repo.server.timeout.seconds in \
                            argocd-cmd-params-cm together";
