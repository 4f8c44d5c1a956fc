use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn object() -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "generation": 3, "labels": {"a.b/c": "yes"}},
        "spec": {"replicas": 3, "ratio": 0.5, "images": ["a", "b"], "big": 18_446_744_073_709_551_615_u64},
        "status": {
            "phase": "Deployed",
            "observedKubeVirtVersion": "v1.9.0",
            "observedGeneration": 3,
            "replicas": 3,
            "note": "héllo",
            "nothing": null,
            "lastTransitionTime": "2026-11-29T10:00:00Z",
            "conditions": [
                {"type": "Available", "status": "True", "reason": "AllComponentsReady"},
                {"type": "Progressing", "status": "False"},
            ],
        },
    })
}

fn outcome(text: &str) -> Outcome {
    let object = object();
    Expression::compile(text).unwrap().evaluate(&Variables::ready(&object, "v1.9.0", "1.8.2"))
}

#[rstest]
#[case::kubevirt(
    "object.status.observedKubeVirtVersion == 'v' + version && object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')"
)]
#[case::filter_all("object.status.conditions.filter(c, c.type == 'Available').all(c, c.status == 'True')")]
#[case::all_of_nothing("object.status.conditions.filter(c, c.type == 'Nope').all(c, c.status == 'True')")]
#[case::exists_one("object.status.conditions.exists_one(c, c.status == 'True')")]
#[case::map("object.status.conditions.map(c, c.type) == ['Available', 'Progressing']")]
#[case::map_with_filter("object.status.conditions.map(c, c.status == 'True', c.type) == ['Available']")]
#[case::has("has(object.status.phase) && !has(object.status.nope)")]
#[case::has_null("has(object.status.nothing) && object.status.nothing == null")]
#[case::optional_select("object.status.?phase.orValue('') == 'Deployed' && object.status.?nope.orValue('x') == 'x'")]
#[case::optional_chain("object.?nope.?deeper.orValue(1) == 1")]
#[case::optional_index("object.metadata.?labels[?'a.b/c'].orValue('') == 'yes'")]
#[case::optional_position(
    "object.status.?conditions[?0].?status.orValue('') == 'True' && !object.status.?conditions[?9].hasValue()"
)]
#[case::optional_map("object.status.?phase.optMap(p, p + '!').orValue('') == 'Deployed!'")]
#[case::optional_list("[?object.status.?nope].size() == 0")]
#[case::json_integer_is_int("type(object.spec.replicas) == int && object.spec.replicas == 3")]
#[case::integer_arithmetic(
    "object.status.replicas - 1 == 2 && object.status.replicas + 1 == 4 && object.status.replicas % 2 == 1"
)]
#[case::cross_type("object.spec.replicas == 3.0 && object.spec.replicas < 3.5 && object.spec.replicas == 3u")]
#[case::beyond_int("type(object.spec.big) == uint")]
#[case::double("object.spec.ratio * 2.0 == 1.0")]
#[case::string_to_int("int('7') + object.spec.replicas == 10")]
#[case::error_absorbed_by_false("!((1 / 0 == 1) && false)")]
#[case::missing_absorbed_by_true("object.nope.x == 1 || true")]
#[case::missing_absorbed_from_the_right("true || object.nope.x == 1")]
#[case::exists_absorbs_missing("object.status.conditions.exists(c, c.reason == 'AllComponentsReady')")]
#[case::index_by_name("object.metadata.labels['a.b/c'] == 'yes'")]
#[case::in_list("'a' in object.spec.images && !('z' in object.spec.images)")]
#[case::in_map("'phase' in object.status")]
#[case::code_points("size(object.status.note) == 5 && object.status.note.size() == 5")]
#[case::matches("object.status.observedKubeVirtVersion.matches('^v[0-9]+[.]')")]
#[case::strings(
    "'A-b'.lowerAscii() == 'a-b' && ' x '.trim() == 'x' && 'a,b'.split(',') == ['a', 'b'] && 'abc'.substring(1) == 'bc'"
)]
#[case::replace(
    "'a-b-c'.replace('-', '') == 'abc' && 'a-b-c'.replace('-', '+', 1) == 'a+b-c' && 'a-b'.replace('-', '+', -1) == 'a+b'"
)]
#[case::join("['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab'")]
#[case::format("'%s has %d'.format(['x', 2]) == 'x has 2'")]
#[case::base64("base64.encode(b'hello') == 'aGVsbG8=' && string(base64.decode('aGVsbG8=')) == 'hello'")]
#[case::sets_contains("sets.contains([1, 2, 2.0], [2, 1]) && !sets.contains([1], [2])")]
#[case::sets_equivalent("sets.equivalent([1, 2, 1], [2, 1]) && !sets.equivalent([1], [1, 2])")]
#[case::sets_intersects("sets.intersects(object.spec.images, ['b']) && !sets.intersects([], ['b'])")]
#[case::timestamps("timestamp(object.status.lastTransitionTime) < timestamp('2027-01-01T00:00:00Z')")]
#[case::durations("timestamp('2026-11-29T10:00:30Z') - timestamp(object.status.lastTransitionTime) == duration('30s')")]
#[case::versions("version == '1.9.0' && fromVersion == '1.8.2'")]
#[case::ternary("object.spec.replicas > 5 ? false : true")]
#[case::comment("true // and nothing else (((((((((((((((((((((((((((((((((((((")]
#[case::raw_text(r"r'\' == '\\'")]
fn expressions_that_hold(#[case] text: &str) {
    assert_eq!(outcome(text), Outcome::True, "{text}");
}

#[rstest]
#[case::false_comparison("object.status.phase == 'Failed'", Outcome::False)]
#[case::other_type("1 == 'one'", Outcome::False)]
#[case::text("object.status.phase", Outcome::NotBoolean { kind: "string".into() })]
#[case::number("object.spec.replicas", Outcome::NotBoolean { kind: "int".into() })]
#[case::optional("object.status.?ready", Outcome::NotBoolean { kind: "optional_type".into() })]
fn expressions_that_do_not_hold(#[case] text: &str, #[case] expected: Outcome) {
    assert_eq!(outcome(text), expected);
}

#[rstest]
#[case::field("object.status.observedVersion == 'v' + version", "status.observedVersion")]
#[case::parent("object.state.phase == 'x'", "state")]
#[case::has_below_missing("has(object.state.phase.detail)", "state")]
#[case::beside_a_field_of_that_name("object.spec.replicas == 3 && object.metadata.replicas == 3", "metadata.replicas")]
#[case::by_index("object.status['observedVersion'] == 'x'", "status.observedVersion")]
#[case::of_an_item("object.status.conditions.exists(c, c.reason == 'x')", "c.reason")]
#[case::item("object.status.conditions[4].status == 'True'", "item 4")]
#[case::variable("status.phase == 'x'", "status")]
#[case::and_true("object.status.nope == 1 && true", "status.nope")]
fn a_message_says_what_is_missing(#[case] text: &str, #[case] path: &str) {
    assert_eq!(outcome(text), Outcome::Missing { path: path.to_owned() });
    assert_eq!(outcome(text).to_string(), format!("{path} is not there yet"));
}

#[rstest]
#[case::division("1 / (object.spec.replicas - 3) == 1", "division by zero")]
#[case::overload("object.status.phase > 3", "found no matching overload for '_>_' applied to '(string, int)'")]
#[case::select_on_text(
    "object.status.phase.deeper == 1",
    "found no matching overload for '_._' applied to '(string, string)'"
)]
#[case::repeated_key("{'a': 1, 'a': 2}.size() == 1", "a map has a key twice")]
#[case::replaced_function("[1].join('-') == ''", "Unexpected type: got 'int', want 'string'")]
#[case::overflow("9223372036854775807 + 1 > 0", "operator add overflows")]
fn an_error_is_a_value_with_a_message(#[case] text: &str, #[case] message: &str) {
    assert_eq!(outcome(text), Outcome::Error { message: message.to_owned() });
}

/// Whoever may read a Package's status need not be allowed to read the object.
#[rstest]
#[case::key("{'a': true}[object.data.password]")]
#[case::key_with_a_written_part("{'a': true}['x' + object.data.password]")]
#[case::key_type("{object.data: true}.size() == 1")]
#[case::index("[1][object.data.pin]")]
#[case::index_of_another_type("[1][object.data.password]")]
#[case::repeated_key("{object.data.password: 1, object.data.password: 2}.size() == 1")]
#[case::conversion("int(object.data.password) == 1")]
#[case::duration("duration(object.data.password) > duration('1s')")]
#[case::time("timestamp(object.data.password) > timestamp('2020-01-01T00:00:00Z')")]
#[case::pattern("'a'.matches('(' + object.data.password)")]
#[case::division("object.data.pin / 0 == 1")]
#[case::remainder("object.data.pin % 0 == 1")]
#[case::overflow("object.data.pin + 9223372036854775807 > 0")]
#[case::operator("object.data.password - 1 == 1")]
#[case::comparison("object.data.password < 1")]
#[case::method("object.data.password.all(c, c)")]
#[case::negation("!object.data.password")]
fn a_message_says_nothing_of_what_an_object_holds(#[case] text: &str) {
    let secret = json!({"data": {"password": "hunter2-and-more", "pin": 48_151_623}});
    let outcome = Expression::compile(text).unwrap().evaluate(&Variables::ready(&secret, "1.0.0", ""));
    let said = format!("{outcome} {outcome:?}");
    assert!(!said.contains("hunter2") && !said.contains("48151623"), "{said}");
    assert!(!outcome.is_true());
}

#[rstest]
#[case::empty("", "the expression is empty", 0)]
#[case::blank("  \n", "the expression is empty", 0)]
#[case::unfinished("object.status.", "the expression ends too early", 14)]
#[case::second_line("object.a == 1 &&\n  object..b", "`..` cannot stand here", 26)]
#[case::after_two_byte_characters("'éé' == = 1", "`=` cannot stand here", 10)]
#[case::reserved("package.x == 1", "`package` is a word that CEL reserves", 0)]
#[case::nothing_behind("object.a == ", "the expression ends too early", 11)]
#[case::nothing_before("&& object.a", "`&&` cannot stand here", 0)]
#[case::open_text("object.a == 'x", "this text has no end", 12)]
#[case::escape(r"object.a == '\q'", "this text has a `\\` with something behind it", 12)]
#[case::open_bracket("(object.a", "`)` is missing at the end", 9)]
#[case::bracket_too_much("object.a)", "`)` cannot stand here", 8)]
#[case::no_colon("{'a' 1}", "`:` is missing before `1`", 5)]
#[case::no_else("object.a ? b", "`?` needs a second value behind `:`", 0)]
#[case::two_values("object.a b", "`b` cannot stand here", 9)]
#[case::comment("object.a # x", "`#` cannot stand here", 9)]
#[case::large_number("object.a == 99999999999999999999", "this number does not fit 64 bits", 12)]
#[case::back_quotes("object.`a-b` == 1", "names in backquotes are not read", 6)]
#[case::macro_with_one_argument("object.a.exists(c)", "exists(…) takes a name and a condition", 15)]
#[case::macro_without_a_name("object.a.all(1, true)", "this must be a name", 13)]
#[case::has_of_two("has(object.a, 1)", "has(…) takes one field", 3)]
#[case::has_of_a_variable("has(object)", "has(…) takes a field", 4)]
#[case::unknown_function("object.isReady() && true", "there is no function `isReady`", 14)]
#[case::unknown_global("ready(object)", "there is no function `ready`", 5)]
#[case::unknown_in_namespace("sets.union([1], [2]) == []", "there is no function `union`", 10)]
fn a_text_that_is_no_expression_is_refused_with_its_place(
    #[case] text: &str,
    #[case] message: &str,
    #[case] offset: usize,
) {
    let error = Expression::compile(text).unwrap_err();
    assert!(error.message.contains(message), "{error:?}");
    assert_eq!(error.offset, offset, "{error:?}");
}

#[rstest]
#[case::object("object.status.x == version", &["object", "version"])]
#[case::bound("object.items.all(version, version.x == 1)", &["object"])]
#[case::outside_and_inside("version == '1' && object.items.all(version, version.x == 1)", &["object", "version"])]
#[case::nested("a.all(x, b.exists(y, x == y && z))", &["a", "b", "z"])]
#[case::types("type(object) == map && int('1') == 1", &["object"])]
#[case::functions("sets.contains([1], object.x) && base64.encode(b'x') == '' && optional.of(1).hasValue()", &["object"])]
#[case::shadowed_function("sets.status == 1", &["sets"])]
#[case::fields("status.phase == 'x' && metadata.generation == 1", &["metadata", "status"])]
#[case::has("has(self.spec) && dep.metadata.?labels.hasValue()", &["dep", "self"])]
#[case::opt_map("object.?a.optMap(version, version == 1).orValue(false)", &["object"])]
#[case::literals("{'version': 1}.version == 1", &[])]
fn roots_are_the_variables_read(#[case] text: &str, #[case] expected: &[&str]) {
    let expression = Expression::compile(text).unwrap();
    assert_eq!(expression.roots().iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[rstest]
#[case::plain("status.phase == 'x'", &[("status.phase", 6)])]
#[case::guarded("has(status.phase) && status.phase == 'x'", &[("status", 4)])]
#[case::guarded_from_the_right("status.phase == 'x' && has(status.phase)", &[("status", 27)])]
#[case::or("!has(status.phase) || status.phase == 'x'", &[("status", 5)])]
#[case::ternary("has(status.phase) ? status.phase == 'x' : status.other == 'y'", &[("status", 4), ("status.other", 48)])]
#[case::optional("status.?phase.orValue('') == 'x'", &[("status", 0)])]
#[case::deeper_guard_covers("has(status.a.b) && status.a == {}", &[("status.a", 10)])]
#[case::other_root("spec.x == 1", &[])]
#[case::index("status['ready-nodes'] == 3", &[("status.ready-nodes", 6)])]
#[case::index_of_an_object("status['a'].b == status.c['d']", &[("status.a.b", 11), ("status.c.d", 25)])]
#[case::index_guarded_by_in("'ready' in status && status['ready'] == 3", &[("status", 11)])]
#[case::index_guarded_by_has("has(status.ready) && status['ready'] == 3", &[("status", 4)])]
#[case::not_in("!('a' in status) || status.a == 1", &[("status", 9)])]
#[case::optional_that_has_a_value("self.?status.?x.hasValue() && status.x == 1", &[("status.x", 36)])]
#[case::guarded_by_an_optional("status.?x.hasValue() && status.x == 1", &[("status", 0)])]
#[case::in_a_walk("status.conditions.exists(c, c.status == 'True')", &[("status.conditions", 6)])]
fn unguarded_fields_are_found(#[case] text: &str, #[case] expected: &[(&str, usize)]) {
    let expression = Expression::compile(text).unwrap();
    let found = expression.unguarded(&["status"]);
    let found: Vec<_> = found.iter().map(|access| (access.path.as_str(), access.offset)).collect();
    assert_eq!(found, expected);
}

#[rstest]
#[case::number("1", Some(("this is a number, never true or false", 0)))]
#[case::text("'x'", Some(("this is text, never true or false", 0)))]
#[case::list("[true]", Some(("this is a list, never true or false", 0)))]
#[case::size("object.items.size()", Some(("this is a number, never true or false", 17)))]
#[case::version("version", Some(("this is text, never true or false", 0)))]
#[case::negated_version("!fromVersion", Some(("this is text, never true or false", 1)))]
#[case::version_beside("version && true", Some(("this is text, never true or false", 0)))]
#[case::object("object", Some(("this is a map, never true or false", 0)))]
#[case::metadata("object.metadata", Some(("this is a map, never true or false", 6)))]
#[case::name("object['metadata'].name", Some(("this is text, never true or false", 18)))]
#[case::optional("object.?status.x", Some(("this is an optional value, never true or false", 14)))]
#[case::optional_index("object[?'status']", Some(("this is an optional value, never true or false", 6)))]
#[case::optional_of("optional.of(true)", Some(("this is an optional value, never true or false", 11)))]
#[case::optional_or("object.?a.or(object.?b)", Some(("this is an optional value, never true or false", 12)))]
#[case::optional_answered("object.?status.x.orValue(false)", None)]
#[case::optional_asked("object.?status.x.hasValue()", None)]
#[case::field("object.status.ready || object.metadata.ready", None)]
#[case::bound("object.items.all(version, version)", None)]
#[case::one_side("object.ready && 'x'", Some(("this is text, never true or false", 16)))]
#[case::one_choice("object.ready ? true : 1 - 1", Some(("this is a number, never true or false", 24)))]
#[case::negated("!1", Some(("this is a number, never true or false", 1)))]
#[case::comparison("1 == 1", None)]
#[case::field("object.ready", None)]
#[case::constant("true", None)]
#[case::unknown_type("dyn(1)", None)]
fn what_is_never_boolean_is_found(#[case] text: &str, #[case] expected: Option<(&str, usize)>) {
    let flaw = Expression::compile(text).unwrap().never_boolean();
    assert_eq!(flaw.as_ref().map(|flaw| (flaw.message.as_str(), flaw.offset)), expected);
}

#[rstest]
#[case::open_bracket("object.name.matches('[')", &["`[` is no regular expression"])]
#[case::as_a_function("matches(object.name, '(') && matches(object.name, ')')", &["`(` is no regular expression", "`)` is no regular expression"])]
#[case::good("object.name.matches('^v[0-9]+$')", &[])]
#[case::computed("object.name.matches(object.pattern)", &[])]
#[case::large("object.name.matches('[a-z]{500}')", &[])]
#[case::too_large(
    "object.name.matches('((a{100}){100}){100}')",
    &["`((a{100}){100}){100}` is too large a regular expression"]
)]
fn bad_patterns_are_found(#[case] text: &str, #[case] expected: &[&str]) {
    let flaws = Expression::compile(text).unwrap().bad_patterns();
    assert_eq!(flaws.iter().map(|flaw| flaw.message.as_str()).collect::<Vec<_>>(), expected);
}

#[test]
fn fields_of_an_object_are_the_variables_of_flux() {
    let object = object();
    let holds = |text: &str| Expression::compile(text).unwrap().evaluate(&Variables::fields(&object));
    assert_eq!(holds("status.observedGeneration == metadata.generation && kind == 'KubeVirt'"), Outcome::True);
    assert_eq!(holds("data.x == '1'"), Outcome::Missing { path: "data".into() });
    assert_eq!(holds("status.conditions.filter(e, e.type == 'Nope').size() == 0"), Outcome::True);
}

#[test]
fn a_field_comes_before_a_type_of_its_name() {
    let secret = json!({"type": "Opaque", "kind": "Secret"});
    let expression = Expression::compile("type == 'Opaque' && kind == 'Secret'").unwrap();
    assert_eq!(expression.evaluate(&Variables::fields(&secret)), Outcome::True);
    assert_eq!(expression.evaluate(&Variables::new().with("kind", &secret["kind"])), Outcome::False);
}

#[test]
fn an_expression_over_two_objects_names_the_variable_of_what_is_missing() {
    let (own, dependency) = (json!({"spec": {}}), json!({"status": {"ready": true}}));
    let variables = Variables::new().with("self", &own).with("dep", &dependency);
    let holds = |text: &str| Expression::compile(text).unwrap().evaluate(&variables);
    assert_eq!(holds("dep.status.ready && !has(self.spec.x)"), Outcome::True);
    assert_eq!(
        holds("dep.status.version == self.spec.version"),
        Outcome::Missing { path: "dep.status.version".into() }
    );
}

fn nested(open: &str, close: &str, levels: usize) -> String {
    format!("{}true{}", open.repeat(levels), close.repeat(levels))
}

#[rstest]
#[case::parentheses(nested("(", ")", 33))]
#[case::lists(nested("[", "]", 33))]
#[case::maps(nested("{1:", "}", 33))]
#[case::calls(nested("f(", ")", 33))]
#[case::negations(nested("!", "", 33))]
#[case::spaced_negations(nested("! ", "", 33))]
#[case::minus(format!("{}1 == 1", "-".repeat(33)))]
#[case::long_text(format!("'{}' == ''", "x".repeat(4096)))]
fn what_nests_too_deeply_never_reaches_the_parser(#[case] text: String) {
    let error = limits::check(&text).unwrap_err();
    assert!(error.message.starts_with("the expression "), "{error:?}");
    assert_eq!(Expression::compile(&text).unwrap_err(), error);
}

#[rstest]
#[case::selections(format!("a{}", ".b".repeat(2000)))]
#[case::sum(format!("1{} == 1", "+1".repeat(2000)))]
#[case::indexes(format!("a{}", "[0]".repeat(1360)))]
#[case::calls(format!("a{}", ".size()".repeat(580)))]
#[case::ternaries(format!("{}1", "1?1:".repeat(1000)))]
fn what_chains_too_long_is_never_evaluated(#[case] text: String) {
    limits::check(&text).unwrap();
    let error = Expression::compile(&text).unwrap_err();
    assert_eq!(error.message, "the expression has too many operators and selections in a row");
}

/// The worst of what the scan admits, on the small stack of a test thread.
#[rstest]
#[case::parentheses(nested("(", ")", 32))]
#[case::mixed(format!("{}true{}", "([{1:".repeat(10), "}])".repeat(10)))]
#[case::chain(format!("object{}", ".b".repeat(510)))]
#[case::sum(format!("1{} == 1", "+1".repeat(254)))]
#[case::ternary(format!("{}true", "true?true:".repeat(90)))]
#[case::conjunction(format!("true{}", "&&true".repeat(680)))]
#[case::nested_conjunctions(nested("true&&true&&true&&true&&(true||", ")", 30))]
#[case::indexes(format!("object{}", "[0]".repeat(510)))]
#[case::calls(format!("object{}", ".size()".repeat(254)))]
#[case::negations(nested("!(", ")", 32))]
#[case::list(format!("[{}1] == []", "1,".repeat(2000)))]
#[case::unclosed("(".repeat(32))]
#[case::garbage("\u{0}\u{7f}é(((".to_owned())]
fn the_worst_admitted_text_is_parsed_and_evaluated_without_overflow(#[case] text: String) {
    limits::check(&text).unwrap();
    let object = object();
    let variables = Variables::ready(&object, "1.0.0", "");
    match Expression::compile(&text) {
        Ok(expression) => assert_ne!(expression.evaluate(&variables), Outcome::LimitExceeded),
        Err(error) => assert!(text.contains("((("), "{error:?}"),
    }
}

#[rstest]
#[case::text(format!("['01234']{} != []", ".map(a,a+a)".repeat(60)))]
#[case::lists(format!("[1]{} != []", ".map(a,[a,a])".repeat(60)))]
#[case::maps(format!("[1]{} != []", ".map(a,{'x':a,'y':a})".repeat(60)))]
#[case::lists_of_long_text(format!("['{}']{} != []", "x".repeat(1000), ".map(a,[a,a,a,a,a,a,a,a])".repeat(20)))]
#[case::sums_of_lists(format!("[[1]]{} != []", ".map(a,a+a)".repeat(60)))]
#[case::replace(format!("'a'{} == ''", ".replace('a','aaaaaaaaaa')".repeat(60)))]
#[case::replace_nothing(format!("'a'{} == ''", ".replace('','aaaaaaaaaa')".repeat(60)))]
#[case::join(format!("['aa']{} == []", ".map(a,a.split('').join('bbbbbbbb'))".repeat(60)))]
#[case::format(format!("['a']{} == []", ".map(a,'%s%s%s%s'.format([a,a,a,a]))".repeat(60)))]
#[case::nested_walks("[1,2,3,4,5,6,7,8,9,0].all(a,[1,2,3,4,5,6,7,8,9,0].all(b,[1,2,3,4,5,6,7,8,9,0].all(c,[1,2,3,4,5,6,7,8,9,0].all(d,[1,2,3,4,5,6,7,8,9,0].all(e,[1,2,3,4,5,6,7,8,9,0].all(f,[1,2,3,4,5,6,7,8,9,0].all(g,true)))))))".to_owned())]
#[case::absorbed_by_or(format!("['01234']{} != [] || true", ".map(a,a+a)".repeat(60)))]
#[case::absorbed_in_a_walk(format!("[1,2].exists(x, ['01234']{} != []) || true", ".map(a,a+a)".repeat(60)))]
fn an_expression_that_grows_without_end_runs_out_of_fuel(#[case] text: String) {
    assert_eq!(outcome(&text), Outcome::LimitExceeded, "{text}");
}

#[test]
fn a_big_object_is_walked_within_the_limit() {
    let items: Vec<Value> = (0..2000).map(|n| json!({"name": format!("item-{n}"), "ready": true})).collect();
    let object = json!({"status": {"items": items}});
    let expression =
        Expression::compile("object.status.items.all(i, i.ready) && object.status.items.map(i, i.name).size() == 2000")
            .unwrap();
    assert_eq!(expression.evaluate(&Variables::ready(&object, "1.0.0", "")), Outcome::True);
}

#[test]
fn a_later_expression_is_answered_after_one_ran_out_of_fuel() {
    assert_eq!(outcome(&format!("[1]{} != []", ".map(a,[a,a])".repeat(60))), Outcome::LimitExceeded);
    assert_eq!(outcome("true"), Outcome::True);
}

#[test]
fn every_listed_function_exists() {
    for name in library::FUNCTIONS {
        let called = |text: &str| {
            let answer = Expression::compile(text).unwrap().evaluate(&Variables::new());
            !matches!(&answer, Outcome::Missing { path } if name.ends_with(path))
        };
        assert!(called(&format!("{name}()")) || called(&format!("'x'.{name}()")), "{name} is not a function");
    }
}

#[rstest]
#[case::two("a == 1 && b.c", &["a == 1", "b.c"])]
#[case::brackets("(a || b) && c.all(x, x && y) && [d && e][0]", &["(a || b)", "c.all(x, x && y)", "[d && e][0]"])]
#[case::optional("a.?b.orValue(false) && c[?0].hasValue()", &["a.?b.orValue(false)", "c[?0].hasValue()"])]
#[case::text("a == ' && ' && b", &["a == ' && '", "b"])]
#[case::lines("a &&\n  // not && this\n  b", &["a", "// not && this\n  b"])]
#[case::one("a", &[])]
#[case::or("a && b || c", &[])]
#[case::choice("a && b ? c : d", &[])]
fn parts_are_the_operands_at_the_top(#[case] text: &str, #[case] expected: &[&str]) {
    let expression = Expression::compile(text).unwrap();
    assert_eq!(expression.parts().iter().map(Expression::text).collect::<Vec<_>>(), expected);
}

/// One text of 1000 bytes, alone and in a list.
#[rstest]
#[case::walked_range("items.exists_one(x, false)", 1000)]
#[case::steps("items.map(x, x) == []", 2000)]
#[case::sum("text + text == ''", 2000)]
#[case::list("[text, text].size() == 2", 2000)]
#[case::map("{'a': text}.size() == 1", 1000)]
#[case::key("{text: 1}.size() == 1", 1000)]
#[case::function("text.lowerAscii() == ''", 1000)]
#[case::replacement_before_and_after("text.replace('x', 'xx') == ''", 5000)]
#[case::join_before_and_after("[text, text].join() == ''", 6000)]
#[case::separators("['', '', ''].join(text) == ''", 4000)]
#[case::split("text.split('') == []", 17_000)]
#[case::sets("sets.contains(text.split(''), text.split(''))", 1_000_000)]
fn whatever_is_made_or_walked_is_paid_for(#[case] text: &str, #[case] least: u64) {
    let (value, list) = (json!("x".repeat(1000)), json!(["x".repeat(1000)]));
    let variables = Variables::new().with("text", &value).with("items", &list);
    let expression = Expression::compile(text).unwrap();
    let cost = fuel::cost(|| {
        let answer = library::resolve(&expression.inner.metered, variables.values(expression.roots()));
        assert!(answer.is_ok());
    });
    assert!((least..least + least / 2 + 200).contains(&cost), "{text} costs {cost}");
}

#[test]
fn reading_costs_nothing() {
    let object = object();
    let expression = Expression::compile("object.status.phase == 'Deployed' && object.status.replicas < 5").unwrap();
    let variables = Variables::ready(&object, "1.0.0", "");
    let cost = fuel::cost(|| drop(library::resolve(&expression.inner.metered, variables.values(expression.roots()))));
    assert_eq!(cost, 0);
}

/// What cel-go 0.26.0 with the options and extensions of Flux (fluxcd/pkg `runtime/cel`)
/// makes of expressions: the object in the first line of `truth.jsonl`, then an expression
/// and its outcome in each, types unchecked. `other` is a value that is no truth.
#[test]
fn expressions_come_to_what_go_makes_of_them() {
    let mut lines = include_str!("truth.jsonl").lines();
    let object: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let mut count = 0;
    for line in lines {
        let (text, truth): (String, String) = serde_json::from_str(line).unwrap();
        let outcome =
            Expression::compile(&text).map(|compiled| compiled.evaluate(&Variables::ready(&object, "1.2.0", "1.1.0")));
        let fits = match &outcome {
            Ok(Outcome::True) => truth == "true",
            Ok(Outcome::False) => truth == "false",
            Ok(Outcome::NotBoolean { .. }) => truth == "other",
            // Functions that do not exist are refused before.
            Err(_) | Ok(Outcome::Missing { .. } | Outcome::Error { .. }) => truth == "error",
            Ok(Outcome::LimitExceeded) => false,
        };
        assert!(fits, "{text}: {outcome:?} instead of {truth}");
        count += 1;
    }
    assert!(count > 300);
}

#[test]
fn a_variable_is_found_where_it_is_read_first() {
    let place = |text: &str, name| Expression::compile(text).unwrap().place_of_root(name);
    assert_eq!(place("object.a == 'b' && b", "b"), 19);
    assert_eq!(place("object.b.exists(b, b.c) || b", "b"), 27);
    assert_eq!(place("'é' == b || b", "b"), 8);
    assert_eq!(place("'漢😀' == b", "b"), 13);
}

#[rstest]
#[case::equal("object.?status.?phase == 'Running'", true)]
#[case::the_other_way_round("version != object.?status.version", true)]
#[case::inside("has(object.a) && object.?status.?replicas >= 3", true)]
#[case::with_a_default("object.?status.?phase.orValue('') == 'Running'", false)]
#[case::both_optional("object.?status.?phase == optional.of('Running')", false)]
#[case::neither("object.status.phase == 'Running'", false)]
fn an_optional_value_never_equals_another(#[case] text: &str, #[case] is_found: bool) {
    let found = Expression::compile(text).unwrap().optional_comparisons();
    assert_eq!(found.len(), usize::from(is_found), "{found:?}");
}

#[rstest]
#[case::a_sum("object.?status.?version.orValue('') == version + 1", &["text and a number cannot be added"])]
#[case::in_one_operand("object.status.ready || 'a' + 1 == 'a1'", &["text and a number cannot be added"])]
#[case::longer("'a' + object.kind + 1 == 'x'", &["text and a number cannot be added"])]
#[case::truth("true + 1 == 2", &["true or false cannot be added to anything"])]
#[case::an_order("version > 1", &["text is neither more nor less than a number"])]
#[case::of_a_map("object.metadata > 1", &["a map is neither more nor less than anything"])]
#[case::a_product("version * 2 == 4", &["text cannot be calculated with"])]
#[case::numbers("object.metadata.generation + 1 > 2", &[])]
#[case::texts("object.kind + '-' + version == 'x'", &[])]
#[case::lists("[1] + [2] == [1, 2]", &[])]
#[case::unknown("object.status.replicas + 1 > object.spec.replicas", &[])]
#[case::times("timestamp(object.metadata.creationTimestamp) + duration('1m') < timestamp('2026-01-01T00:00:00Z')", &[])]
#[case::a_difference_of_times("timestamp(object.status.at) - timestamp(object.status.since) > duration('1m')", &[])]
#[case::a_variable_of_its_own("object.status.items.all(version, version > 1)", &[])]
#[case::equality_of_kinds("object.status.version == 1", &[])]
fn operands_that_do_not_go_together_are_found(#[case] text: &str, #[case] expected: &[&str]) {
    let found = Expression::compile(text).unwrap().mismatches();
    assert_eq!(found.iter().map(|flaw| flaw.message.as_str()).collect::<Vec<_>>(), expected);
}

#[rstest]
#[case::at_least("object.?status.?version.orValue('') >= version", 1)]
#[case::beneath("fromVersion < '1.10.0'", 1)]
#[case::the_same("object.status.version == version", 0)]
#[case::its_length("size(version) > 3", 0)]
#[case::a_variable_of_its_own("object.status.versions.exists(version, version > 3)", 0)]
fn a_version_that_is_ordered_is_found(#[case] text: &str, #[case] expected: usize) {
    assert_eq!(Expression::compile(text).unwrap().ordered_as_text().len(), expected);
}
