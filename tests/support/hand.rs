//! A bench by hand: `up` starts one that stays, `down` ends it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::bench::{Bench, Options};
use super::processes::{Processes, Program};
use super::tools::Tools;

const DOWN_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

#[derive(Serialize, Deserialize)]
struct State {
    pid: i32,
    kubeconfig: PathBuf,
}

fn state_file() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-by-hand.json")
}

fn log_file() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-by-hand.log")
}

/// `up [--nodes N] [--flux] [--helm-controller] [--argocd]`, `down`; `stay` is what `up` leaves running.
pub fn main(arguments: &[String]) -> ExitCode {
    let result = match arguments.first().map(String::as_str) {
        Some("up") => up(&arguments[1..]),
        Some("stay") => stay(&arguments[1..]),
        Some("down") => down(),
        Some("hold") => hold(),
        _ => Err("bench up [--nodes N] [--flux] [--helm-controller] [--argocd], or bench down".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn up(arguments: &[String]) -> Result<(), String> {
    if let Some(state) = running() {
        let kubeconfig = state.kubeconfig.display();
        return Err(format!("one is up already: KUBECONFIG={kubeconfig}"));
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let log = log_file();
    let errors = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let mut child = Command::new(own)
        .args(["bench", "stay"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(|error| error.to_string())?;
    let output = child.stdout.take().ok_or("no output")?;
    // What it says when it is ready ends with an empty line; when it failed there is none.
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let said: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    if said.is_empty() {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        return Err(format!("it did not start:\n{said}"));
    }
    said.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn stay(arguments: &[String]) -> Result<(), String> {
    let mut options = Options::default();
    let (mut flux, mut helm, mut argocd) = (false, false, false);
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--flux" => flux = true,
            "--helm-controller" => helm = true,
            "--argocd" => argocd = true,
            "--nodes" => {
                let count = words.next().and_then(|count| count.parse().ok());
                options.nodes = count.ok_or("--nodes needs a number")?;
            }
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    let bench = Bench::start(Tools::find()?, options);
    bench.block_on(async {
        let control_plane = bench.control_plane().await;
        bench.own_crds().await;
        if flux {
            bench.flux().await;
        }
        let _helm = match helm {
            true => Some(bench.helm_controller(&[]).await),
            false => None,
        };
        if argocd {
            bench.argocd().await;
        }
        let kubeconfig = &control_plane.kubeconfig;
        let state = State { pid: rustix::process::getpid().as_raw_nonzero().get(), kubeconfig: kubeconfig.clone() };
        let text = serde_json::to_string(&state).map_err(|error| error.to_string())?;
        std::fs::write(state_file(), text).map_err(|error| error.to_string())?;
        let git = bench.repository("packages").await;
        git.accept_pushes();
        println!("export KUBECONFIG={}", kubeconfig.display());
        println!("export GIT_URL={}", git.http_url(&bench.http().await.url));
        println!("export CHARTS_URL={}", bench.charts().await.url);
        println!();
        // Until SIGTERM, which ends this process, or the end of a program.
        let death = bench.processes.death().await;
        bench.stop(true);
        Err(death)
    })
}

/// For the test that kills us: holds programs, of which one has left its process group,
/// until somebody ends us. Says where they live and who they are.
fn hold() -> Result<(), String> {
    let processes = Processes::start_supervisor();
    let pids = processes.directory("pids");
    let script = "echo $$ > pids/one; setsid sh -c 'echo $$ > pids/two; exec sleep 600' & wait";
    let shell = Program::new("held", PathBuf::from("/bin/sh")).arguments(["-c", script]);
    let _held = processes.spawn(shell);
    println!("{}", pids.display());
    loop {
        std::thread::park();
    }
}

fn down() -> Result<(), String> {
    let Some(state) = running() else {
        println!("no bench is up");
        return Ok(());
    };
    let pid = Pid::from_raw(state.pid).ok_or("no process id")?;
    rustix::process::kill_process(pid, Signal::TERM).map_err(|error| error.to_string())?;
    let started = Instant::now();
    while running().is_some() {
        if started.elapsed() > DOWN_WITHIN {
            return Err(format!("process {} is still there", state.pid));
        }
        std::thread::sleep(POLL);
    }
    std::fs::remove_file(state_file()).map_err(|error| error.to_string())?;
    println!("the bench is down");
    Ok(())
}

/// The bench by hand of this tree, if its process lives.
fn running() -> Option<State> {
    let text = std::fs::read_to_string(state_file()).ok()?;
    let state: State = serde_json::from_str(&text).ok()?;
    // Not another program that got the same id later.
    let command = std::fs::read(format!("/proc/{}/cmdline", state.pid)).ok()?;
    let stays = String::from_utf8_lossy(&command).contains("\0bench\0stay");
    stays.then_some(state)
}
