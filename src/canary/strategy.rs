//! How many pods a DaemonSet may replace at once, as its spec says it.

use std::fmt;

use serde_json::{Value, json};

/// A number of pods, or a share of the nodes that should run one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// So many pods.
    Count(u32),
    /// So many percent, rounded up: native rounding for both maxUnavailable and
    /// maxSurge (measured).
    Percent(u32),
}

impl Budget {
    /// Reads an integer or a percentage; `None` for anything else.
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => u32::try_from(number.as_u64()?).ok().map(Self::Count),
            Value::String(text) => Self::parse(text),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Parses `3` or `10%`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(share) => share.parse().ok().map(Self::Percent),
            None => text.parse().ok().map(Self::Count),
        }
    }

    /// So many pods of `desired`.
    pub fn of(self, desired: i64) -> i64 {
        match self {
            Self::Count(count) => i64::from(count),
            Self::Percent(share) => (desired.max(0) * i64::from(share) + 99) / 100,
        }
    }

    /// The same and `more` pods: a share becomes a number.
    #[must_use]
    pub fn and(self, more: i64, desired: i64) -> Self {
        if more <= 0 {
            return self;
        }
        Self::Count(u32::try_from(self.of(desired) + more).unwrap_or(u32::MAX))
    }

    fn written(self) -> Value {
        match self {
            Self::Count(count) => count.into(),
            Self::Percent(_) => self.to_string().into(),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(formatter, "{count}"),
            Self::Percent(share) => write!(formatter, "{share}%"),
        }
    }
}

/// Which of the two numbers of a DaemonSet drives it. The API server wants
/// exactly one of them above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// maxUnavailable: the old pod goes first.
    Unavailable,
    /// maxSurge: the new pod comes first, and the old one goes when it is available.
    Surge,
}

/// Whether pods of an old template are replaced, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// None: `OnDelete`.
    Frozen,
    /// So many: `RollingUpdate`.
    Rolling(Budget),
}

impl Pace {
    /// Pods that may be replaced at once.
    pub fn of(self, desired: i64) -> i64 {
        match self {
            Self::Frozen => 0,
            // A budget that comes to nothing is taken for 1 by the controller.
            Self::Rolling(budget) => budget.of(desired).max(1),
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frozen => formatter.write_str("0"),
            Self::Rolling(budget) => budget.fmt(formatter),
        }
    }
}

/// `spec.updateStrategy`.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// How many at once.
    pub pace: Pace,
    /// By which number.
    pub drive: Drive,
    written: Value,
}

impl Strategy {
    /// Reads `spec.updateStrategy`; what is not there has the API's default.
    pub fn read(value: &Value) -> Self {
        let rolling = &value["rollingUpdate"];
        let surge = Budget::read(&rolling["maxSurge"]).filter(|surge| surge.of(100) > 0);
        let unavailable = Budget::read(&rolling["maxUnavailable"]).unwrap_or(Budget::Count(1));
        let (drive, budget) = match surge {
            Some(surge) => (Drive::Surge, surge),
            None => (Drive::Unavailable, unavailable),
        };
        let pace = if value["type"] == "OnDelete" { Pace::Frozen } else { Pace::Rolling(budget) };
        Self { pace, drive, written: value.clone() }
    }

    /// `spec.updateStrategy` as it stands in the object.
    pub fn as_written(&self) -> &Value {
        &self.written
    }
}

/// `spec.updateStrategy` for a pace. While frozen the numbers beside it keep
/// telling what drives the DaemonSet.
pub fn written(pace: Pace, drive: Drive) -> Value {
    let (type_, budget) = match pace {
        Pace::Frozen => ("OnDelete", Budget::Count(1)),
        Pace::Rolling(budget) => ("RollingUpdate", budget),
    };
    let (unavailable, surge) = match drive {
        Drive::Unavailable => (budget.written(), json!(0)),
        Drive::Surge => (json!(0), budget.written()),
    };
    json!({"type": type_, "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}})
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Measured on a real DaemonSet controller.
    #[rstest]
    #[case::ten_percent_of_ten("10%", 10, 1)]
    #[case::of_eleven("10%", 11, 2)]
    #[case::of_twenty("10%", 20, 2)]
    #[case::of_twenty_one("10%", 21, 3)]
    #[case::one_percent_of_five("1%", 5, 1)]
    #[case::a_number("3", 10, 3)]
    #[case::all("100%", 7, 7)]
    #[case::of_none("10%", 0, 0)]
    fn shares_are_rounded_up(#[case] budget: &str, #[case] desired: i64, #[case] pods: i64) {
        assert_eq!(Budget::parse(budget).unwrap().of(desired), pods);
    }

    #[rstest]
    #[case::nothing_stated(json!(null), Pace::Rolling(Budget::Count(1)), Drive::Unavailable)]
    #[case::type_alone(json!({"type": "RollingUpdate"}), Pace::Rolling(Budget::Count(1)), Drive::Unavailable)]
    #[case::number(json!({"rollingUpdate": {"maxUnavailable": 5, "maxSurge": 0}}), Pace::Rolling(Budget::Count(5)), Drive::Unavailable)]
    #[case::share(json!({"rollingUpdate": {"maxUnavailable": "50%"}}), Pace::Rolling(Budget::Percent(50)), Drive::Unavailable)]
    #[case::surge(json!({"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}), Pace::Rolling(Budget::Percent(10)), Drive::Surge)]
    #[case::on_delete(json!({"type": "OnDelete"}), Pace::Frozen, Drive::Unavailable)]
    #[case::on_delete_beside_a_surge(json!({"type": "OnDelete", "rollingUpdate": {"maxSurge": 1}}), Pace::Frozen, Drive::Surge)]
    fn strategies_are_read_with_the_defaults_of_the_api(
        #[case] value: Value,
        #[case] pace: Pace,
        #[case] drive: Drive,
    ) {
        let strategy = Strategy::read(&value);
        assert_eq!((strategy.pace, strategy.drive), (pace, drive));
    }

    #[rstest]
    #[case(Pace::Frozen, Drive::Unavailable)]
    #[case(Pace::Frozen, Drive::Surge)]
    #[case(Pace::Rolling(Budget::Percent(10)), Drive::Unavailable)]
    #[case(Pace::Rolling(Budget::Count(3)), Drive::Surge)]
    fn what_is_written_is_read_back(#[case] pace: Pace, #[case] drive: Drive) {
        let strategy = Strategy::read(&written(pace, drive));
        assert_eq!((strategy.pace, strategy.drive), (pace, drive));
    }
}
