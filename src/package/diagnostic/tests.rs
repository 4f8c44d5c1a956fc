//! The three forms of one report.

use super::*;

fn report() -> Report {
    let text = "spec:\n  vresion: 1.9.0 # ü\n  name: \"a\nb\"\n";
    let find = |needle: &str| {
        let start = text.find(needle).unwrap();
        Span { start, end: start + needle.len() }
    };
    let diagnostic = |code, severity, needle: &str, message: &str, help: &str| Diagnostic {
        code,
        severity,
        source: 0,
        span: find(needle),
        package: Some("db".into()),
        component: None,
        message: message.into(),
        help: help.into(),
        fix: None,
    };
    Report::new(
        vec![Source::new("a,b:c.yaml", text)],
        vec![
            diagnostic(Code::Syntax, Severity::Warning, "\"a\nb\"", "100% odd\r\n::error::injected", ""),
            diagnostic(
                Code::UnknownField,
                Severity::Error,
                "vresion",
                "unknown field `vresion`",
                "did you mean `version`?",
            ),
            diagnostic(
                Code::UnknownField,
                Severity::Error,
                "vresion",
                "unknown field `vresion`",
                "did you mean `version`?",
            ),
        ],
    )
}

#[test]
fn people_see_the_line_and_a_caret() {
    insta::assert_snapshot!(write_text(&report(), Style::Plain));
}

#[test]
fn of_a_directory_only_its_name_is_shown() {
    let mut report = report();
    report.sources = vec![Source::new("packages", "")];
    report.diagnostics.truncate(1);
    report.diagnostics[0].span = Span::default();
    let text = write_text(&report, Style::Plain);
    assert!(text.contains("--> packages\n") && !text.contains('^'), "{text}");
}

#[test]
fn colours_are_there_only_when_wanted() {
    assert!(write_text(&report(), Style::Colored).contains('\u{1b}'));
    assert!(!write_text(&report(), Style::Plain).contains('\u{1b}'));
}

#[test]
fn programs_get_json() {
    insta::assert_json_snapshot!(write_json(&report()));
}

#[test]
fn no_text_can_begin_a_workflow_command() {
    insta::assert_snapshot!(write_github(&report()));
}

#[test]
fn nothing_is_said_about_nothing() {
    assert_eq!(write_text(&Report::default(), Style::Plain), "");
    assert_eq!(write_github(&Report::default()), "");
}

#[test]
fn a_very_long_line_is_cut_around_the_mark() {
    let text = format!("a: {}X{}", "é".repeat(50_000), "ü".repeat(50_000));
    let start = text.find('X').unwrap();
    let diagnostic = Diagnostic { span: Span { start, end: text.len() }, ..report().diagnostics[0].clone() };
    let written = write_text(&Report::new(vec![Source::new("a.yaml", text)], vec![diagnostic]), Style::Plain);
    assert!(written.contains('X') && written.len() < 3000, "{}", written.len());
    assert!(written.contains(" --> a.yaml:1:50004\n"), "{written}");
}
