//! Which rows there are, and where.

use super::label::width;
use super::lanes::{Picture, Track, Verdict};
use super::scale::Scale;

pub(super) const WIDTH: u64 = 960;
pub(super) const MARGIN: u64 = 16;
/// Where the first row begins.
pub(super) const TOP: u64 = 110;
/// With more rows, Packages of which there is little to tell get one each.
const MOST_UNFOLDED: usize = 48;
/// More rows than that are not drawn.
const MOST_ROWS: usize = 300;
/// Bounds of the names' column and of what is said at the end of a row.
const NAMES: (u64, u64) = (110, 270);
const VERDICTS: (u64, u64) = (70, 150);
/// What a package's name is as wide as: it is bold.
pub(super) const PACKAGE: u64 = 15;
/// How far hooks and components are indented.
pub(super) const INDENT: u64 = 12;

/// What a row shows: indices of Package, lane and rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    Package(usize),
    Lane(usize, usize),
    Rollout(usize, usize, usize),
    /// A Package with all its hooks and components.
    Folded(usize),
}

impl Shows {
    fn height(self) -> u64 {
        match self {
            Self::Package(_) => 28,
            Self::Lane(..) => 24,
            Self::Rollout(..) => 44,
            Self::Folded(_) => 20,
        }
    }
}

pub(super) struct Row {
    pub(super) y: u64,
    pub(super) height: u64,
    pub(super) shows: Shows,
}

pub(super) struct Layout {
    pub(super) rows: Vec<Row>,
    pub(super) scale: Scale,
    /// Where names end, and where time does.
    pub(super) left: u64,
    pub(super) right: u64,
    /// Where rows end.
    pub(super) bottom: u64,
    /// Packages in one row each.
    pub(super) folded: usize,
    /// Packages to which nothing happens and which are left out.
    pub(super) idle: usize,
    /// Packages for which there is no room.
    pub(super) dropped: usize,
}

impl Layout {
    pub(super) fn of(picture: &Picture) -> Self {
        let rows = |track: &Track| 1 + track.lanes.iter().map(|lane| 1 + lane.rollouts.len()).sum::<usize>();
        let folds = picture.tracks.iter().map(rows).sum::<usize>() > MOST_UNFOLDED;
        let (mut shown, mut folded, mut idle, mut dropped) = (Vec::new(), 0, 0, 0);
        for (at, track) in picture.tracks.iter().enumerate() {
            if folds && track.is_idle() && track.verdict == Verdict::Ready {
                idle += 1;
            } else if shown.len() >= MOST_ROWS {
                dropped += 1;
            } else if folds && !track.is_eventful() {
                folded += 1;
                shown.push(Shows::Folded(at));
            } else {
                shown.extend(unfolded(at, track));
            }
        }
        let left = MARGIN + names(picture, &shown).clamp(NAMES.0, NAMES.1) + 10;
        let verdicts = picture.tracks.iter().map(|track| width(verdict(track), 12) + 22).max().unwrap_or(0);
        let right = WIDTH - MARGIN - verdicts.clamp(VERDICTS.0, VERDICTS.1);
        let mut y = TOP;
        let rows = shown.into_iter().map(|shows| {
            let row = Row { y, height: shows.height(), shows };
            y += row.height;
            row
        });
        let rows: Vec<Row> = rows.collect();
        let bottom = rows.last().map_or(TOP, |row| row.y + row.height);
        let scale = Scale::new(&picture.times, left, right);
        Self { rows, scale, left, right, bottom, folded, idle, dropped }
    }
}

fn unfolded(at: usize, track: &Track) -> impl Iterator<Item = Shows> {
    let lanes = track.lanes.iter().enumerate().flat_map(move |(lane, of)| {
        let rollouts = (0..of.rollouts.len()).map(move |rollout| Shows::Rollout(at, lane, rollout));
        [Shows::Lane(at, lane)].into_iter().chain(rollouts)
    });
    [Shows::Package(at)].into_iter().chain(lanes)
}

/// Width of the names' column that shows all of them.
fn names(picture: &Picture, shown: &[Shows]) -> u64 {
    let of = |shows: &Shows| match *shows {
        Shows::Package(at) => {
            picture.tracks.get(at).map(|track| width(&track.name, PACKAGE) + width(&track.change, 11) + 8)
        }
        Shows::Folded(at) => picture.tracks.get(at).map(|track| width(&track.name, 12)),
        Shows::Lane(at, lane) => {
            picture.tracks.get(at).and_then(|track| track.lanes.get(lane)).map(|lane| INDENT + width(&lane.name, 12))
        }
        Shows::Rollout(..) => None,
    };
    shown.iter().filter_map(of).max().unwrap_or(0)
}

/// What is said at the end of a Package's row.
pub(super) fn verdict(track: &Track) -> &str {
    match &track.verdict {
        Verdict::Ready => "Ready",
        Verdict::Gone => "gone",
        Verdict::Waits(reason) | Verdict::Failed(reason) => reason,
    }
}
