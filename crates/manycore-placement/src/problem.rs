//! What stands in the way.

use std::fmt::{self, Display};

/// An error that names the culprit and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub culprit: String,
    /// What to do about it.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(culprit: impl Display, remedy: impl Display) -> Self {
        Self { culprit: culprit.to_string(), remedy: remedy.to_string() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.culprit, self.remedy)
    }
}

impl std::error::Error for Problem {}
