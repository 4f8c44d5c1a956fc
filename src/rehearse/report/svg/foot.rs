//! Below the rows: why a Package is not Ready, what is left out, and what is what.

use std::collections::BTreeSet;

use super::draw::sign;
use super::label::{width, wrapped};
use super::lanes::{Kind, Lane, Picture, Sign, Track};
use super::layout::{Layout, MARGIN, Shows, WIDTH};
use super::sheet::Sheet;
use crate::rehearse::report::{PackageAtEnd, Report};

const LINE: u64 = 17;
/// Packages that are explained, and lines for each.
const EXPLAINED: usize = 6;
const LINES: usize = 4;
const ROOM: u64 = WIDTH - 2 * MARGIN;

/// Draws it, and says where the picture ends.
pub(super) fn draw(sheet: &mut Sheet, report: &Report, picture: &Picture, layout: &Layout) -> u64 {
    sheet.open("foot", &[]);
    let mut y = layout.bottom + 8;
    sheet.path("edge", &format!("M{MARGIN} {}H{}", layout.bottom, WIDTH - MARGIN), "");
    if layout.rows.is_empty() {
        y = said(sheet, y, "still", "Nothing happens.", 1);
    }
    y = explain(sheet, y, report);
    for note in notes(report, layout) {
        y = said(sheet, y, "small", &note, LINES);
    }
    y = legend(sheet, y + 6, &meanings(picture, layout));
    sheet.close();
    y + 14
}

fn said(sheet: &mut Sheet, y: u64, class: &str, text: &str, most: usize) -> u64 {
    let size = if class == "small" { 11 } else { 12 };
    wrapped(text, size, ROOM, most).iter().fold(y, |y, line| {
        sheet.text(class, (MARGIN, y + LINE - 4), line);
        y + LINE
    })
}

fn explain(sheet: &mut Sheet, y: u64, report: &Report) -> u64 {
    // What failed comes before what waits for it.
    let mut faults: Vec<&PackageAtEnd> = report.packages.iter().filter(|package| !package.is_ready()).collect();
    faults.sort_by_key(|package| !package.status.blocked_by.is_empty());
    let y = faults.iter().take(EXPLAINED).fold(y, |y, package| {
        let head = format!("{} {} is not Ready: {}", package.name, package.wanted, package.reason());
        let y = said(sheet, y, "fault", &head, 1);
        said(sheet, y, "small", package.message(), LINES) + 4
    });
    match faults.len().checked_sub(EXPLAINED) {
        Some(more) if more > 0 => said(sheet, y, "fault", &format!("and {more} more are not Ready"), 1) + 4,
        _ => y,
    }
}

/// What the picture does not show.
fn notes(report: &Report, layout: &Layout) -> Vec<String> {
    let mut notes = Vec::new();
    let packages = |count: usize| if count == 1 { "1 package".to_owned() } else { format!("{count} packages") };
    if layout.folded > 0 {
        notes.push(format!(
            "{} in which nothing failed: one row each, their hooks and components one after the other in it.",
            packages(layout.folded)
        ));
    }
    if layout.idle > 0 {
        notes.push(format!("Left out: {} to which nothing happens.", packages(layout.idle)));
    }
    if layout.dropped > 0 {
        notes.push(format!("Left out for want of room: {}; --format text shows them.", packages(layout.dropped)));
    }
    notes.extend(report.remarks.iter().map(|remark| format!("Note: {remark}")));
    notes
}

/// What is explained.
#[derive(Clone, Copy)]
enum Meaning {
    Bar(Kind),
    Sign(Sign),
    Link,
    Nodes,
    Restart,
    Cut,
}

impl Meaning {
    fn text(self) -> &'static str {
        match self {
            Self::Bar(kind) => kind.meaning(),
            Self::Sign(sign) => sign.meaning(),
            Self::Link => "begins after what is above",
            Self::Nodes => "nodes that run it; a line where the budget changes",
            Self::Restart => "the controller is killed and started again",
            Self::Cut => "time in which nothing happens, drawn short",
        }
    }

    fn draw(self, sheet: &mut Sheet, (x, y): (u64, u64)) {
        match self {
            Self::Bar(Kind::Run) => sheet.rect("run", [x, y + 5, 18, 5], ""),
            Self::Bar(kind) => sheet.rect(kind.class(), [x, y + 2, 18, 11], ""),
            Self::Sign(of) => sign(sheet, of, (x + 10, y + 8), ""),
            Self::Link => sheet.path("link", &format!("M{} {y}v15", x + 9), ""),
            Self::Nodes => {
                sheet.rect("nodes", [x, y + 1, 18, 13], "");
                sheet.rect("canary", [x, y + 11, 9, 3], "");
                sheet.rect("canary", [x + 9, y + 6, 9, 8], "");
                sheet.path("budget", &format!("M{} {y}v14", x + 9), "");
            }
            Self::Restart => sheet.path("restart", &format!("M{} {y}v15", x + 9), ""),
            Self::Cut => sheet.path("cutline", &format!("M{} {y}v15M{} {y}v15", x + 4, x + 14), ""),
        }
    }
}

/// What occurs in the rows.
fn meanings(picture: &Picture, layout: &Layout) -> Vec<Meaning> {
    let mut lanes: Vec<&Lane> = Vec::new();
    let (mut kinds, mut signs) = (BTreeSet::new(), BTreeSet::new());
    let (mut links, mut nodes) = (false, false);
    for row in &layout.rows {
        match row.shows {
            Shows::Package(at) => lanes.extend(picture.tracks.get(at).map(|track| &track.own)),
            Shows::Lane(at, lane) => {
                let lane = picture.tracks.get(at).and_then(|track| track.lanes.get(lane));
                links |= lane.is_some_and(|lane| picture.tracks.get(at).is_some_and(|track| waited(track, lane)));
                lanes.extend(lane);
            }
            Shows::Rollout(..) => nodes = true,
            Shows::Folded(at) => {
                let bars = picture.tracks.get(at).into_iter().flat_map(|track| track.all_lanes());
                let bars = bars.flat_map(|lane| &lane.bars).map(|bar| bar.kind);
                kinds.extend(bars.filter(|kind| *kind != Kind::Run));
            }
        }
    }
    kinds.extend(lanes.iter().flat_map(|lane| &lane.bars).map(|bar| bar.kind));
    signs.extend(lanes.iter().flat_map(|lane| &lane.marks).map(|mark| mark.sign));
    let bars = Kind::ALL.into_iter().filter(|kind| kinds.contains(kind)).map(Meaning::Bar);
    let signs = Sign::ALL.into_iter().filter(|sign| signs.contains(sign)).map(Meaning::Sign);
    let others = [
        (links, Meaning::Link),
        (nodes, Meaning::Nodes),
        (!picture.restarts.is_empty(), Meaning::Restart),
        (layout.scale.cuts().next().is_some(), Meaning::Cut),
    ];
    bars.chain(signs).chain(others.into_iter().filter(|(occurs, _)| *occurs).map(|(_, meaning)| meaning)).collect()
}

/// Whether something of a lane began after something that is drawn.
fn waited(track: &Track, lane: &Lane) -> bool {
    let drawn = |name: &String| track.lanes.iter().any(|other| other.name == *name && !other.is_idle());
    lane.starts.iter().any(|start| start.after.iter().any(drawn))
}

fn legend(sheet: &mut Sheet, mut y: u64, meanings: &[Meaning]) -> u64 {
    let mut x = MARGIN;
    sheet.open("legend", &[]);
    for meaning in meanings {
        let wide = 24 + width(meaning.text(), 11);
        if x + wide > WIDTH - MARGIN {
            (x, y) = (MARGIN, y + LINE + 3);
        }
        meaning.draw(sheet, (x, y));
        sheet.text("small", (x + 24, y + 12), meaning.text());
        x += wide + 18;
    }
    sheet.close();
    y + LINE
}
