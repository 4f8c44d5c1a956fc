//! Sync waves as a dependency graph.

use std::collections::BTreeMap;

/// Most entries of a component's `dependsOn`.
const MAX_EDGES: usize = 16;

/// What each component depends on, and which ones do so only because a wave is
/// larger than `dependsOn` takes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Edges {
    /// Positions of the components that each one depends on, ascending.
    pub depends_on: Vec<Vec<usize>>,
    /// Positions of components that depend on others of their own wave.
    pub in_a_row: Vec<usize>,
}

/// Edges from every component to all of the next lower wave that there is: what
/// is below that follows from it.
///
/// Where that wave is too large for one `dependsOn`, its components beyond are put
/// in a row: each depends on the sixteen before it, and stands for them.
pub(super) fn edges(waves: &[i64]) -> Edges {
    let mut by_wave: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (position, wave) in waves.iter().enumerate() {
        by_wave.entry(*wave).or_default().push(position);
    }
    let mut edges = Edges { depends_on: vec![Vec::new(); waves.len()], in_a_row: Vec::new() };
    let mut lower: Vec<usize> = Vec::new();
    let last = by_wave.keys().next_back().copied();
    for (wave, members) in by_wave {
        for &member in &members {
            edges.depend(member, lower.clone());
        }
        // Nothing depends on the last wave.
        lower = if Some(wave) == last { members } else { edges.heads(members) };
    }
    edges
}

impl Edges {
    fn depend(&mut self, position: usize, on: Vec<usize>) {
        if let Some(slot) = self.depends_on.get_mut(position) {
            *slot = on;
        }
    }

    /// At most sixteen components that stand for all of a wave.
    fn heads(&mut self, mut wave: Vec<usize>) -> Vec<usize> {
        while wave.len() > MAX_EDGES {
            let first: Vec<usize> = wave.drain(..MAX_EDGES).collect();
            if let Some(&next) = wave.first() {
                self.depend(next, first);
                self.in_a_row.push(next);
            }
        }
        wave
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(&[], vec![])]
    #[case::one_wave(&[0, 0], vec![vec![], vec![]])]
    #[case::gaps_and_negative_waves(&[5, -1, 0, 0, 5], vec![vec![2, 3], vec![], vec![1], vec![1], vec![2, 3]])]
    fn a_component_depends_on_all_of_the_next_lower_wave(#[case] waves: &[i64], #[case] wanted: Vec<Vec<usize>>) {
        assert_eq!(edges(waves), Edges { depends_on: wanted, in_a_row: vec![] });
    }

    #[test]
    fn a_wave_that_is_too_large_is_put_in_a_row() {
        let mut waves = vec![1; 40];
        waves.push(2);
        waves.push(0);
        let edges = edges(&waves);
        assert_eq!(edges.in_a_row, [16, 32]);
        assert_eq!(edges.depends_on[0], [41]);
        assert_eq!(edges.depends_on[16], (0..16).collect::<Vec<_>>());
        assert_eq!(edges.depends_on[32], (16..32).collect::<Vec<_>>());
        assert_eq!(edges.depends_on[40], (32..40).collect::<Vec<_>>());
    }

    /// Whether `from` comes after `to` by the edges, those of `without` left out.
    fn after(edges: &Edges, from: usize, to: usize, without: Option<(usize, usize)>) -> bool {
        let mut open = vec![from];
        let mut seen = vec![false; edges.depends_on.len()];
        while let Some(next) = open.pop() {
            for &on in edges.depends_on[next].iter().filter(|on| without != Some((next, **on))) {
                if on == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[on], true) {
                    open.push(on);
                }
            }
        }
        false
    }

    proptest! {
        #[test]
        fn whatever_is_in_a_lower_wave_comes_before(waves in prop::collection::vec(-3i64..4, 0..60)) {
            let edges = edges(&waves);
            for (a, of_a) in waves.iter().enumerate() {
                prop_assert!(edges.depends_on[a].len() <= MAX_EDGES);
                for (b, of_b) in waves.iter().enumerate() {
                    if of_b < of_a {
                        prop_assert!(after(&edges, a, b, None), "{a} is not after {b}: {edges:?}");
                    } else if of_b > of_a || a == b {
                        prop_assert!(!after(&edges, a, b, None), "{a} is after {b}: {edges:?}");
                    }
                }
            }
        }

        #[test]
        fn no_edge_can_be_left_out(waves in prop::collection::vec(-3i64..4, 0..24)) {
            let edges = edges(&waves);
            for (from, on) in edges.depends_on.iter().enumerate() {
                for &to in on {
                    prop_assert!(!after(&edges, from, to, Some((from, to))), "{from} to {to}: {edges:?}");
                }
            }
        }
    }
}
