//! `windlass controller`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use tracing_subscriber::EnvFilter;

use super::cluster::infer;
use super::{Exit, Streams};
use crate::api::Engine;
use crate::controller::{self, lease, settings::Settings};
use crate::package::duration::GoDuration;
use crate::package::names::{NameError, Namespace, ObjectName};

#[derive(Debug, clap::Args)]
#[command(after_help = "Every flag can also be set in the environment, as shown.")]
pub struct Arguments {
    /// Engine of Packages that name none: flux or argo [default: the only one installed].
    #[arg(long, env = "WINDLASS_ENGINE", value_parser = engine)]
    engine: Option<Engine>,
    /// Argo CD project of the Applications.
    #[arg(long, env = "WINDLASS_ARGO_PROJECT", default_value = PROJECT, value_parser = object)]
    argo_project: Given<ObjectName>,
    /// Watch only this namespace.
    #[arg(long, env = "WINDLASS_WATCH_NAMESPACE", value_parser = namespace)]
    watch_namespace: Option<Given<Namespace>>,
    /// ServiceAccount of Packages that name none.
    #[arg(long, env = "WINDLASS_DEFAULT_SERVICE_ACCOUNT", value_parser = object)]
    default_service_account: Option<Given<ObjectName>>,
    /// Refuse Packages without a ServiceAccount.
    #[arg(long, env = "WINDLASS_REQUIRE_SERVICE_ACCOUNT", value_parser = BoolishValueParser::new())]
    require_service_account: bool,
    /// How long Packages that require others must be unchanged before they start.
    #[arg(long, env = "WINDLASS_REQUIREMENTS_SETTLE", default_value = "2s", value_parser = duration)]
    requirements_settle: Duration,
    /// How long a deleted Package is left alone before anything of it is uninstalled.
    #[arg(long, env = "WINDLASS_DELETION_SETTLE", default_value = "30s", value_parser = duration)]
    deletion_settle: Duration,
    /// Packages that are looked at at the same time.
    #[arg(long, env = "WINDLASS_CONCURRENCY", default_value_t = 4)]
    concurrency: usize,
    /// Namespace of the Lease that elects the leader; empty: no election.
    #[arg(long, env = "WINDLASS_LEASE_NAMESPACE", default_value = "windlass-system", value_parser = namespace)]
    lease_namespace: Given<Namespace>,
    /// Name of that Lease. Controllers that watch different namespaces need different ones.
    #[arg(long, env = "WINDLASS_LEASE_NAME", default_value = lease::NAME, value_parser = object)]
    lease_name: Given<ObjectName>,
    /// Name this process holds the Lease under, before what tells processes apart. Default: the host's.
    #[arg(long, env = "WINDLASS_IDENTITY")]
    identity: Option<String>,
    /// Address of health checks and metrics.
    #[arg(long, env = "WINDLASS_LISTEN", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
    /// Log as JSON.
    #[arg(long, env = "WINDLASS_LOG_JSON", value_parser = BoolishValueParser::new())]
    log_json: bool,
}

fn engine(text: &str) -> Result<Engine, String> {
    match text {
        "flux" => Ok(Engine::Flux),
        "argo" => Ok(Engine::Argo),
        _ => Err("use flux or argo".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    GoDuration::parse(text).map(GoDuration::get).map_err(|error| error.to_string())
}

/// Project of Applications where none is given.
const PROJECT: &str = "default";

/// What a flag or variable holds: the empty text of a template whose value is not
/// set gives nothing.
#[derive(Clone, Debug)]
struct Given<T>(Option<T>);

impl<T: AsRef<str>> Given<T> {
    fn text(&self) -> Option<String> {
        self.0.as_ref().map(|name| name.as_ref().to_owned())
    }
}

fn object(text: &str) -> Result<Given<ObjectName>, String> {
    given(text, ObjectName::parse)
}

fn namespace(text: &str) -> Result<Given<Namespace>, String> {
    given(text, Namespace::parse)
}

fn given<T>(text: &str, parse: impl Fn(&str) -> Result<T, NameError>) -> Result<Given<T>, String> {
    let name = Some(text).filter(|text| !text.is_empty()).map(parse).transpose();
    name.map(Given).map_err(|error| error.to_string())
}

/// A name, the pod's where none is given, and what tells this process from every
/// other: two that hold the Lease under one name would both lead.
fn identity(name: Option<&str>) -> String {
    let host = || std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
    let name = name.or_else(host).unwrap_or_else(|| "windlass".to_owned());
    format!("{name}_{}_{}", std::process::id(), jiff::Timestamp::now().as_millisecond())
}

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            engine: self.engine,
            argo_project: self.argo_project.text().unwrap_or_else(|| PROJECT.to_owned()),
            watch_namespace: self.watch_namespace.as_ref().and_then(Given::text),
            default_service_account: self.default_service_account.as_ref().and_then(|given| given.0.clone()),
            require_service_account: self.require_service_account,
            requirements_settle: self.requirements_settle,
            deletion_settle: self.deletion_settle,
            concurrency: self.concurrency,
            lease_namespace: self.lease_namespace.text(),
            lease_name: self.lease_name.text().unwrap_or_else(|| lease::NAME.to_owned()),
            identity: identity(self.identity.as_deref()),
            listen: self.listen,
        }
    }
}

pub fn run(arguments: &Arguments, _streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if arguments.log_json {
        logs.json().init()
    } else {
        logs.with_ansi(false).init()
    }
    let settings = arguments.settings();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let config = infer().await?;
        controller::run(config, settings).await.map_err(anyhow::Error::from)
    })?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn settings(flags: &[&str]) -> Result<Settings, clap::Error> {
        Program::try_parse_from([&["controller"], flags].concat()).map(|program| program.arguments.settings())
    }

    #[test]
    fn an_empty_name_gives_none() {
        let flags = ["argo-project", "watch-namespace", "default-service-account", "lease-namespace", "lease-name"];
        let flags = flags.map(|flag| format!("--{flag}="));
        let settings = settings(&flags.each_ref().map(String::as_str)).unwrap();
        assert_eq!((settings.default_service_account, settings.watch_namespace), (None, None));
        assert_eq!((settings.lease_namespace, settings.lease_name.as_str()), (None, lease::NAME));
        assert_eq!(settings.argo_project, "default");
    }

    #[test]
    fn a_malformed_name_is_refused_at_the_start() {
        for flag in ["default-service-account", "watch-namespace", "argo-project", "lease-namespace", "lease-name"] {
            assert!(settings(&[&format!("--{flag}=Team_A")]).is_err(), "{flag}");
        }
    }

    #[test]
    fn processes_of_one_name_hold_the_lease_under_different_ones() {
        for name in ["", "windlass"] {
            let settings = settings(&["--identity", name]).unwrap();
            let own = format!("_{}_", std::process::id());
            assert!(settings.identity.starts_with(if name.is_empty() { "" } else { "windlass_" }));
            assert!(settings.identity.contains(&own) && !settings.identity.starts_with('_'), "{}", settings.identity);
        }
    }
}
