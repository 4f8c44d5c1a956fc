//! Draws head, time and rows.

use super::foot;
use super::label::{Room, shortened, width};
use super::lanes::{Bar, Kind, Lane, Mark, Picture, Sign, Track, Verdict};
use super::layout::{INDENT, Layout, MARGIN, PACKAGE, Row, Shows, WIDTH, verdict};
use super::rollout;
use super::sheet::{Sheet, escaped};
use super::style::{PATTERNS, style};
use crate::rehearse::play::End;
use crate::rehearse::report::Report;
use crate::rehearse::report::text::{clock, commit, header, shared_names, short, summary};

/// Nothing is drawn narrower.
const LEAST: u64 = 3;
/// Packages that are named to those who cannot see the picture.
const DESCRIBED: usize = 20;

pub(super) struct Drawing<'d> {
    report: &'d Report,
    picture: &'d Picture,
    layout: &'d Layout,
    sheet: Sheet,
}

impl<'d> Drawing<'d> {
    pub(super) fn new(report: &'d Report, picture: &'d Picture, layout: &'d Layout) -> Self {
        Self { report, picture, layout, sheet: Sheet::new() }
    }

    pub(super) fn finish(mut self) -> String {
        self.head();
        self.time();
        for row in &self.layout.rows {
            self.row(row);
        }
        self.over_all_rows();
        let bottom = foot::draw(&mut self.sheet, self.report, self.picture, self.layout);
        let mut document = Sheet::new();
        document.raw(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"windlass\" width=\"{WIDTH}\" height=\"{bottom}\" \
             viewBox=\"0 0 {WIDTH} {bottom}\" role=\"img\" aria-labelledby=\"windlass-title windlass-desc\">"
        ));
        document.raw(&format!("<title id=\"windlass-title\">{}</title>", escaped(&title(self.report))));
        document.raw(&format!("<desc id=\"windlass-desc\">{}</desc>", escaped(&self.description())));
        document.raw(&style());
        document.raw(PATTERNS);
        document.raw(&format!(
            "<rect class=\"paper\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>",
            WIDTH - 1,
            bottom - 1
        ));
        document.append(self.sheet);
        document.raw("</svg>");
        document.into_text()
    }

    fn description(&self) -> String {
        let tracks = &self.picture.tracks;
        let mut told = vec![header(self.report).trim().to_owned(), summary(self.report).trim().to_owned()];
        told.extend(tracks.iter().take(DESCRIBED).map(|track| {
            let change = if track.change.is_empty() { String::new() } else { format!(" {}", track.change) };
            format!("{}{change}: {}.", track.name, verdict(track))
        }));
        if tracks.len() > DESCRIBED {
            told.push(format!("And {} more.", tracks.len() - DESCRIBED));
        }
        told.join(" ")
    }

    fn head(&mut self) {
        let room = WIDTH - 2 * MARGIN;
        let title = title(self.report);
        self.sheet.part("head", (MARGIN, 30), &shortened(&title, 19, room), &title);
        let class = if self.report.end == End::Ready { "fine" } else { "fault" };
        let summary = summary(self.report);
        self.sheet.part(class, (MARGIN, 50), &shortened(summary.trim(), 12, room), summary.trim());
        let header = format!("{} Times compare with each other, not with a real cluster.", header(self.report).trim());
        self.sheet.part("small", (MARGIN, 67), &shortened(&header, 11, room), &header);
    }

    /// Lines and clocks, and what of the time is left out.
    fn time(&mut self) {
        let (top, bottom) = (super::layout::TOP - 4, self.layout.bottom);
        for (at, x) in self.layout.scale.ticks() {
            self.sheet.text("clock", (x, top - 6), &clock(at));
            self.sheet.path("grid", &format!("M{x} {top}V{bottom}"), "");
        }
        for cut in self.layout.scale.cuts() {
            let told = format!("{} in which nothing happens, drawn short", short(cut.millis));
            self.sheet.rect("cut", [cut.left, top, cut.right - cut.left, bottom - top], &told);
        }
    }

    /// What is about all rows: restarts, and the edges of what is left out.
    fn over_all_rows(&mut self) {
        let (top, bottom) = (super::layout::TOP - 4, self.layout.bottom);
        for cut in self.layout.scale.cuts() {
            let steps = format!("M{} {top}V{bottom}M{} {top}V{bottom}", cut.left, cut.right);
            self.sheet.path("cutline", &steps, "");
            self.sheet.text("small gap", (cut.left.midpoint(cut.right), top - 20), &short(cut.millis));
        }
        for at in &self.picture.restarts {
            let x = self.layout.scale.x(*at);
            let told = format!("{} the controller is killed and started again", clock(*at));
            self.sheet.path("restart", &format!("M{x} {top}V{bottom}"), &told);
        }
    }

    fn row(&mut self, row: &Row) {
        let of = |at: usize| self.picture.tracks.get(at);
        match row.shows {
            Shows::Package(at) => {
                if let Some(track) = of(at) {
                    self.package(row, track);
                }
            }
            Shows::Folded(at) => {
                if let Some(track) = of(at) {
                    self.folded(row, track);
                }
            }
            Shows::Lane(at, lane) => {
                if let Some((track, lane)) = of(at).and_then(|track| Some((track, track.lanes.get(lane)?))) {
                    self.lane(row, at, track, lane);
                }
            }
            Shows::Rollout(at, lane, rollout) => {
                let lane = of(at).and_then(|track| track.lanes.get(lane));
                if let Some(rollout) = lane.and_then(|lane| lane.rollouts.get(rollout)) {
                    rollout::draw(&mut self.sheet, row, self.layout, rollout);
                }
            }
        }
    }

    fn package(&mut self, row: &Row, track: &Track) {
        self.sheet.open("row", &[("package", &track.id.to_string())]);
        self.sheet.path("edge", &format!("M{MARGIN} {}H{}", row.y, WIDTH - MARGIN), "");
        self.named(row, track);
        for bar in &track.own.bars {
            let (y, height) = match bar.kind {
                Kind::Run => (row.y + 12, 5),
                _ => (row.y + 7, 15),
            };
            self.bar(bar, y, height);
        }
        let mut room = Room::new(self.layout.left, self.layout.right);
        self.waits(&track.own, row.y + 18, &mut room);
        for mark in &track.own.marks {
            self.mark(mark, row.y + 14);
        }
        self.verdict(track, row.y + 19);
        self.sheet.close();
    }

    /// Name of a Package, with its versions where there is room.
    fn named(&mut self, row: &Row, track: &Track) {
        let room = self.layout.left - MARGIN - 10;
        let name = shortened(&track.name, PACKAGE, room);
        self.sheet.part("package", (MARGIN, row.y + 19), &name, &track.name);
        let begins = width(&name, PACKAGE) + 8;
        if begins + width(&track.change, 11) <= room {
            self.sheet.text("small", (MARGIN + begins, row.y + 19), &track.change);
        }
    }

    fn verdict(&mut self, track: &Track, y: u64) {
        let class = match track.verdict {
            Verdict::Ready => "fine",
            Verdict::Failed(_) => "fault",
            Verdict::Waits(_) | Verdict::Gone => "still",
        };
        let room = WIDTH - MARGIN - self.layout.right - 18;
        self.sheet.part(class, (self.layout.right + 18, y), &shortened(verdict(track), 12, room), verdict(track));
    }

    /// What is waited for, within the bars.
    fn waits(&mut self, lane: &Lane, y: u64, room: &mut Room) {
        for bar in lane.bars.iter().filter(|bar| bar.kind == Kind::Wait) {
            let (left, right) = self.places(bar);
            room.take(left, right);
            if right - left > 60 {
                let shown = shortened(&bar.says, 11, right - left - 8);
                self.sheet.text("label", (left + 4, y), &shown);
            }
        }
    }

    /// A Package with everything of it in one row.
    fn folded(&mut self, row: &Row, track: &Track) {
        self.sheet.open("row folded", &[("package", &track.id.to_string())]);
        self.sheet.path("edge", &format!("M{MARGIN} {}H{}", row.y, WIDTH - MARGIN), "");
        let name = shortened(&track.name, 12, self.layout.left - MARGIN - 10);
        self.sheet.part("name", (MARGIN, row.y + 14), &name, &track.name);
        let mut room = Room::new(self.layout.left, self.layout.right + 14);
        let own = track.own.bars.iter().filter(|bar| bar.kind != Kind::Run);
        own.for_each(|bar| self.bar(bar, row.y + 4, 12));
        self.waits(&track.own, row.y + 14, &mut room);
        let mut ends = None;
        for lane in &track.lanes {
            for bar in &lane.bars {
                let told = format!("{}: {}", lane.name, bar.told);
                self.bar(&Bar { told, says: String::new(), ..*bar }, row.y + 4, 12);
                let (left, right) = self.places(bar);
                room.take(left, right);
                ends = ends.max(Some((right, left)));
            }
        }
        let parts = track.lanes.iter().filter(|lane| !lane.is_idle()).count();
        let several = if parts > 1 { vec![format!("{}, {parts} steps", track.change)] } else { Vec::new() };
        let texts: Vec<String> = several.into_iter().chain([track.change.clone()]).collect();
        let begins = track.began.map(|at| (self.layout.scale.x(at), self.layout.scale.x(at)));
        let bar = ends.map(|(right, left)| (left, right)).or(begins);
        if let Some((x, text)) = bar.and_then(|bar| room.beside(bar, &texts, 11)) {
            self.sheet.text("label", (x, row.y + 14), text);
        }
        self.verdict(track, row.y + 14);
        self.sheet.close();
    }

    fn lane(&mut self, row: &Row, at: usize, track: &Track, lane: &Lane) {
        self.sheet.open("row", &[("component", &format!("{}/{}", track.id, lane.name))]);
        let name = shortened(&lane.name, 12, self.layout.left - MARGIN - INDENT - 10);
        self.sheet.part("name", (MARGIN + INDENT, row.y + 16), &name, &lane.name);
        if lane.is_idle() {
            self.sheet.text("small", (self.layout.left + 4, row.y + 16), &lane.rest);
        }
        self.links(row, at, track, lane);
        let mut room = Room::new(self.layout.left, WIDTH - MARGIN);
        for bar in &lane.bars {
            self.bar(bar, row.y + 5, 14);
            let (left, right) = self.places(bar);
            room.take(left, right);
        }
        for mark in &lane.marks {
            let x = self.mark(mark, row.y + 12);
            room.take(x.saturating_sub(6), x + 6);
        }
        for label in &lane.labels {
            let bar = (self.layout.scale.x(label.from), self.layout.scale.x(label.to) + 12);
            if let Some((x, text)) = room.beside(bar, &label.texts, 11) {
                self.sheet.text("label", (x, row.y + 16), text);
            }
        }
        self.sheet.close();
    }

    /// Lines down from what a start waited for.
    fn links(&mut self, row: &Row, at: usize, track: &Track, lane: &Lane) {
        let place = |name: &String| {
            let lane = track.lanes.iter().position(|lane| lane.name == *name && !lane.is_idle())?;
            self.layout.rows.iter().find(|row| row.shows == Shows::Lane(at, lane)).map(|row| row.y)
        };
        let mut links = Vec::new();
        for start in &lane.starts {
            let after = start.after.iter().filter_map(place).filter(|y| *y < row.y).min();
            let told = format!("{} begins after {}", lane.name, start.after.join(", "));
            links.extend(after.map(|y| (self.layout.scale.x(start.at), y, told)));
        }
        for (x, y, told) in links {
            self.sheet.path("link", &format!("M{x} {}V{}", y + 19, row.y + 5), &told);
        }
    }

    fn places(&self, bar: &Bar) -> (u64, u64) {
        let left = self.layout.scale.x(bar.from);
        (left, self.layout.scale.x(bar.to).max(left + LEAST))
    }

    fn bar(&mut self, bar: &Bar, y: u64, height: u64) {
        let (left, right) = self.places(bar);
        self.sheet.rect(bar.kind.class(), [left, y, right - left, height], &bar.told);
    }

    /// Draws a sign and says where; a success stands behind its bar.
    fn mark(&mut self, mark: &Mark, y: u64) -> u64 {
        let behind = if mark.sign == Sign::Good { 9 } else { 0 };
        let x = self.layout.scale.x(mark.at) + behind;
        sign(&mut self.sheet, mark.sign, (x, y), &mark.told);
        x
    }
}

/// Draws a sign on whatever there is.
pub(super) fn sign(sheet: &mut Sheet, sign: Sign, (x, y): (u64, u64), told: &str) {
    let steps = match sign {
        Sign::Good => format!("M{} {}l3 3l5 -7", x - 4, y + 1),
        Sign::Bad => format!("M{} {}l8 8m0 -8l-8 8", x - 4, y - 4),
        Sign::Attempt => format!("M{x} {}v5m0 3v0.1", y - 5),
        Sign::Other => format!("M{} {y}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0", x - 3),
    };
    sheet.path("mark halo", &steps, "");
    sheet.path(&format!("mark {}", sign.class()), &steps, told);
}

fn title(report: &Report) -> String {
    match commit(&report.moments, &shared_names(report)) {
        Some((_, _, line)) => format!("Rehearsal of {}", line.detail),
        None => "Rehearsal of a commit that changes nothing".to_owned(),
    }
}
