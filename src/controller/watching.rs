//! For how long this process has been watching without a gap: time before that counts for
//! no clock. Clocks are read from the wall; where that is set, or the machine was asleep,
//! nobody knows how much time has passed, so that is a gap too.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Clocks of the wall are set by less than that without harm.
const STEP: SignedDuration = SignedDuration::from_secs(2);

/// Since when, and both clocks as they were last read.
#[derive(Debug)]
pub struct Watching {
    since: Instant,
    last: (Instant, Timestamp),
}

impl Watching {
    /// It begins.
    pub fn from(now: Instant, wall: Timestamp) -> Self {
        Self { since: now, last: (now, wall) }
    }

    /// For how long.
    pub fn lasts(&mut self, now: Instant, wall: Timestamp) -> Duration {
        let (then, told) = self.last;
        let passed = SignedDuration::try_from(now.saturating_duration_since(then)).unwrap_or(SignedDuration::MAX);
        if wall.duration_since(told).saturating_sub(passed).abs() > STEP {
            self.since = now;
        }
        self.last = (now, wall);
        now.saturating_duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::as_time_passes(600, 600)]
    #[case::set_forward(1200, 0)]
    #[case::set_back(-600, 0)]
    #[case::corrected_a_little(601, 600)]
    fn a_clock_that_is_set_is_a_gap(#[case] told: i64, #[case] counts: u64) {
        let (began, wall) = (Instant::now(), Timestamp::from_second(1_700_000_000).unwrap());
        let mut watching = Watching::from(began, wall);
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let lasts = watching.lasts(at(600), wall + SignedDuration::from_secs(told));
        assert_eq!(lasts, Duration::from_secs(counts));
        let later = watching.lasts(at(660), wall + SignedDuration::from_secs(told + 60));
        assert_eq!(later, Duration::from_secs(counts + 60), "it counts on from there");
    }
}
