//! A number with its range and its provenance.

use std::fmt;
use std::str::FromStr;

use super::Field;
use super::field::{CHOICES, Unit};

/// One number of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The field that it sets.
    pub field: &'static Field,
    /// The class of distance, for fields that have a value for each.
    pub class: Option<usize>,
    /// The value that is used by default.
    pub value: f64,
    /// The lowest value that the true one may have.
    pub low: f64,
    /// The highest value that the true one may have.
    pub high: f64,
    /// The kind of its origin.
    pub provenance: Provenance,
    /// The key of its source.
    pub from: Option<String>,
    /// The program that measured it, the constants from which it was derived, or the reason why it
    /// is assumed.
    pub note: Option<String>,
}

/// The origin of a piece of information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The kind of origin.
    pub provenance: Provenance,
    /// The key of its source.
    pub from: Option<String>,
    /// Further remarks.
    pub note: Option<String>,
}

/// The kinds of origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provenance {
    /// Measured by this project on such a machine; the note names the program.
    Measured,
    /// Read in a source.
    Cited,
    /// Computed from information in a source; the note says how.
    Derived,
    /// Chosen so that simulated results agree with measured ones; the note says which.
    Fitted,
    /// Attributed to a source that was not at hand.
    Unverified,
    /// An informed guess, with a range wide enough for that.
    Assumed,
}

impl Provenance {
    /// All kinds, the most certain first.
    pub const ALL: [Self; 6] =
        [Self::Measured, Self::Cited, Self::Derived, Self::Fitted, Self::Unverified, Self::Assumed];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Cited => "cited",
            Self::Derived => "derived",
            Self::Fitted => "fitted",
            Self::Unverified => "unverified",
            Self::Assumed => "assumed",
        }
    }

    /// Whether a constant of this provenance has to name a source.
    pub(super) fn needs_source(self) -> bool {
        matches!(self, Self::Cited | Self::Unverified)
    }

    /// Whether a constant of this provenance has to have a note.
    pub(super) fn needs_note(self) -> bool {
        matches!(self, Self::Measured | Self::Derived | Self::Fitted | Self::Assumed)
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Provenance {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|provenance| provenance.name() == text).ok_or(())
    }
}

impl Constant {
    /// The path of its field, with the class of distance if there is a value for each.
    pub fn name(&self) -> String {
        match self.class {
            Some(class) => format!("{}[{class}]", self.field.path),
            None => self.field.path.to_owned(),
        }
    }

    /// Formats one of its numbers as in a file.
    pub fn show(&self, number: f64) -> String {
        match self.field.unit {
            Unit::Choice => CHOICES[(number as usize).min(1)].to_owned(),
            _ => number.to_string(),
        }
    }
}
