//! The counts that were recorded, and what they say of new ones.

use std::collections::BTreeMap;
use std::{fs, io};

/// How far from the recorded count a count may be, in percent of it.
const TOLERANCE: u64 = 10;
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/counts/record.json");

/// Counts by name of case.
pub type Counts = BTreeMap<String, u64>;

/// What the record says of a new count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As recorded, by and large.
    Kept,
    /// Less than recorded by more than the tolerance: worth recording.
    Better,
    /// More than recorded by more than the tolerance.
    Worse,
    /// Nothing to compare with.
    NotRecorded,
}

impl Verdict {
    /// Whether the bench fails by it.
    pub fn fails(self) -> bool {
        match self {
            Self::Kept | Self::Better => false,
            Self::Worse | Self::NotRecorded => true,
        }
    }
}

/// Compares a count with its record.
pub fn judge(count: u64, recorded: Option<u64>) -> Verdict {
    let Some(recorded) = recorded else { return Verdict::NotRecorded };
    let allowed = recorded * TOLERANCE / 100;
    if count > recorded + allowed {
        Verdict::Worse
    } else if count + allowed < recorded {
        Verdict::Better
    } else {
        Verdict::Kept
    }
}

/// Records of no case: of one that was renamed or removed.
pub fn without_case<'a>(recorded: &'a Counts, names: &[&str]) -> Vec<&'a str> {
    recorded.keys().map(String::as_str).filter(|name| !names.contains(name)).collect()
}

/// What twice the components may take, in percent of what the components take:
/// a tenth more than twice as much.
const DOUBLE: u64 = 220;

/// Whether the work grows no faster than what it is about, which has doubled.
pub fn is_linear(single: u64, double: u64) -> bool {
    double * 100 <= single * DOUBLE
}

/// Reads the record.
pub fn read() -> io::Result<Counts> {
    let text = fs::read_to_string(PATH)?;
    serde_json::from_str(&text).map_err(|error| io::Error::other(format!("{PATH}: {error}")))
}

/// Writes the record anew.
pub fn write(counts: &Counts) -> io::Result<()> {
    fs::write(PATH, format!("{:#}\n", serde_json::json!(counts)))
}
