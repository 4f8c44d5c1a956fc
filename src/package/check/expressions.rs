//! CEL expressions: syntax, variables, fields that may be absent.

mod place;

use super::Findings;
use crate::api::{HealthCheckExpr, ReadyWhen};
use crate::package::diagnostic::Severity;
use crate::package::load::LoadedPackage;
use crate::package::source::Span;
use crate::package::violation::{Code, Violation};
use crate::ready::cel::{Expression, Flaw, MAX_BYTES};

/// What an expression of `readyWhen` can read.
const READY_VARIABLES: [&str; 3] = ["object", "version", "fromVersion"];

pub fn check(package: &LoadedPackage, findings: &mut Findings<'_>) {
    let Some(typed) = &package.package else { return };
    for (index, component) in typed.spec.components.iter().enumerate() {
        let Some(install) = &component.install else { continue };
        let at = format!("/spec/components/{index}/install");
        for (index, entry) in install.ready_when.iter().enumerate() {
            ready_when(package, &format!("{at}/readyWhen/{index}"), entry, findings);
        }
        for (index, entry) in install.health_check_exprs.iter().enumerate() {
            health_check(package, &format!("{at}/healthCheckExprs/{index}"), entry, findings);
        }
    }
}

fn ready_when(package: &LoadedPackage, at: &str, entry: &ReadyWhen, findings: &mut Findings<'_>) {
    for (field, text) in [("expr", &entry.expr), ("failed", &entry.failed)] {
        let Some(text) = text else { continue };
        let mut check = Check { package, text, pointer: format!("{at}/{field}"), findings };
        let Some(expression) = check.compile() else { continue };
        for unknown in expression.roots().iter().filter(|root| !READY_VARIABLES.contains(&root.as_str())) {
            let help = if matches!(unknown.as_str(), "status" | "spec" | "metadata" | "self") {
                format!("write `object.{}`", if unknown == "self" { "…" } else { unknown })
            } else {
                format!("known here: {}", READY_VARIABLES.join(", "))
            };
            check.unknown_variable(&expression, unknown, help);
        }
        let compared = expression.optional_comparisons();
        let never = expression.never_boolean().into_iter().chain(expression.mismatches());
        check.flaws(never.chain(expression.bad_patterns()).chain(compared));
        check.ordered_as_text(&expression);
        let consequence = if field == "expr" { "not ready" } else { "not failed" };
        check.unguarded(&expression, &["object", "status"], consequence);
    }
}

/// Flux gives the object's own top-level fields as variables
/// (fluxcd/pkg, runtime/cel), whatever the kind has.
fn health_check(package: &LoadedPackage, at: &str, entry: &HealthCheckExpr, findings: &mut Findings<'_>) {
    const OURS: [&str; 4] = ["object", "self", "version", "fromVersion"];
    let fields = [
        ("current", Some(&entry.current)),
        ("inProgress", entry.in_progress.as_ref()),
        ("failed", entry.failed.as_ref()),
    ];
    for (field, text) in fields {
        let Some(text) = text else { continue };
        let mut check = Check { package, text, pointer: format!("{at}/{field}"), findings };
        let Some(expression) = check.compile() else { continue };
        for unknown in expression.roots().iter().filter(|root| OURS.contains(&root.as_str())) {
            let help = "Flux names the fields of the object directly: `status.phase`, `metadata.name`";
            check.unknown_variable(&expression, unknown, help.to_owned());
        }
        // Patterns are for Flux to read, which knows others than we do.
        let never = expression.never_boolean().into_iter().chain(expression.mismatches());
        check.flaws(never.chain(expression.optional_comparisons()));
        check.unguarded(&expression, &["status"], "an error to Flux");
    }
}

struct Check<'c, 'f> {
    package: &'c LoadedPackage,
    text: &'c str,
    pointer: String,
    findings: &'c mut Findings<'f>,
}

impl Check<'_, '_> {
    fn compile(&mut self) -> Option<Expression> {
        // What is longer, or empty, was refused with the shape of the document.
        if self.text.is_empty() || self.text.chars().count() > MAX_BYTES {
            return None;
        }
        match Expression::compile(self.text) {
            Ok(expression) => Some(expression),
            Err(error) => {
                let help = error.help(self.text);
                self.report(Severity::Error, Code::Expression, error.offset, error.message, help);
                None
            }
        }
    }

    fn unknown_variable(&mut self, expression: &Expression, name: &str, help: String) {
        let offset = expression.place_of_root(name);
        self.report(Severity::Error, Code::UnknownVariable, offset, format!("there is no variable `{name}`"), help);
    }

    fn flaws(&mut self, flaws: impl IntoIterator<Item = Flaw>) {
        for flaw in flaws {
            self.report(Severity::Error, Code::NeverAnswers, flaw.offset, flaw.message, flaw.help.to_owned());
        }
    }

    fn ordered_as_text(&mut self, expression: &Expression) {
        for flaw in expression.ordered_as_text() {
            self.report(Severity::Warning, Code::OrderedAsText, flaw.offset, flaw.message, flaw.help.to_owned());
        }
    }

    fn unguarded(&mut self, expression: &Expression, prefix: &[&str], consequence: &str) {
        // Without any status there is nothing to be said yet: that is no mistake.
        let whole = prefix.join(".");
        let accesses: Vec<_> = expression.unguarded(prefix).into_iter().filter(|access| access.path != whole).collect();
        let Some(first) = accesses.first() else { return };
        let mut paths: Vec<&str> = accesses.iter().map(|access| access.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        let (last, verb) = (paths.pop().unwrap_or_default(), if paths.is_empty() { "is" } else { "are not all" });
        let named =
            if paths.is_empty() { format!("`{last}`") } else { format!("`{}` and `{last}`", paths.join("`, `")) };
        let message = if verb == "is" {
            format!("as long as {named} is absent this is {consequence}")
        } else {
            format!("as long as {named} {verb} there this is {consequence}")
        };
        let help =
            "if absent can mean something else, such as zero, guard it: `object.?status.x.orValue(0)` or `has(…)`";
        self.report(Severity::Warning, Code::UnguardedStatus, first.offset, message, help.to_owned());
    }

    fn report(&mut self, severity: Severity, code: Code, offset: usize, message: String, help: String) {
        let span = self.span(offset);
        let violation = Violation::new(code, self.pointer.clone(), message).help(help);
        self.findings.found.push(self.package.diagnostic_at(severity, violation, span));
    }

    /// Where an offset of the expression is in the file, as far as the way it
    /// is written allows to tell; else the whole scalar.
    fn span(&self, offset: usize) -> Span {
        let whole = self.package.root.locate(&self.pointer);
        let Some(source) = self.findings.loaded.sources.get(self.package.source) else { return whole };
        let start = place::of(source.slice(whole), self.text, offset).map(|at| whole.start + at);
        start.map_or(whole, |start| Span { start, end: whole.end.max(start) })
    }
}
