//! The process between the bench and its programs.
//!
//! It starts programs on request and ends them all, and removes the bench's
//! directory, when its standard input closes: that happens however the bench
//! ends, SIGKILL included. It runs in a process group of its own, so that
//! Ctrl-C in a terminal reaches the bench first.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

/// First argument that turns the test binary into a supervisor.
pub const ARGUMENT: &str = "--bench-supervisor";

/// What the bench asks for, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Request {
    Spawn(Spawn),
    Signal {
        id: u64,
        signal: i32,
    },
    /// Where the logs go instead of being removed.
    KeepLogs(PathBuf),
}

/// A program to start, in a process group of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spawn {
    pub id: u64,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub log: PathBuf,
}

/// What the supervisor tells, one JSON object a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// The bench's directory; said once, first.
    Root(PathBuf),
    Spawned {
        id: u64,
        pid: u32,
    },
    Exited {
        id: u64,
        status: String,
    },
}

type Running = Arc<Mutex<HashMap<u64, Pid>>>;

/// Runs until standard input closes.
pub fn run() {
    let root = tempfile::Builder::new().prefix("windlass-bench-").tempdir().expect("a temporary directory");
    // What a killed program leaves behind becomes our child, and is ended too.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("to adopt orphaned processes");
    say(&Event::Root(root.path().to_owned()));
    let running = Running::default();
    let mut keep = None;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line).expect("a request") {
            Request::Spawn(spawn) => start(spawn, &running),
            Request::Signal { id, signal } => {
                let pid = running.lock().expect("the lock").get(&id).copied();
                if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
                    // Ended meanwhile: what was wanted.
                    rustix::process::kill_process_group(pid, signal).ok();
                }
            }
            Request::KeepLogs(directory) => keep = Some(directory),
        }
    }
    end_all(&running);
    if let Some(directory) = keep {
        keep_logs(&root.path().join("logs"), &directory);
    }
    if let Err(error) = root.close() {
        eprintln!("bench: {error}");
    }
}

fn say(event: &Event) {
    let mut line = serde_json::to_string(event).expect("an event");
    line.push('\n');
    // The bench is gone: standard input tells us so, and we end.
    std::io::stdout().lock().write_all(line.as_bytes()).ok();
}

fn start(spawn: Spawn, running: &Running) {
    let id = spawn.id;
    match command(&spawn).and_then(|mut command| command.spawn()) {
        Ok(mut child) => {
            let pid = Pid::from_child(&child);
            running.lock().expect("the lock").insert(id, pid);
            say(&Event::Spawned { id, pid: child.id() });
            let running = Arc::clone(running);
            std::thread::spawn(move || {
                let status = match child.wait() {
                    Ok(status) => status.to_string(),
                    Err(error) => error.to_string(),
                };
                running.lock().expect("the lock").remove(&id);
                say(&Event::Exited { id, status });
            });
        }
        Err(error) => {
            let status = format!("cannot start {}: {error}", spawn.program.display());
            say(&Event::Exited { id, status });
        }
    }
}

fn command(spawn: &Spawn) -> std::io::Result<Command> {
    let log = File::options().create(true).append(true).open(&spawn.log)?;
    // setpriv lets the kernel end the program should this process be killed.
    let setpriv = Path::new("/usr/bin/setpriv");
    let mut command = if setpriv.exists() {
        let mut command = Command::new(setpriv);
        command.args(["--pdeathsig", "KILL", "--"]).arg(&spawn.program);
        command
    } else {
        Command::new(&spawn.program)
    };
    command
        .args(&spawn.arguments)
        .env_clear()
        .envs(&spawn.environment)
        .current_dir(&spawn.directory)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    Ok(command)
}

/// Nothing in the bench's directory outlives it, so nobody gets time to tidy up.
fn end_all(running: &Running) {
    for pid in running.lock().expect("the lock").values() {
        rustix::process::kill_process_group(*pid, Signal::KILL).ok();
    }
    let own = rustix::process::getpid();
    // Looks again and again instead of waiting for an end: the threads that wait for the
    // programs may see it first, and the orphans that it leaves come to us only then.
    loop {
        for pid in children_of(own) {
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
        // An error says that there is no child left.
        if rustix::process::wait(WaitOptions::NOHANG).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn children_of(parent: Pid) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| parent_of(*pid) == Some(parent.as_raw_nonzero().get()))
        .filter_map(Pid::from_raw)
        .collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain anything, the last parenthesis ends it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

fn keep_logs(logs: &Path, directory: &Path) {
    let result = std::fs::create_dir_all(directory).and_then(|()| {
        for entry in std::fs::read_dir(logs)? {
            let entry = entry?;
            std::fs::copy(entry.path(), directory.join(entry.file_name()))?;
        }
        Ok(())
    });
    if let Err(error) = result {
        eprintln!("bench: cannot keep the logs: {error}");
    }
}
