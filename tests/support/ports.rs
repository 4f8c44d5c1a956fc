//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

// Below the range that the kernel gives to outgoing connections.
const FIRST: u32 = 11_000;
const COUNT: u32 = 20_000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port that nobody listens on now. Another process may take it before its
/// program binds it; `Processes::start` then tries again with other ports.
pub fn free() -> u16 {
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        // Two benches at once start from different places.
        let port = FIRST + (std::process::id().wrapping_mul(97) + step) % COUNT;
        let port = u16::try_from(port).expect("a port");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port on 127.0.0.1");
}

/// Does somebody listen there?
pub async fn connect(port: u16) -> Result<(), String> {
    tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .map(drop)
        .map_err(|error| format!("127.0.0.1:{port}: {error}"))
}
