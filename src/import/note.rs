//! What an import has to say.

/// How much a [`Note`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something is not carried over or was assumed, and must be known.
    Warning,
    /// The Package is not valid, or would quietly install something else than the input.
    Error,
}

impl Severity {
    /// The word before a message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that could not be carried over, or was assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: `package`, `package/component` or a file.
    pub subject: String,
    /// What to know; without the subject, so that equal ones can be told together.
    pub message: String,
}

/// Notes with one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteGroup<'a> {
    /// How much they matter.
    pub severity: Severity,
    /// The message.
    pub message: &'a str,
    /// All subjects, each once, in the order they came.
    pub subjects: Vec<&'a str>,
}

/// Notes told together where they say the same, errors first, else in the
/// order of their first occurrence.
pub fn grouped(notes: &[Note]) -> Vec<NoteGroup<'_>> {
    let mut groups: Vec<NoteGroup<'_>> = Vec::new();
    for Note { severity, subject, message } in notes {
        match groups.iter_mut().find(|group| group.severity == *severity && group.message == message) {
            Some(group) if group.subjects.contains(&subject.as_str()) => {}
            Some(group) => group.subjects.push(subject),
            None => groups.push(NoteGroup { severity: *severity, message, subjects: vec![subject] }),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.severity));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(severity: Severity, subject: &str, message: &str) -> Note {
        Note { severity, subject: subject.into(), message: message.into() }
    }

    #[test]
    fn equal_messages_are_told_once_with_every_subject() {
        let notes = [
            note(Severity::Warning, "a", "m"),
            note(Severity::Warning, "b", "n"),
            note(Severity::Warning, "c", "m"),
            note(Severity::Warning, "a", "m"),
        ];
        let groups = grouped(&notes);
        let told: Vec<_> = groups.iter().map(|group| (group.message, group.subjects.clone())).collect();
        assert_eq!(told, [("m", vec!["a", "c"]), ("n", vec!["b"])]);
    }

    #[test]
    fn errors_come_first() {
        let notes = [note(Severity::Warning, "a", "m"), note(Severity::Error, "b", "m")];
        assert_eq!(
            grouped(&notes).iter().map(|group| group.severity).collect::<Vec<_>>(),
            [Severity::Error, Severity::Warning]
        );
    }
}
