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

#[derive(Debug, clap::Args)]
#[command(after_help = "Every flag can also be set in the environment, as shown.")]
pub struct Arguments {
    /// Engine of Packages that name none: flux or argo [default: the only one installed].
    #[arg(long, env = "WINDLASS_ENGINE", value_parser = engine)]
    engine: Option<Engine>,
    /// Argo CD project of the Applications.
    #[arg(long, env = "WINDLASS_ARGO_PROJECT", default_value = "default")]
    argo_project: String,
    /// Watch only this namespace.
    #[arg(long, env = "WINDLASS_WATCH_NAMESPACE")]
    watch_namespace: Option<String>,
    /// ServiceAccount of Packages that name none.
    #[arg(long, env = "WINDLASS_DEFAULT_SERVICE_ACCOUNT")]
    default_service_account: Option<String>,
    /// Refuse Packages without a ServiceAccount.
    #[arg(long, env = "WINDLASS_REQUIRE_SERVICE_ACCOUNT", value_parser = BoolishValueParser::new())]
    require_service_account: bool,
    /// How long Packages that require others must be unchanged before they start.
    #[arg(long, env = "WINDLASS_REQUIREMENTS_SETTLE", default_value = "2s", value_parser = duration)]
    requirements_settle: Duration,
    /// Packages that are looked at at the same time.
    #[arg(long, env = "WINDLASS_CONCURRENCY", default_value_t = 4)]
    concurrency: usize,
    /// Namespace of the Lease that elects the leader; empty: no election.
    #[arg(long, env = "WINDLASS_LEASE_NAMESPACE", default_value = "windlass-system")]
    lease_namespace: String,
    /// Name of that Lease. Controllers that watch different namespaces need different ones.
    #[arg(long, env = "WINDLASS_LEASE_NAME", default_value = lease::NAME)]
    lease_name: String,
    /// Name this process holds the Lease under. Default: the host's, with what tells processes apart.
    #[arg(long, env = "WINDLASS_IDENTITY", default_value_t = identity(), hide_default_value = true)]
    identity: String,
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

/// The name of the pod, and what tells this process from the one before.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "windlass".to_owned());
    format!("{host}_{}_{}", std::process::id(), jiff::Timestamp::now().as_millisecond())
}

pub fn run(arguments: &Arguments, _streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if arguments.log_json {
        logs.json().init()
    } else {
        logs.with_ansi(false).init()
    }
    let settings = Settings {
        engine: arguments.engine,
        argo_project: arguments.argo_project.clone(),
        watch_namespace: arguments.watch_namespace.clone(),
        default_service_account: arguments.default_service_account.clone(),
        require_service_account: arguments.require_service_account,
        requirements_settle: arguments.requirements_settle,
        concurrency: arguments.concurrency,
        lease_namespace: Some(arguments.lease_namespace.clone()).filter(|namespace| !namespace.is_empty()),
        lease_name: arguments.lease_name.clone(),
        identity: arguments.identity.clone(),
        listen: arguments.listen,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let config = infer().await?;
        controller::run(config, settings).await.map_err(anyhow::Error::from)
    })?;
    Ok(Exit::Ok)
}
