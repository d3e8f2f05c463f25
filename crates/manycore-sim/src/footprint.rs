//! The lines that a part of a program reads and writes.

use std::collections::BTreeSet;

use crate::coherence::Kind;

/// The lines of simulated memory that a thread has read and written for a while. Two threads'
/// footprints determine exactly which lines they share, independent of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    reads: BTreeSet<u32>,
    writes: BTreeSet<u32>,
}

impl Footprint {
    pub(crate) fn note(&mut self, line: u32, kind: Kind) {
        match kind {
            Kind::Load => _ = self.reads.insert(line),
            Kind::Store | Kind::Rmw | Kind::CompareAndSwap => _ = self.writes.insert(line),
            Kind::Prefetch => {}
        }
    }

    /// The number of lines that it has read.
    pub fn lines_read(&self) -> usize {
        self.reads.len()
    }

    /// The number of lines that it has written.
    pub fn lines_written(&self) -> usize {
        self.writes.len()
    }

    /// The number of lines that one of the two has written, and that the other has read or written.
    /// If there are none, the two would not have affected each other on any machine with coherent
    /// caches.
    pub fn conflicts(&self, other: &Self) -> usize {
        let is_used = |by: &Self, line: &u32| by.reads.contains(line) || by.writes.contains(line);
        let written = self.writes.iter().filter(|line| is_used(other, line)).count();
        let read = other
            .writes
            .iter()
            .filter(|line| self.reads.contains(line) && !self.writes.contains(line));
        written + read.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_a_line_that_one_writes() {
        let of = |reads: &[u32], writes: &[u32]| Footprint {
            reads: reads.iter().copied().collect(),
            writes: writes.iter().copied().collect(),
        };
        let one = of(&[1, 2, 3], &[4, 5]);
        assert_eq!(one.conflicts(&of(&[1, 2, 3], &[])), 0);
        assert_eq!(one.conflicts(&of(&[4], &[5])), 2);
        assert_eq!(one.conflicts(&of(&[], &[1, 9])), 1);
        assert_eq!(of(&[5], &[5]).conflicts(&of(&[5], &[5])), 1);
    }
}
