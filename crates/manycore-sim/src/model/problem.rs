//! The reason why a model cannot be used.

use std::fmt;

/// The fault of a model: the file, the field, the fault and the remedy, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(String);

impl Problem {
    pub(super) fn of_file(file: &str, fault: impl fmt::Display, remedy: &str) -> Self {
        Self(format!("{file}: {fault}; {remedy}"))
    }

    pub(super) fn of_field(
        file: &str,
        field: &str,
        fault: impl fmt::Display,
        remedy: &str,
    ) -> Self {
        Self(format!("{file}: `{field}` {fault}; {remedy}"))
    }

    pub(super) fn of_name(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}
