//! The programs of the bench are watched over, and nothing of them outlives it.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::support::bench::Bench;
use crate::support::ports;
use crate::support::processes::{Processes, Program};
use crate::support::wait;

const SOON: Duration = Duration::from_secs(20);

fn shell(name: &str, script: &str) -> Program {
    Program::new(name, PathBuf::from("/bin/sh")).arguments(["-c", script])
}

pub async fn end_of_a_program_is_noticed_with_its_last_lines(bench: &Bench) {
    let process = bench.processes.spawn(shell("ends", "echo first; echo last words; exit 7"));
    let status = process.exited().await;
    assert!(status.contains('7'), "{status}");
    let lines = process.last_lines();
    assert!(lines.ends_with("first\nlast words"), "{lines}");
}

pub async fn taken_port_is_replaced(bench: &Bench) {
    // Somebody else is faster, the first time.
    let taken = OnceLock::new();
    let program = |[port]: [u16; 1]| {
        taken.get_or_init(|| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port"));
        Program::new("port", bench.tools.path("redis-server"))
            .arguments(["--bind", "127.0.0.1", "--save", "", "--port"])
            .argument(port.to_string())
    };
    let ready = async |[port]: [u16; 1]| ports::connect(port).await;
    let ([port], process) = bench.processes.start(program, ready).await;
    let taken = taken.get().expect("a listener").local_addr().expect("its address");
    assert_ne!(port, taken.port());
    process.kill().await;
}

pub async fn end_of_a_required_program_is_everybodys_failure(_: &Bench) {
    let processes = Processes::start_supervisor();
    let script = "echo last words; until [ -e go ]; do sleep 0.01; done; exit 3";
    let needed = processes.spawn(shell("needed", script));
    needed.require();
    std::fs::write(processes.root().join("go"), "").expect("a file");
    let message = tokio::time::timeout(SOON, processes.death()).await.expect("the news");
    assert!(message.starts_with("needed ended: exit status: 3"), "{message}");
    assert!(message.ends_with("last words"), "{message}");
    processes.shut_down(None);
}

pub async fn nothing_is_left_after_the_end(_: &Bench) {
    let processes = Processes::start_supervisor();
    let root = processes.root().to_owned();
    // It ignores what asks it to end, and its child has left the process group.
    let script = "trap '' TERM INT HUP; setsid sleep 600 & echo $! > child; while :; do sleep 600; done";
    let stubborn = processes.spawn(shell("stubborn", script));
    let child = read_pid(&root.join("child")).await;
    let own = stubborn.pid().await;
    assert!(lives(own) && lives(child));
    let kept = root.with_extension("kept");
    processes.shut_down(Some(kept.clone()));
    assert!(!lives(own) && !lives(child), "{own} or {child} lives");
    assert!(!root.exists(), "{} is there", root.display());
    assert!(kept.join("stubborn.log").exists(), "the log was to be kept");
    std::fs::remove_dir_all(kept).expect("the kept logs");
}

/// Other tests go on for a moment when a signal ends the bench.
pub async fn what_comes_after_the_end_leaves_nothing(_: &Bench) {
    let processes = Processes::start_supervisor();
    processes.shut_down(None);
    let late = std::panic::catch_unwind(|| processes.directory("late"));
    assert!(late.is_err() && !processes.root().exists(), "{late:?}");
}

pub async fn nothing_is_left_when_the_bench_is_killed(_: &Bench) {
    // Who notices first that a program has ended is a matter of luck.
    for _ in 0..10 {
        kill_a_bench().await;
    }
}

async fn kill_a_bench() {
    let mut bench = Command::new(std::env::current_exe().expect("this program"))
        .args(["bench", "hold"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a bench");
    let output = BufReader::new(bench.stdout.take().expect("its output"));
    let pids = PathBuf::from(output.lines().next().expect("a line").expect("a line"));
    let one = read_pid(&pids.join("one")).await;
    let two = read_pid(&pids.join("two")).await;
    bench.kill().expect("to kill it");
    bench.wait().expect("its end");
    wait::until_true(SOON, "everything to be gone", async || match (lives(one), lives(two), pids.exists()) {
        (false, false, false) => Ok(()),
        seen => Err(format!("lives, lives, exists: {seen:?}")),
    })
    .await;
}

pub async fn everything_listens_on_loopback_only(bench: &Bench) {
    bench.flux().await;
    bench.argocd().await;
    let mut seen = 0;
    for (name, pid) in bench.processes.running() {
        for address in ports::listening(pid) {
            assert_eq!(address.ip(), Ipv4Addr::LOCALHOST, "{name} listens on {address}");
            seen += 1;
        }
    }
    assert!(seen >= 10, "only {seen} sockets seen");
}

async fn read_pid(path: &Path) -> u32 {
    wait::until_true(SOON, "a process id", async || {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        text.trim().parse().map_err(|_| format!("{text:?}"))
    })
    .await
}

fn lives(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}
