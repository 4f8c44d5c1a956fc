//! Against the frozen answers of Masterminds/semver, and what is built on top.

use rstest::rstest;

use super::*;

const TABLE: &str = include_str!("masterminds.txt");

fn range(text: &str) -> Range {
    Range::parse(text).unwrap()
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

#[test]
fn ranges_mean_what_helm_and_flux_take_them_for() {
    let mut lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let versions: Vec<&str> = lines.next().unwrap().split(' ').collect();
    let (mut rows, mut wrong) = (0, Vec::new());
    for (text, expected) in lines.filter_map(|line| line.split_once('\t')) {
        rows += 1;
        let found = Range::parse(text).map_or_else(
            |_| "!".to_owned(),
            |range| {
                let admitted = versions.iter().filter(|text| range.admits(&version(text)));
                admitted.copied().collect::<Vec<_>>().join(" ")
            },
        );
        if found != expected {
            wrong.push(format!("{text}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {rows} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rows > 200, "only {rows} rows");
}

#[rstest]
#[case::apart(">=1 <2", ">=2", true)]
#[case::touching(">=1 <=2.0.0", ">=2", false)]
#[case::exact("1.2.3", "1.2.4", true)]
#[case::exact_inside("1.2.3", "^1", false)]
#[case::carets("^1.2", "^2", true)]
#[case::overlapping("^1.2", ">=1.9 <3", false)]
#[case::hole(">=1.2.3 <1.2.5 !=1.2.3", "!=1.2.4", true)]
#[case::hole_left(">=1.2.3 <1.2.6 !=1.2.3", "!=1.2.4", false)]
#[case::a_release_between(">1.2.3 <1.2.5", ">=1.2.4", false)]
#[case::no_release_between(">1.2.3 <1.2.4", "*", true)]
#[case::pre_releases_meet(">1.2.3 <1.2.4-z", ">=1.2.4-alpha <1.2.4", false)]
#[case::pre_releases_only_on_one_side(">=1.2.4-alpha <1.2.4", ">1.2.3", true)]
#[case::alternatives("^1 || ^3", "^2 || >=3.5", false)]
#[case::alternatives_apart("^1 || ^3", "^2 || ^4", true)]
#[case::above_everything_named(">=1", ">=7.3", false)]
#[case::below_everything_named("<9", "<1.5", false)]
fn ranges_that_no_version_is_in_exclude_each_other(#[case] one: &str, #[case] other: &str, #[case] excludes: bool) {
    assert_eq!(range(one).excludes(&range(other)), excludes);
    assert_eq!(range(other).excludes(&range(one)), excludes);
}

#[rstest]
#[case(">2 <1", true)]
#[case("^1 ^2", true)]
#[case("<0.0.0", true)]
#[case("<0.0.0-0", true)]
#[case(">=1", false)]
#[case("1.x !=1.2.x", false)]
#[case("1.2.x !=1.2.x", true)]
fn some_ranges_admit_nothing(#[case] text: &str, #[case] empty: bool) {
    assert_eq!(range(text).is_empty(), empty);
}

#[rstest]
#[case(">=1.9", "1.9.0", true)]
#[case(">=1.7", "1.9.0", false)]
#[case("^1", "1.0.0", true)]
#[case("*", "0.1.0", false)]
#[case("<2", "1.0.0", false)]
fn a_range_may_admit_nothing_older(#[case] text: &str, #[case] than: &str, #[case] excludes: bool) {
    assert_eq!(range(text).excludes_below(&version(than)), excludes);
}

#[test]
fn a_range_is_kept_as_written() {
    assert_eq!(range(" >=1 ").as_written(), " >=1 ");
}

#[rstest]
#[case("", "there is nothing in it, or nothing beside `||`: write `*` for any version")]
#[case("1 ||", "there is nothing in it, or nothing beside `||`: write `*` for any version")]
#[case("latest", "`latest` is no version")]
#[case(">=1<2", "`<2` is not understood")]
#[case("1 - >2", "a range with a hyphen has bare versions on both sides")]
#[case("${VERSION}", "`${VERSION}` is no version")]
fn a_refusal_names_the_part(#[case] text: &str, #[case] problem: &str) {
    assert_eq!(Range::parse(text).unwrap_err().to_string(), format!("`{text}` is no version range: {problem}"));
}

#[test]
fn long_ranges_are_refused() {
    assert!(Range::parse(&"1 ".repeat(200)).unwrap_err().to_string().contains("at most 256"));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_crash(text in "[0-9xvX.*<>=!~^|, -]{0,40}") {
        let _ = Range::parse(&text).map(|range| (range.is_empty(), range.excludes(&range)));
    }

    #[test]
    fn a_common_version_is_never_overlooked(a in ranges(), b in ranges(), c in (0..4u64, 0..4u64, 0..4u64)) {
        let (a, b) = (range(&a), range(&b));
        let common = version(&format!("{}.{}.{}", c.0, c.1, c.2));
        proptest::prop_assert!(!(a.admits(&common) && b.admits(&common) && a.excludes(&b)), "{a} and {b} both admit {common}");
    }
}

fn ranges() -> impl proptest::strategy::Strategy<Value = String> {
    let term = "(=|!=|>|<|>=|<=|~|\\^)?[0-3](\\.[0-3x](\\.[0-3])?)?(-alpha)?";
    let group = proptest::collection::vec(term, 1..4);
    let groups = proptest::collection::vec(group, 1..3);
    proptest::strategy::Strategy::prop_map(groups, |groups| {
        groups.into_iter().map(|terms| terms.join(" ")).collect::<Vec<_>>().join(" || ")
    })
}
