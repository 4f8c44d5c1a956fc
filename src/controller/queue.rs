//! Which Package is looked at next: each once at a time, none forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::store::PackageKey;

/// First pause after a failure; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The same where the cluster had changed since it was looked at: the change is
/// here already, or on its way.
const FIRST_PAUSE_STALE: Duration = Duration::from_millis(20);
/// Longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// A queue of Packages. Asking for one that waits already changes nothing;
/// asking for one that is being looked at makes it come again.
#[derive(Debug, Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    due: BTreeMap<PackageKey, Instant>,
    busy: BTreeSet<PackageKey>,
    failures: BTreeMap<PackageKey, u32>,
    rests: BTreeMap<PackageKey, Instant>,
}

impl Queue {
    /// Asks for a look now.
    pub fn wake(&self, key: PackageKey) {
        self.wake_after(key, Duration::ZERO);
    }

    /// Asks for a look after a while, or earlier.
    pub fn wake_after(&self, key: PackageKey, after: Duration) {
        let at = Instant::now() + after;
        let mut inner = self.lock();
        let at = inner.rests.get(&key).map_or(at, |rest| at.max(*rest));
        let due = inner.due.entry(key).or_insert(at);
        *due = at.min(*due);
        drop(inner);
        self.changed.notify_one();
    }

    /// Waits for the next Package that is due and not being looked at.
    pub async fn next(&self) -> PackageKey {
        loop {
            let changed = self.changed.notified();
            let wait = {
                let mut inner = self.lock();
                match inner.take() {
                    Ok(key) => {
                        drop(inner);
                        // Another worker may have something to do as well.
                        self.changed.notify_one();
                        return key;
                    }
                    Err(wait) => wait,
                }
            };
            match wait {
                Some(at) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => changed.await,
            }
        }
    }

    /// A look has ended well.
    pub fn done(&self, key: &PackageKey) {
        let mut inner = self.lock();
        inner.busy.remove(key);
        inner.failures.remove(key);
        drop(inner);
        self.changed.notify_one();
    }

    /// A look has failed: it is tried again after a pause that grows.
    pub fn failed(&self, key: &PackageKey, jitter: f64) {
        self.again(key, FIRST_PAUSE, jitter);
    }

    /// A look was older than the cluster: it is taken again almost at once.
    pub fn stale(&self, key: &PackageKey, jitter: f64) {
        self.again(key, FIRST_PAUSE_STALE, jitter);
    }

    fn again(&self, key: &PackageKey, first: Duration, jitter: f64) {
        let mut inner = self.lock();
        inner.busy.remove(key);
        let failures = inner.failures.entry(key.clone()).or_insert(0);
        let pause = first.saturating_mul(1 << (*failures).min(16)).min(LONGEST_PAUSE);
        *failures = failures.saturating_add(1);
        let at = Instant::now() + pause.mul_f64(0.8 + 0.4 * jitter);
        // Events that came meanwhile do not shorten the pause: the cause may be them.
        inner.due.insert(key.clone(), at);
        drop(inner);
        self.changed.notify_one();
    }

    /// Something was done for a Package: if the rest of the look fails, it is tried
    /// again soon.
    pub fn progressed(&self, key: &PackageKey) {
        self.lock().failures.remove(key);
    }

    /// Looks at a Package that have failed one after the other, nothing being done.
    pub fn failures(&self, key: &PackageKey) -> u32 {
        self.lock().failures.get(key).copied().unwrap_or(0)
    }

    /// Lets a Package rest, whatever happens to it: one that takes long to decide
    /// about gets no more than its share of a worker.
    pub fn rest(&self, key: &PackageKey, pause: Duration) {
        let until = Instant::now() + pause;
        let mut inner = self.lock();
        inner.rests.insert(key.clone(), until);
        if let Some(due) = inner.due.get_mut(key) {
            *due = until.max(*due);
        }
    }

    /// The Package is gone.
    pub fn forget(&self, key: &PackageKey) {
        let mut inner = self.lock();
        inner.failures.remove(key);
        inner.rests.remove(key);
        inner.due.remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The Package that is due longest, or when the next one will be.
    fn take(&mut self) -> Result<PackageKey, Option<Instant>> {
        let free = self.due.iter().filter(|(key, _)| !self.busy.contains(*key));
        let next = free.min_by_key(|(_, at)| **at).map(|(key, at)| (key.clone(), *at));
        match next {
            Some((key, at)) if at <= Instant::now() => {
                self.due.remove(&key);
                self.rests.remove(&key);
                self.busy.insert(key.clone());
                Ok(key)
            }
            Some((_, at)) => Err(Some(at)),
            None => Err(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_pause_after_a_failure_grows_only_while_nothing_is_done() {
        let queue = Queue::default();
        let key: PackageKey = ("apps".into(), "db".into());
        queue.wake(key.clone());
        let mut pauses = Vec::new();
        for progress in [false, false, false, true, false] {
            let start = Instant::now();
            queue.next().await;
            pauses.push(start.elapsed());
            if progress {
                queue.progressed(&key);
            }
            queue.failed(&key, 0.5);
        }
        let pauses: Vec<u128> = pauses.iter().map(Duration::as_millis).collect();
        assert_eq!(pauses, [0, 250, 500, 1000, 250]);
        assert_eq!(queue.failures(&key), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_package_that_rests_is_not_woken_earlier() {
        let queue = Queue::default();
        let key: PackageKey = ("apps".into(), "slow".into());
        let start = Instant::now();
        queue.wake(key.clone());
        queue.next().await;
        queue.wake(key.clone());
        queue.rest(&key, Duration::from_secs(8));
        queue.done(&key);
        queue.wake(key.clone());
        assert_eq!((queue.next().await, start.elapsed()), (key.clone(), Duration::from_secs(8)));
        queue.done(&key);
        queue.wake(key.clone());
        assert_eq!((queue.next().await, start.elapsed()), (key, Duration::from_secs(8)));
    }

    fn key(name: &str) -> PackageKey {
        ("ns".into(), name.into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_package_that_waits_comes_once() {
        let queue = Queue::default();
        queue.wake(key("a"));
        queue.wake(key("a"));
        assert_eq!(queue.next().await, key("a"));
        queue.done(&key("a"));
        queue.wake_after(key("b"), Duration::from_secs(5));
        assert_eq!(queue.next().await, key("b"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_package_that_is_looked_at_comes_again_afterwards() {
        let queue = Queue::default();
        queue.wake(key("a"));
        assert_eq!(queue.next().await, key("a"));
        queue.wake(key("a"));
        queue.wake_after(key("b"), Duration::from_millis(1));
        assert_eq!(queue.next().await, key("b"));
        queue.done(&key("a"));
        assert_eq!(queue.next().await, key("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stale_look_is_taken_again_soon_and_less_and_less_often() {
        let queue = Queue::default();
        queue.wake(key("a"));
        let mut pauses = Vec::new();
        for _ in 0..4 {
            let before = Instant::now();
            queue.next().await;
            pauses.push(before.elapsed());
            queue.stale(&key("a"), 0.5);
        }
        assert!(pauses[1] <= Duration::from_millis(25), "{pauses:?}");
        assert!(pauses.windows(2).all(|pair| pair[0] < pair[1]), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_after_failures_grow_and_end_with_success() {
        let queue = Queue::default();
        let mut pauses = Vec::new();
        queue.wake(key("a"));
        for _ in 0..4 {
            let before = Instant::now();
            queue.next().await;
            pauses.push(before.elapsed());
            queue.failed(&key("a"), 0.5);
        }
        assert!(pauses.windows(2).all(|pair| pair[0] < pair[1]), "{pauses:?}");
        queue.next().await;
        queue.done(&key("a"));
        queue.wake(key("a"));
        let before = Instant::now();
        queue.next().await;
        assert_eq!(before.elapsed(), Duration::ZERO);
    }
}
