//! Health, readiness and metrics over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::kinds::Kind;
use super::metrics::Metrics;
use super::view::{Facts, View};

/// Serves until the process ends.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn serve(address: SocketAddr, view: Arc<View>, metrics: Arc<Metrics>) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "serving /healthz, /readyz and /metrics");
    let app = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(move || async move { ready(&view) }))
        .route("/metrics", get(move || async move { text(&metrics) }));
    axum::serve(listener, app).await
}

fn text(metrics: &Metrics) -> impl IntoResponse + use<> {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics.text())
}

/// Ready once everything that is installed has been read; names what is missing.
fn ready(view: &View) -> (StatusCode, String) {
    let missing = unread(view);
    if missing.is_empty() {
        (StatusCode::OK, "ok".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not read yet: {}", missing.join(", ")))
    }
}

/// Kinds that are installed and have not been read completely.
pub fn unread(view: &View) -> Vec<&'static str> {
    let Facts { engines, discovered, namespaces_read, .. } = view.facts();
    if !discovered {
        return vec!["CustomResourceDefinition"];
    }
    if !view.knows_guards() {
        return vec!["MutatingAdmissionPolicy"];
    }
    // Their labels say where the policies act.
    if !namespaces_read {
        return vec!["Namespace"];
    }
    let expected = Kind::ALL.into_iter().filter(|kind| kind.engine().is_none_or(|engine| engines.contains(&engine)));
    expected.filter(|kind| !view.store(*kind).is_synced()).map(Kind::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::settings::testing::settings;

    #[test]
    fn what_is_not_read_yet_is_named_one_after_the_other() {
        let view = View::new(settings());
        assert_eq!(unread(&view), ["CustomResourceDefinition"]);
        view.change_facts(|facts| facts.discovered = true);
        assert_eq!(unread(&view), ["MutatingAdmissionPolicy"]);
        view.change_guards(|guards| guards.know_of_none());
        assert_eq!(unread(&view), ["Namespace"]);
        view.change_facts(|facts| facts.namespaces_read = true);
        assert_eq!(unread(&view), ["Package", "PackageRevision"]);
    }
}
