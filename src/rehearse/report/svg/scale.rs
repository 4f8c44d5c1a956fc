//! From time to place: evenly, but for long stretches in which nothing happens.
//! These are drawn short, and marked.

/// Stretches that are left out, at the most.
const MOST_CUTS: usize = 4;
/// A stretch is left out if it is so many times as long as all that is left.
const LONGER: u64 = 8;
/// Shorter ones never are.
const LEAST: u64 = 60_000;
/// Width of what is left out.
const CUT_WIDTH: u64 = 72;
/// Distance of ticks, at the least, and what a clock takes.
const TICK_WIDTH: u64 = 64;
const CLOCK_WIDTH: u64 = 46;
/// Seconds between ticks.
const STEPS: [u64; 18] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400];

struct Piece {
    from: u64,
    to: u64,
    left: u64,
    right: u64,
    cut: bool,
}

/// A stretch that is left out.
pub(super) struct Cut {
    pub(super) left: u64,
    pub(super) right: u64,
    pub(super) millis: u64,
}

pub(super) struct Scale {
    pieces: Vec<Piece>,
    right: u64,
}

impl Scale {
    /// `times` are in order, and begin with 0.
    pub(super) fn new(times: &[u64], left: u64, right: u64) -> Self {
        let end = times.last().copied().unwrap_or_default().max(1000);
        let gaps = times.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?)));
        let cuts = cuts(gaps.collect());
        let left_out: u64 = cuts.iter().map(|(from, to)| to - from).sum();
        let evenly = (end - left_out).max(1);
        let width = (right - left).saturating_sub(CUT_WIDTH * u64::try_from(cuts.len()).unwrap_or_default());
        let (mut pieces, mut at, mut place, mut drawn, mut begins) = (Vec::new(), 0, left, 0, left);
        for (from, to) in cuts {
            drawn += from - at;
            let ends = begins + width * drawn / evenly;
            pieces.push(Piece { from: at, to: from, left: place, right: ends, cut: false });
            (at, place, begins) = (to, ends + CUT_WIDTH, begins + CUT_WIDTH);
            pieces.push(Piece { from, to, left: ends, right: place, cut: true });
        }
        pieces.push(Piece { from: at, to: end, left: place, right, cut: false });
        Self { pieces, right }
    }

    pub(super) fn x(&self, at: u64) -> u64 {
        let piece = self.pieces.iter().find(|piece| at <= piece.to && piece.to > piece.from);
        piece.map_or(self.right, |piece| {
            let span = (piece.to - piece.from).max(1);
            piece.left + (piece.right - piece.left) * at.saturating_sub(piece.from) / span
        })
    }

    pub(super) fn cuts(&self) -> impl Iterator<Item = Cut> {
        let cuts = self.pieces.iter().filter(|piece| piece.cut);
        cuts.map(|piece| Cut { left: piece.left, right: piece.right, millis: piece.to - piece.from })
    }

    /// Times that are written, with their places.
    pub(super) fn ticks(&self) -> Vec<(u64, u64)> {
        let even = self.pieces.iter().filter(|piece| !piece.cut);
        let (mut millis, mut width) = (0, 0);
        for piece in even.clone() {
            millis += piece.to - piece.from;
            width += piece.right - piece.left;
        }
        let fits = |step: &&u64| width * **step * 1000 >= TICK_WIDTH * millis;
        let step = STEPS.iter().find(fits).copied().unwrap_or(millis / 5000 + 1) * 1000;
        let mut ticks: Vec<(u64, u64)> = Vec::new();
        for piece in even {
            let first = piece.from.div_ceil(step) * step;
            let begins = Some(piece.from).filter(|from| *from > 0 && *from < first);
            let regular = (first..=piece.to).step_by(usize::try_from(step).unwrap_or(usize::MAX));
            for at in begins.into_iter().chain(regular) {
                let x = self.x(at).max(piece.left);
                if ticks.last().is_none_or(|(_, last)| last + CLOCK_WIDTH <= x) {
                    ticks.push((at, x));
                }
            }
        }
        ticks
    }
}

/// The fewest stretches beside which all others are short, in order.
fn cuts(mut gaps: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let length = |gap: &(u64, u64)| gap.1 - gap.0;
    gaps.sort_by_key(|gap| std::cmp::Reverse(length(gap)));
    let stands_out = |count: &usize| {
        let (long, short) = gaps.split_at(*count);
        let rest: u64 = short.iter().map(length).sum();
        let least = long.last().map_or(0, length);
        rest > 0 && least >= LEAST && least > LONGER * rest
    };
    let count = (1..=MOST_CUTS.min(gaps.len())).find(stands_out).unwrap_or(0);
    gaps.truncate(count);
    gaps.sort_unstable();
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_evenly() {
        let scale = Scale::new(&[0, 4000, 10_000], 100, 600);
        assert_eq!([0, 5000, 10_000].map(|at| scale.x(at)), [100, 350, 600]);
        assert_eq!(scale.cuts().count(), 0);
        assert_eq!(scale.ticks(), [(0, 100), (2000, 200), (4000, 300), (6000, 400), (8000, 500), (10_000, 600)]);
    }

    #[test]
    fn a_long_stretch_without_events_is_drawn_short() {
        let scale = Scale::new(&[0, 5000, 10_000, 1_810_000, 1_815_000], 100, 600);
        let cuts: Vec<_> = scale.cuts().map(|cut| (cut.left, cut.right, cut.millis)).collect();
        assert_eq!(cuts, [(385, 457, 1_800_000)]);
        assert_eq!(scale.x(1_815_000), 600);
        assert!(scale.ticks().contains(&(1_810_000, 457)), "{:?}", scale.ticks());
    }

    #[test]
    fn places_never_go_back() {
        for times in
            [vec![0], vec![0, 1], vec![0, 0, 7_200_000], vec![0, 1, 3_600_001, 3_600_002, 7_200_003, 90_000_000]]
        {
            let scale = Scale::new(&times, 100, 600);
            let places: Vec<u64> = times.iter().map(|at| scale.x(*at)).collect();
            assert!(places.is_sorted() && places.iter().all(|x| (100..=600).contains(x)), "{times:?}: {places:?}");
        }
    }
}
