//! The programs of the bench are watched over.

use std::path::PathBuf;

use crate::support::bench::Bench;
use crate::support::ports;
use crate::support::processes::Program;

fn shell(name: &str, script: &str) -> Program {
    Program::new(name, PathBuf::from("/bin/sh")).arguments(["-c", script])
}

pub async fn end_of_a_program_is_noticed_with_its_last_lines(bench: &Bench) {
    let process = bench
        .processes
        .spawn(shell("ends", "echo first; echo last words; exit 7"));
    let status = process.exited().await;
    assert!(status.contains('7'), "{status}");
    let lines = process.last_lines();
    assert!(lines.ends_with("first\nlast words"), "{lines}");
}

pub async fn taken_port_is_replaced(bench: &Bench) {
    let first = std::sync::atomic::AtomicBool::new(true);
    // The first time it says what a program says whose port somebody took.
    let program = |[port]: [u16; 1]| {
        if first.swap(false, std::sync::atomic::Ordering::Relaxed) {
            return shell("port", "echo bind: Address already in use; exit 1");
        }
        shell("port", &format!("echo serving {port}; exec sleep 600"))
    };
    let log = bench.processes.root().join("logs/port.log");
    let ready = async |[port]: [u16; 1]| {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        match text.contains(&format!("serving {port}")) {
            true => Ok(()),
            false => Err(text),
        }
    };
    let ([port], process) = bench.processes.start(program, ready).await;
    assert_ne!(port, ports::free());
    process.kill().await;
}
