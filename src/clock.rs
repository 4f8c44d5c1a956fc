//! Clocks that stand while Windlass is stopped or something is suspended.

use std::time::Duration;

use jiff::Timestamp;

use crate::api::{ComponentRecord, HookRecord, RollbackRecord, RolloutRecord, Time};
use crate::package::duration::GoDuration;

/// While a clock runs its count is written at most this often.
pub(crate) const COUNT_EVERY: Duration = Duration::from_secs(60);

/// The current time, and for how long this process has been watching without
/// a gap. Time before that is never counted: nobody knows what it was spent on,
/// and it may have been another machine's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub time: Timestamp,
    pub watching_for: Duration,
}

impl Now {
    /// The current time as Kubernetes writes it.
    pub fn as_time(self) -> Time {
        Time(self.time)
    }

    /// For how long, at least, something has been so that is on record since
    /// `at`. Clocks of two machines are not compared: what this process cannot
    /// have written itself was so when it began to watch, and no longer counts
    /// for more than that.
    pub fn at_least_since(self, at: &Time) -> Duration {
        match Duration::try_from(self.time.duration_since(at.0)) {
            Ok(since) => since.min(self.watching_for),
            Err(_) => self.watching_for,
        }
    }
}

/// Where a clock is kept.
pub(crate) trait Clock {
    /// When it was started, seconds counted, and up to when.
    fn parts(&mut self) -> (&mut Option<Time>, &mut u64, &mut Option<Time>);

    /// When it was started, seconds counted, and up to when, to look at.
    fn view(&self) -> (Option<&Time>, u64, Option<&Time>);

    /// Starts it, unless it was started before.
    fn start(&mut self, now: Now) {
        let (began, _, counted_at) = self.parts();
        if began.is_none() {
            *began = Some(now.as_time());
            *counted_at = Some(now.as_time());
        }
    }

    /// Sets it back: never started.
    fn reset(&mut self) {
        let (began, seconds, counted_at) = self.parts();
        (*began, *seconds, *counted_at) = (None, 0, None);
    }

    /// Whether it was started.
    fn is_started(&self) -> bool {
        self.view().0.is_some()
    }

    /// Time that counts so far.
    fn elapsed(&self, now: Now) -> Duration {
        let (_, seconds, counted_at) = self.view();
        Duration::from_secs(seconds) + counted_at.map_or(Duration::ZERO, |at| now.at_least_since(at))
    }

    /// Lets it stand, keeping what was counted.
    fn pause(&mut self, now: Now) {
        let elapsed = self.elapsed(now);
        let (_, seconds, counted_at) = self.parts();
        if counted_at.take().is_some() {
            *seconds = elapsed.as_secs();
        }
    }

    /// Lets it run on after [`Clock::pause`]; keeps the count up to date.
    fn run(&mut self, now: Now) {
        let elapsed = self.elapsed(now);
        let (began, seconds, counted_at) = self.parts();
        let due = counted_at.as_ref().is_none_or(|at| at.0 > now.time || since(at, now) >= COUNT_EVERY);
        if began.is_some() && due {
            *seconds = elapsed.as_secs();
            *counted_at = Some(now.as_time());
        }
    }
}

fn since(at: &Time, now: Now) -> Duration {
    Duration::try_from(now.time.duration_since(at.0)).unwrap_or_default()
}

/// A duration as people write it, to the second.
pub(crate) fn short(duration: Duration) -> String {
    GoDuration::from_secs(duration.as_secs()).to_string()
}

macro_rules! clock {
    ($record:ty, $began:ident) => {
        impl Clock for $record {
            fn parts(&mut self) -> (&mut Option<Time>, &mut u64, &mut Option<Time>) {
                (&mut self.$began, &mut self.active_seconds, &mut self.counted_at)
            }

            fn view(&self) -> (Option<&Time>, u64, Option<&Time>) {
                (self.$began.as_ref(), self.active_seconds, self.counted_at.as_ref())
            }
        }
    };
}

clock!(ComponentRecord, turn_began);
clock!(HookRecord, started_at);
clock!(RollbackRecord, check_began);
clock!(RolloutRecord, since);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, watching: u64) -> Now {
        Now {
            time: Timestamp::from_second(1_700_000_000 + seconds).unwrap(),
            watching_for: Duration::from_secs(watching),
        }
    }

    #[test]
    fn time_counts_from_the_start() {
        let mut record = ComponentRecord::default();
        record.start(at(0, 100));
        assert_eq!(record.elapsed(at(30, 130)), Duration::from_secs(30));
    }

    /// What is written and read again is the same clock: a rollout waits for single seconds.
    #[test]
    fn a_rollout_counts_from_within_a_second() {
        let mut record = RolloutRecord::default();
        let moment = |millis: i64| Now {
            time: Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap(),
            watching_for: Duration::from_secs(100),
        };
        record.start(moment(900));
        let written = serde_json::to_value(&record).unwrap();
        assert_eq!(written["countedAt"], "2023-11-14T22:13:20.9Z");
        let read: RolloutRecord = serde_json::from_value(written).unwrap();
        assert_eq!(read.elapsed(moment(1000)), Duration::from_millis(100));
    }

    #[test]
    fn time_in_which_nobody_watched_does_not_count() {
        let mut record = ComponentRecord::default();
        record.start(at(0, 100));
        assert_eq!(record.elapsed(at(3600, 5)), Duration::from_secs(5));
    }

    #[test]
    fn a_paused_clock_stands_and_runs_on() {
        let mut record = ComponentRecord::default();
        record.start(at(0, 100));
        record.pause(at(10, 110));
        assert_eq!(record.elapsed(at(500, 600)), Duration::from_secs(10));
        record.run(at(500, 600));
        assert_eq!(record.elapsed(at(507, 607)), Duration::from_secs(17));
    }

    #[test]
    fn the_count_is_written_once_a_minute() {
        let mut record = ComponentRecord::default();
        record.start(at(0, 100));
        let started = record.clone();
        record.run(at(59, 159));
        assert_eq!(record, started);
        record.run(at(61, 161));
        assert_eq!(record.active_seconds, 61);
    }

    #[test]
    fn a_clock_of_another_machine_that_is_ahead_counts_nothing() {
        let mut record = ComponentRecord::default();
        record.start(at(100, 0));
        assert_eq!(record.elapsed(at(0, 0)), Duration::ZERO);
    }

    #[test]
    fn after_a_clock_that_was_ahead_only_the_time_of_this_process_counts() {
        let mut record = ComponentRecord::default();
        record.start(at(3600, 0));
        assert_eq!(record.elapsed(at(20, 20)), Duration::from_secs(20));
        record.run(at(20, 20));
        assert_eq!(record.elapsed(at(50, 50)), Duration::from_secs(50));
    }
}
