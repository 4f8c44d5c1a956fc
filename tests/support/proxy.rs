//! A way to the API server on which things go wrong: answers that refuse, answers that are lost,
//! watches that end, nobody there. It talks to the API server as the administrator.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode, header};
use futures_util::StreamExt as _;
use kube::Client;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A running proxy; one address for each.
#[derive(Clone)]
pub struct Proxy {
    shared: Arc<Shared>,
    server: String,
}

struct Shared {
    client: Client,
    /// Every so many writes one goes wrong; 0: none.
    every: AtomicUsize,
    writes: AtomicUsize,
    refused: AtomicUsize,
    down: AtomicBool,
    /// So many watches are told that the state they begin from is gone.
    expired: AtomicUsize,
    /// Everything that is being answered ends when this changes.
    cut: watch::Sender<usize>,
}

/// What goes wrong with a write.
#[derive(Clone, Copy)]
enum Fault {
    /// It is not done.
    Refused(StatusCode, &'static str),
    /// It is done, and the answer does not say so.
    Lost,
}

const FAULTS: [Fault; 4] = [
    Fault::Refused(StatusCode::CONFLICT, "Conflict"),
    Fault::Refused(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
    Fault::Refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
    Fault::Lost,
];

impl Proxy {
    pub async fn start(client: Client) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let server = format!("http://{}", listener.local_addr().expect("its address"));
        let shared = Arc::new(Shared {
            client,
            every: AtomicUsize::default(),
            writes: AtomicUsize::default(),
            refused: AtomicUsize::default(),
            down: AtomicBool::default(),
            expired: AtomicUsize::default(),
            cut: watch::Sender::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { shared, server }
    }

    /// Writes a kubeconfig that leads through it.
    pub fn write_kubeconfig(&self, path: &Path) {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "clusters": [{"name": "proxy", "cluster": {"server": self.server}}],
            "users": [{"name": "proxy", "user": {}}],
        });
        std::fs::write(path, kubeconfig.to_string()).expect("a file of the bench");
    }

    /// From now on one of so many writes goes wrong, each time in another way.
    pub fn refuse_one_write_of(&self, every: usize) {
        self.shared.every.store(every, Ordering::Relaxed);
    }

    /// Ends whatever is being answered.
    pub fn cut(&self) {
        self.shared.cut.send_modify(|cuts| *cuts += 1);
    }

    /// The next watches are told that the state they begin from is gone, as after a compaction.
    pub fn expire(&self, watches: usize) {
        self.shared.expired.store(watches, Ordering::Relaxed);
        self.cut();
    }

    /// Nobody is there, or somebody again.
    pub fn set_down(&self, down: bool) {
        self.shared.down.store(down, Ordering::Relaxed);
        self.cut();
    }

    /// Writes that went wrong.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    if shared.down.load(Ordering::Relaxed) {
        return status(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
    }
    if shared.is_expired(&request) {
        return status(StatusCode::GONE, "Expired");
    }
    match shared.fault(request.method()) {
        Some(Fault::Refused(code, reason)) => status(code, reason),
        Some(Fault::Lost) => {
            shared.forward(request).await;
            status(StatusCode::GATEWAY_TIMEOUT, "Timeout")
        }
        None => shared.forward(request).await,
    }
}

impl Shared {
    fn is_expired(&self, request: &Request) -> bool {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let left = |left: usize| left.checked_sub(1);
        watch && self.expired.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }

    fn fault(&self, method: &Method) -> Option<Fault> {
        let every = self.every.load(Ordering::Relaxed);
        if every == 0 || method == Method::GET {
            return None;
        }
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if !number.is_multiple_of(every) {
            return None;
        }
        let refused = self.refused.fetch_add(1, Ordering::Relaxed);
        Some(FAULTS[refused % FAULTS.len()])
    }

    async fn forward(&self, request: Request) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let Ok(body) = axum::body::to_bytes(body, 16 << 20).await else {
            return status(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge");
        };
        for name in [header::AUTHORIZATION, header::HOST, header::CONTENT_LENGTH] {
            parts.headers.remove(name);
        }
        let mut cut = self.cut.subscribe();
        let request = Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
        match self.client.send(request).await {
            Ok(response) => {
                let (parts, body) = response.into_parts();
                // An answer that breaks off in the middle, as when a connection is lost.
                let broken = async move {
                    drop(cut.changed().await);
                    Err(axum::Error::new(std::io::Error::other("cut")))
                };
                let whole =
                    Body::new(body).into_data_stream().map(Some).chain(futures_util::stream::once(async { None }));
                let either = futures_util::stream::select(whole, futures_util::stream::once(broken).map(Some));
                let stream = either.scan((), |(), part| async { part });
                Response::from_parts(parts, Body::from_stream(stream))
            }
            Err(error) => {
                eprintln!("proxy: {error}");
                status(StatusCode::BAD_GATEWAY, "BadGateway")
            }
        }
    }
}

fn status(code: StatusCode, reason: &str) -> Response<Body> {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "injected by the bench", "reason": reason, "code": code.as_u16(),
    });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
