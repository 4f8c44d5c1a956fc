//! What becomes one Package, and its name.

use std::collections::BTreeMap;

/// Sets of items that edges connect, directly or through others: each in
/// ascending order, in the order of their first items.
pub(super) fn connected(count: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut leader: Vec<usize> = (0..count).collect();
    for &(a, b) in edges {
        let (a, b) = (root(&leader, a), root(&leader, b));
        if let Some(slot) = leader.get_mut(a.max(b)) {
            *slot = a.min(b);
        }
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in 0..count {
        members.entry(root(&leader, index)).or_default().push(index);
    }
    members.into_values().collect()
}

fn root(leader: &[usize], mut node: usize) -> usize {
    while let Some(&next) = leader.get(node).filter(|&&next| next != node) {
        node = next;
    }
    node
}

/// The words that all names start with; empty if they share none.
pub(super) fn common_words<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let mut common: Vec<&str> = names.next().map_or_else(Vec::new, |first| first.split('-').collect());
    for name in names {
        let equal = common.iter().zip(name.split('-')).take_while(|(a, b)| **a == *b).count();
        common.truncate(equal);
    }
    common.join("-")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::alone(3, &[], vec![vec![0], vec![1], vec![2]])]
    #[case::through_others(5, &[(4, 2), (2, 0)], vec![vec![0, 2, 4], vec![1], vec![3]])]
    #[case::circle(3, &[(0, 1), (1, 2), (2, 0)], vec![vec![0, 1, 2]])]
    #[case::unknown_items_are_nothing(1, &[(0, 7)], vec![vec![0]])]
    fn items_that_edges_connect_are_one_set(
        #[case] count: usize,
        #[case] edges: &[(usize, usize)],
        #[case] sets: Vec<Vec<usize>>,
    ) {
        assert_eq!(connected(count, edges), sets);
    }

    #[rstest]
    #[case::words(&["shop-db", "shop-db-operator"], "shop-db")]
    #[case::halves_of_words_do_not_count(&["shopping-cart", "shop-db"], "")]
    #[case::one(&["shop"], "shop")]
    #[case::none(&[], "")]
    fn a_name_is_made_of_common_words(#[case] names: &[&str], #[case] common: &str) {
        assert_eq!(common_words(names.iter().copied()), common);
    }
}
