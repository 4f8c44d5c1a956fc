//! Threads with a large stack that parse and evaluate.
//!
//! Every calling thread has one of its own, so that callers never wait for each
//! other, and keeps it, because a thread costs more than most expressions. One
//! that does not answer in time is abandoned: it is told so, which ends it at
//! its next step, and the next call starts another.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use super::{WALL_CLOCK, fuel};

const STACK_BYTES: usize = 32 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Panicked,
    TimedOut,
}

struct Worker {
    jobs: Sender<Job>,
    abandoned: Arc<AtomicBool>,
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Runs `work` on the calling thread's worker.
pub(super) fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let (answer, answers) = channel();
    let job: Job = Box::new(move || {
        // The receiver is gone when the call has timed out; nobody misses the answer.
        let _ = answer.send(catch_unwind(AssertUnwindSafe(work)));
    });
    WORKER.with_borrow_mut(|slot| {
        submit(slot, job)?;
        match answers.recv_timeout(WALL_CLOCK) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Err(Failure::Panicked),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(worker) = slot.take() {
                    worker.abandoned.store(true, Ordering::Relaxed);
                }
                Err(Failure::TimedOut)
            }
        }
    })
}

fn submit(slot: &mut Option<Worker>, job: Job) -> Result<(), Failure> {
    let job = match slot {
        Some(worker) => match worker.jobs.send(job) {
            Ok(()) => return Ok(()),
            Err(refused) => refused.0,
        },
        None => job,
    };
    let worker = start().ok_or(Failure::Panicked)?;
    worker.jobs.send(job).map_err(|_| Failure::Panicked)?;
    *slot = Some(worker);
    Ok(())
}

fn start() -> Option<Worker> {
    let (jobs, queue) = channel();
    let abandoned = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&abandoned);
    thread::Builder::new().name("cel".to_owned()).stack_size(STACK_BYTES).spawn(move || serve(&queue, flag)).ok()?;
    Some(Worker { jobs, abandoned })
}

fn serve(queue: &Receiver<Job>, abandoned: Arc<AtomicBool>) {
    fuel::heed(abandoned);
    while let Ok(job) = queue.recv() {
        job();
    }
}
