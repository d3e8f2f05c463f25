//! The reads of a polling loop. They show whether its next iteration would be the same as the last
//! one.

use crate::coherence::Lines;
use crate::machine::Cycles;

/// The most lines that a polling loop may read.
pub(super) const LINES_MAX: usize = 8;

/// What a thread has read since it last called `spin_loop`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reads {
    lines: [Seen; LINES_MAX],
    len: u8,
    /// Whether the iteration cannot be skipped.
    pub(crate) unforeseen: bool,
    /// The time at which the loop gives up.
    pub(crate) limit: Option<Cycles>,
}

/// A line, and how often it had been written when it was read.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    line: u32,
    writes: u32,
}

impl Reads {
    pub(crate) fn add(&mut self, line: u32, writes: u32) {
        if self.unforeseen {
            return;
        }
        let len = usize::from(self.len);
        if let Some(seen) = self.lines[..len].iter_mut().find(|seen| seen.line == line) {
            // The first read counts: the loop may have missed a write after it.
            _ = seen;
        } else if len < LINES_MAX {
            self.lines[len] = Seen { line, writes };
            self.len += 1;
        } else {
            self.unforeseen = true;
        }
    }

    /// Forgets the reads. The contents of `lines` are then meaningless.
    #[inline]
    pub(super) fn clear(&mut self) {
        (self.len, self.unforeseen, self.limit) = (0, false, None);
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = u32> + '_ {
        self.lines[..usize::from(self.len)].iter().map(|seen| seen.line)
    }

    /// Whether the next iteration would be the same as the last one.
    pub(super) fn are_current(&self, lines: &mut Lines) -> bool {
        let mut seen = self.lines[..usize::from(self.len)].iter();
        self.len > 0 && !self.unforeseen && seen.all(|s| lines.get(s.line).writes == s.writes)
    }
}
