//! Durations as Go writes them.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

/// A duration written as in Go, such as `90s` or `1h30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GoDuration(Duration);

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is no duration: write a number and a unit (ms, s, m, h), such as `90s` or `1h30m`")]
pub struct DurationError {
    text: String,
}

impl GoDuration {
    /// A duration of whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Parses numbers with the units `ms`, `s`, `m` and `h`.
    ///
    /// # Errors
    /// When the text is anything else, or above a century.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let error = || DurationError { text: text.chars().take(40).collect() };
        if text.is_empty() {
            return Err(error());
        }
        let mut total = Duration::ZERO;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(error)?;
            let (number, tail) = rest.split_at(digits);
            let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(letters);
            total = part(number, unit).and_then(|part| total.checked_add(part)).ok_or_else(error)?;
            rest = tail;
        }
        const CENTURY: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
        if total > CENTURY { Err(error()) } else { Ok(Self(total)) }
    }

    /// The duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

fn part(number: &str, unit: &str) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let unit_nanos: u128 = match unit {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let nanos_of = |digits: &str, scale: u128| digits.parse::<u128>().ok()?.checked_mul(unit_nanos).map(|n| n / scale);
    let mut nanos = nanos_of(whole, 1)?;
    if !fraction.is_empty() {
        let digits = fraction.get(..fraction.len().min(15))?;
        nanos = nanos.checked_add(nanos_of(digits, 10u128.checked_pow(u32::try_from(digits.len()).ok()?)?)?)?;
    }
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

impl fmt::Display for GoDuration {
    /// The shortest form: `10m`, `1h30m`, `1.5s`, `0s`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if hours > 0 {
            write!(formatter, "{hours}h")?;
        }
        if minutes > 0 {
            write!(formatter, "{minutes}m")?;
        }
        let millis = self.0.subsec_millis();
        match (seconds, millis) {
            (0, 0) if hours > 0 || minutes > 0 => Ok(()),
            (_, 0) => write!(formatter, "{seconds}s"),
            (0, _) => write!(formatter, "{millis}ms"),
            _ => write!(formatter, "{}s", format!("{seconds}.{millis:03}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::seconds("90s", "1m30s")]
    #[case::minutes("10m", "10m")]
    #[case::mixed("1h30m", "1h30m")]
    #[case::hour("1h", "1h")]
    #[case::fraction("1.5s", "1.5s")]
    #[case::fraction_of_an_hour("1.5h", "1h30m")]
    #[case::millis("250ms", "250ms")]
    #[case::zero("0s", "0s")]
    fn durations_are_written_in_their_shortest_form(#[case] text: &str, #[case] written: &str) {
        assert_eq!(GoDuration::parse(text).unwrap().to_string(), written);
    }

    #[rstest]
    #[case::empty("")]
    #[case::bare("10")]
    #[case::unit_only("m")]
    #[case::days("1d")]
    #[case::negative("-1s")]
    #[case::spaces("1 s")]
    #[case::two_points("1.2.3s")]
    #[case::no_fraction("1.s")]
    #[case::huge("99999999999999999999h")]
    #[case::beyond_a_century("900000h")]
    fn other_texts_are_refused(#[case] text: &str) {
        assert!(GoDuration::parse(text).is_err());
    }
}
