//! The bench's HTTP server: Git repositories and Helm charts for Flux.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::any;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const BODY_LIMIT: usize = 64 << 20;

/// Serves `/git/…` from a directory of repositories and `/charts/…` from one of files.
pub struct HttpServer {
    /// `http://127.0.0.1:<port>`
    pub url: String,
    pub repositories: PathBuf,
    pub charts: PathBuf,
}

#[derive(Clone)]
struct Served {
    git: PathBuf,
    repositories: PathBuf,
    charts: PathBuf,
}

impl HttpServer {
    pub async fn start(git: PathBuf, repositories: PathBuf, charts: PathBuf) -> Self {
        // Port 0: the kernel gives one, and nobody can take it in between.
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let served = Served { git, repositories: repositories.clone(), charts: charts.clone() };
        let router = Router::new()
            .route("/git/{*path}", any(git_backend))
            .route("/charts/{*path}", any(chart_file))
            .with_state(served);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url: format!("http://{address}"), repositories, charts }
    }
}

async fn chart_file(State(served): State<Served>, request: Request) -> Response<Body> {
    let path = request.uri().path();
    let name = path.strip_prefix("/charts/").unwrap_or(path);
    if name.split('/').any(|part| part == "..") {
        return plain(StatusCode::BAD_REQUEST, name);
    }
    match tokio::fs::read(served.charts.join(name)).await {
        Ok(content) => Response::new(Body::from(content)),
        Err(error) => plain(StatusCode::NOT_FOUND, &error.to_string()),
    }
}

/// Runs `git http-backend` as a CGI program.
async fn git_backend(State(served): State<Served>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_LIMIT).await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "body too large");
    };
    let path = parts.uri.path();
    let path = path.strip_prefix("/git").unwrap_or(path).to_owned();
    let mut command = tokio::process::Command::new(&served.git);
    command
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &served.repositories)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_PROJECT_ROOT", &served.repositories)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("QUERY_STRING", parts.uri.query().unwrap_or_default())
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("CONTENT_LENGTH", body.len().to_string())
        .envs(cgi_headers(&parts.headers))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    match run(command, body).await {
        Ok(output) => cgi_response(&output),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn cgi_headers(headers: &HeaderMap) -> Vec<(&'static str, String)> {
    let names = [
        (header::CONTENT_TYPE.as_str(), "CONTENT_TYPE"),
        (header::CONTENT_ENCODING.as_str(), "HTTP_CONTENT_ENCODING"),
        ("git-protocol", "HTTP_GIT_PROTOCOL"),
    ];
    let value = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    names.into_iter().filter_map(|(name, variable)| Some((variable, value(name)?))).collect()
}

async fn run(mut command: tokio::process::Command, body: Bytes) -> std::io::Result<Vec<u8>> {
    let mut child = command.spawn()?;
    let mut input = child.stdin.take().expect("a pipe");
    let (written, output) = tokio::join!(async move { input.write_all(&body).await }, child.wait_with_output());
    written?;
    Ok(output?.stdout)
}

fn cgi_response(output: &[u8]) -> Response<Body> {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(end) = end else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "no header from git");
    };
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.split_once(": ") {
            Some(("Status", status)) => {
                let code = status.split(' ').next().unwrap_or_default();
                response = response.status(code);
            }
            Some((name, value)) => response = response.header(name, value),
            None => (),
        }
    }
    let body = output[end + 4..].to_vec();
    response.body(Body::from(body)).unwrap_or_else(|error| plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()))
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = status;
    response
}

/// The body of a 200 answer on loopback.
pub async fn get(port: u16, path: &str) -> Result<String, String> {
    exchange(port, path, format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")).await
}

/// The body of a 200 answer to JSON on loopback.
pub async fn post(port: u16, path: &str, body: &str) -> Result<String, String> {
    let head = format!("POST {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json");
    exchange(port, path, format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await
}

async fn exchange(port: u16, path: &str, request: String) -> Result<String, String> {
    let exchange = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(Duration::from_secs(5), exchange)
        .await
        .map_err(|_| format!("no answer from 127.0.0.1:{port}{path}"))?
        .map_err(|error| format!("127.0.0.1:{port}{path}: {error}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => Err(format!("127.0.0.1:{port}{path}: {head}")),
    }
}

/// A file below a directory, made with its parents.
pub fn write_below(directory: &Path, name: &str, content: &str) {
    let path = directory.join(name);
    let parent = path.parent().expect("a parent");
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(&path, content))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
