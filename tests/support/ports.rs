//! Free ports on loopback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
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

/// Does that process listen on all these ports?
pub fn are_those_of(pid: u32, ports: &[u16]) -> Result<(), String> {
    let listening = listening(pid);
    let missing = ports.iter().find(|port| !listening.iter().any(|address| address.port() == **port));
    match missing {
        None => Ok(()),
        Some(port) => Err(format!("process {pid} listens on {listening:?}, not on {port}")),
    }
}

/// Where a process listens, as the kernel tells.
pub fn listening(pid: u32) -> Vec<SocketAddr> {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let links = std::fs::read_dir(directory.join("fd")).into_iter().flatten().flatten();
    let own: Vec<PathBuf> = links.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
    let mut found = Vec::new();
    for table in ["net/tcp", "net/tcp6"] {
        let text = std::fs::read_to_string(directory.join(table)).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, local, _, LISTEN, _, _, _, _, _, inode, ..] = fields[..] else { continue };
            if own.contains(&PathBuf::from(format!("socket:[{inode}]"))) {
                found.push(address(local).unwrap_or_else(|| panic!("address {local}")));
            }
        }
    }
    found
}

const LISTEN: &str = "0A";

/// `0100007F:1F90`: the address in words of the machine's byte order, the port as a number.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for word in ip.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some(SocketAddr::new(ip, port))
}
