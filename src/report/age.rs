//! Durations as `kubectl` shows them.

use jiff::Timestamp;

use crate::api::Time;

/// How long ago something was; `<unknown>` where nobody knows.
pub(super) fn since(time: Option<&Time>, now: Timestamp) -> String {
    match time.map(|time| now.duration_since(time.0).as_secs()) {
        Some(seconds) => short(seconds.max(0)),
        None => "<unknown>".to_owned(),
    }
}

/// Two units at most, and fewer the longer it is.
fn short(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: char, small: i64, rest: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{rest}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "0s")]
    #[case(119, "119s")]
    #[case(120, "2m")]
    #[case(125, "2m5s")]
    #[case(3_599, "59m")]
    #[case(10_860, "3h1m")]
    #[case(90_000, "25h")]
    #[case(180_000, "2d2h")]
    #[case(1_000_000, "11d")]
    fn durations_read_as_in_kubectl(#[case] seconds: i64, #[case] text: &str) {
        assert_eq!(short(seconds), text);
    }

    #[test]
    fn a_time_ahead_of_ours_is_now() {
        let now = Timestamp::from_second(1_000).unwrap();
        assert_eq!(since(Some(&Time(Timestamp::from_second(2_000).unwrap())), now), "0s");
    }
}
