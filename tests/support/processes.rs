//! The programs of the bench, seen from the tests.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::sync::watch;

use super::ports;
use super::supervisor::{self, Event, Request, Spawn};

const READY_WITHIN: Duration = Duration::from_secs(90);
const STOPPED_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
const TRIES: usize = 5;
const PORT_TAKEN: &str = "address already in use";
const LAST_LINES: usize = 25;

/// A program to run.
#[derive(Debug, Clone)]
pub struct Program {
    /// Names the log.
    pub name: String,
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// Added to PATH, HOME and TMPDIR, which are all that it gets otherwise.
    pub environment: Vec<(String, String)>,
}

impl Program {
    pub fn new(name: &str, path: PathBuf) -> Self {
        Self { name: name.to_owned(), path, arguments: Vec::new(), environment: Vec::new() }
    }

    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn arguments<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    pub fn env_path(self, name: &str, value: &Path) -> Self {
        self.env(name, value.display().to_string())
    }
}

/// Starts programs through the supervisor and watches over them.
#[derive(Clone)]
pub struct Processes(Arc<Inner>);

struct Inner {
    requests: Mutex<Option<ChildStdin>>,
    supervisor: Mutex<Child>,
    root: PathBuf,
    next: AtomicU64,
    table: Mutex<HashMap<u64, Entry>>,
    death: watch::Sender<Option<String>>,
}

struct Entry {
    name: String,
    log: PathBuf,
    /// Its end fails every test.
    required: bool,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone)]
enum State {
    Starting,
    Running(u32),
    Exited(String),
}

impl Processes {
    /// Starts the supervisor: this same binary.
    pub fn start_supervisor() -> Self {
        let own = std::env::current_exe().expect("the path of this program");
        let mut supervisor = Command::new(own)
            .arg(supervisor::ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("to start the supervisor");
        let requests = supervisor.stdin.take();
        let mut events = BufReader::new(supervisor.stdout.take().expect("its output")).lines();
        let first = events.next().expect("an event").expect("a line");
        let Ok(Event::Root(root)) = serde_json::from_str(&first) else {
            panic!("the supervisor began with {first}");
        };
        for directory in ["logs", "home", "tmp"] {
            std::fs::create_dir(root.join(directory)).expect("a directory of the bench");
        }
        let processes = Self(Arc::new(Inner {
            requests: Mutex::new(requests),
            supervisor: Mutex::new(supervisor),
            root,
            next: AtomicU64::new(0),
            table: Mutex::default(),
            death: watch::Sender::new(None),
        }));
        let reader = processes.clone();
        std::thread::spawn(move || {
            for line in events.map_while(Result::ok) {
                reader.0.handle(&line);
            }
            reader.0.supervisor_ended();
        });
        processes
    }

    /// The bench's directory, removed with it.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// A new directory below the bench's; fails once the bench is ending, so that none is made
    /// behind the back of who removes them all.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.root.join(name);
        let requests = self.0.requests.lock().expect("the pipe");
        let created = requests.as_ref().map(|_| std::fs::create_dir_all(&path));
        drop(requests);
        created.expect("the bench is ending").expect("a directory of the bench");
        path
    }

    /// Name and process id of every program that runs.
    pub fn running(&self) -> Vec<(String, u32)> {
        let table = self.0.table.lock().expect("the table");
        let running = |entry: &Entry| match &*entry.state.borrow() {
            State::Running(pid) => Some((entry.name.clone(), *pid)),
            State::Starting | State::Exited(_) => None,
        };
        table.values().filter_map(running).collect()
    }

    /// The message of the first required program that ended; pending until then.
    pub async fn death(&self) -> String {
        let mut death = self.0.death.subscribe();
        let message = death.wait_for(Option::is_some).await.expect("the sender");
        message.clone().unwrap_or_default()
    }

    /// Starts a program whose end nobody minds.
    pub fn spawn(&self, program: Program) -> Process {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let log = self.0.root.join("logs").join(format!("{}.log", program.name));
        let log_start = std::fs::read(&log).map_or(0, |text| text.len());
        let entry = Entry {
            name: program.name.clone(),
            log: log.clone(),
            required: false,
            state: watch::Sender::new(State::Starting),
        };
        let state = entry.state.subscribe();
        self.0.table.lock().expect("the table").insert(id, entry);
        self.0.request(&Request::Spawn(Spawn {
            id,
            program: program.path,
            arguments: program.arguments,
            environment: self.environment(program.environment),
            directory: self.0.root.clone(),
            log: log.clone(),
        }));
        Process { id, name: program.name, log, log_start, state, inner: Arc::clone(&self.0) }
    }

    fn environment(&self, own: Vec<(String, String)>) -> BTreeMap<String, String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let below = |name: &str| self.0.root.join(name).display().to_string();
        let mut environment = BTreeMap::from([
            ("PATH".to_owned(), path),
            ("HOME".to_owned(), below("home")),
            ("TMPDIR".to_owned(), below("tmp")),
        ]);
        environment.extend(own);
        environment
    }

    /// Starts a program with that many free ports and waits until `ready`; from then on
    /// its end fails every test at once. When a port was taken in between, tries again
    /// with others.
    pub async fn start<const PORTS: usize>(
        &self,
        program: impl Fn([u16; PORTS]) -> Program,
        ready: impl AsyncFn([u16; PORTS]) -> Result<(), String>,
    ) -> ([u16; PORTS], Process) {
        let started = Instant::now();
        for _ in 0..TRIES {
            let ports = [0; PORTS].map(|_: u16| ports::free());
            let process = self.spawn(program(ports));
            let failure = process
                .until_ready(started, async || {
                    ready(ports).await?;
                    // Not of another program that took a port before ours could.
                    process.listens_on(&ports)
                })
                .await;
            match failure {
                None => {
                    process.require();
                    let seconds = started.elapsed().as_secs_f64();
                    eprintln!("bench: {seconds:6.1} s  {} is ready", process.name);
                    return (ports, process);
                }
                Some(_) if process.lower_case_log().contains(PORT_TAKEN) => (),
                Some(failure) => panic!("{failure}"),
            }
        }
        panic!("no free ports in {TRIES} tries");
    }

    /// Ends everything and removes the directory. Returns when that is done.
    pub fn shut_down(&self, keep_logs: Option<PathBuf>) {
        for entry in self.0.table.lock().expect("the table").values_mut() {
            entry.required = false;
        }
        if let Some(directory) = keep_logs {
            self.0.request(&Request::KeepLogs(directory));
        }
        // Closes the supervisor's standard input.
        drop(self.0.requests.lock().expect("the pipe").take());
        if let Err(error) = self.0.supervisor.lock().expect("the child").wait() {
            eprintln!("bench: {error}");
        }
    }
}

impl Inner {
    fn request(&self, request: &Request) {
        let mut line = serde_json::to_string(request).expect("a request");
        line.push('\n');
        if let Some(pipe) = self.requests.lock().expect("the pipe").as_mut() {
            // A supervisor that is gone is reported by the reader of its events.
            pipe.write_all(line.as_bytes()).ok();
        }
    }

    fn handle(&self, line: &str) {
        let table = self.table.lock().expect("the table");
        match serde_json::from_str(line).expect("an event") {
            Event::Root(_) => (),
            Event::Spawned { id, pid } => {
                if let Some(entry) = table.get(&id) {
                    entry.state.send_replace(State::Running(pid));
                }
            }
            Event::Exited { id, status } => {
                if let Some(entry) = table.get(&id) {
                    entry.state.send_replace(State::Exited(status.clone()));
                    if entry.required {
                        self.report_death(entry.ended(&status));
                    }
                }
            }
        }
    }

    fn supervisor_ended(&self) {
        let stopping = self.requests.lock().expect("the pipe").is_none();
        if !stopping {
            self.report_death("the supervisor of the bench ended".to_owned());
        }
    }

    fn report_death(&self, message: String) {
        self.death.send_if_modified(|death| {
            let first = death.is_none();
            if first {
                *death = Some(message);
            }
            first
        });
    }
}

impl Entry {
    fn ended(&self, status: &str) -> String {
        let Self { name, log, .. } = self;
        format!("{name} ended: {status}\n{}", last_lines(log))
    }
}

/// A started program; killed when dropped.
pub struct Process {
    id: u64,
    pub name: String,
    pub log: PathBuf,
    /// Where its own lines begin, in bytes: taken before it started.
    log_start: usize,
    state: watch::Receiver<State>,
    inner: Arc<Inner>,
}

impl Process {
    /// Its process id, once it runs.
    pub async fn pid(&self) -> u32 {
        let mut state = self.state.clone();
        let state = state.wait_for(|state| !matches!(state, State::Starting)).await.expect("the sender");
        match &*state {
            State::Running(pid) => *pid,
            State::Starting | State::Exited(_) => panic!("{} is not running", self.name),
        }
    }

    /// How it ended; pending while it runs.
    pub async fn exited(&self) -> String {
        let mut state = self.state.clone();
        let state = state.wait_for(|state| matches!(state, State::Exited(_))).await.expect("the sender");
        match &*state {
            State::Exited(status) => status.clone(),
            State::Starting | State::Running(_) => unreachable!("it has exited"),
        }
    }

    /// Its end fails every test from now on.
    pub fn require(&self) {
        let mut table = self.inner.table.lock().expect("the table");
        let entry = table.get_mut(&self.id).expect("its entry");
        entry.required = true;
        if let State::Exited(status) = &*self.state.borrow() {
            let message = entry.ended(status);
            self.inner.report_death(message);
        }
    }

    pub fn signal(&self, signal: Signal) {
        let signal = signal.as_raw();
        self.inner.request(&Request::Signal { id: self.id, signal });
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(self) -> String {
        self.release();
        self.signal(Signal::TERM);
        match tokio::time::timeout(STOPPED_WITHIN, self.exited()).await {
            Ok(status) => status,
            Err(_) => panic!("{} did not end within {STOPPED_WITHIN:?} of SIGTERM\n{}", self.name, self.last_lines()),
        }
    }

    /// Kills it without notice, and waits until it is gone.
    pub async fn kill(self) {
        self.release();
        self.signal(Signal::KILL);
        self.exited().await;
    }

    pub fn last_lines(&self) -> String {
        last_lines(&self.log)
    }

    fn release(&self) {
        let mut table = self.inner.table.lock().expect("the table");
        table.get_mut(&self.id).expect("its entry").required = false;
    }

    fn listens_on(&self, ports: &[u16]) -> Result<(), String> {
        match &*self.state.borrow() {
            State::Running(pid) => ports::are_those_of(*pid, ports),
            State::Starting | State::Exited(_) => Err(format!("{} is not running", self.name)),
        }
    }

    /// What it has written, without what programs of its name wrote before it.
    fn lower_case_log(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let own = text.get(self.log_start..).unwrap_or_default();
        String::from_utf8_lossy(own).to_lowercase()
    }

    /// None when it is ready, else what went wrong.
    async fn until_ready(&self, started: Instant, ready: impl AsyncFn() -> Result<(), String>) -> Option<String> {
        let wait = async {
            loop {
                match ready().await {
                    Ok(()) => return None,
                    Err(seen) if started.elapsed() > READY_WITHIN => return Some(seen),
                    Err(_) => tokio::time::sleep(POLL).await,
                }
            }
        };
        let failure = tokio::select! {
            status = self.exited() => status,
            failure = wait => failure?,
        };
        Some(format!("{} did not become ready: {failure}\n{}", self.name, self.last_lines()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.release();
        self.signal(Signal::KILL);
    }
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    format!("last lines of {}:\n{}", log.display(), lines[from..].join("\n"))
}
