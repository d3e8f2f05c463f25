//! What cores do with a line at the same moment: published, simulated and measured on this host.

use serde::{Deserialize, Serialize};

/// The accesses to a line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Accesses {
    /// All cores read the same line, which no core writes.
    ReadOne,
    /// Each core reads a line of its own.
    ReadOwn,
    /// One core writes a line, all others read it. The reads are measured.
    ReadWritten,
    /// One core writes a line, all others read it. The writes are measured.
    WriteRead,
    /// All cores add to a word of the same line.
    WriteOne,
    /// Each core adds to a word of its own.
    WriteOwn,
    /// Two cores hand a word to each other by compare-and-swap. The value is half of the time there
    /// and back. The second core is at this distance class.
    HandOver { class: u8 },
}

impl Accesses {
    /// Whether this core adds to its word in a burst. If not, it reads it.
    pub fn writes(self, core: u32) -> bool {
        match self {
            Self::WriteOne | Self::WriteOwn => true,
            Self::ReadWritten | Self::WriteRead => core == 0,
            _ => false,
        }
    }

    /// The number of the word that this core accesses: the first is for all cores, and each core
    /// has one behind it.
    pub fn word(self, core: u32) -> usize {
        match self {
            Self::ReadOwn | Self::WriteOwn => core as usize + 1,
            _ => 0,
        }
    }

    /// Whether this core's access is measured.
    pub fn is_measured(self, core: u32) -> bool {
        match self {
            Self::ReadWritten => core > 0,
            Self::WriteRead => core == 0,
            _ => true,
        }
    }
}
