//! Lines that a core has prefetched.

use crate::machine::Cycles;

/// Lines on their way to a core: its hardware threads share the buffers for them, as they share its
/// caches.
#[derive(Default)]
pub(crate) struct Ahead {
    /// The lines, each with the time of its arrival.
    lines: Vec<(u32, Cycles)>,
}

impl Ahead {
    /// A line that is requested now will arrive at `done`; returns the time until which the
    /// requesting thread has to wait for a free buffer.
    pub(crate) fn ask(&mut self, line: u32, now: Cycles, done: Cycles, places: u32) -> Cycles {
        self.lines.retain(|(other, done)| *other != line && *done > now);
        self.lines.push((line, done));
        let Some(late) = self.lines.len().checked_sub(places as usize + 1) else { return now };
        let mut times: Vec<_> = self.lines.iter().map(|(_, done)| *done).collect();
        *times.select_nth_unstable(late).1
    }

    /// The time at which a line will have arrived, whichever of the core's threads has requested
    /// it; `now` if none has.
    #[inline]
    pub(crate) fn arrival(&mut self, line: u32, now: Cycles) -> Cycles {
        let Some(place) = self.lines.iter().position(|(other, _)| *other == line) else {
            return now;
        };
        let (_, done) = self.lines[place];
        if done <= now {
            self.lines.swap_remove(place);
        }
        done.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_free_buffer_waits_for_one() {
        let mut ahead = Ahead::default();
        assert_eq!(ahead.ask(1, 0, 100, 2), 0);
        assert_eq!(ahead.ask(2, 0, 50, 2), 0);
        assert_eq!(ahead.ask(3, 0, 70, 2), 50);
        // The sibling has not waited, so the buffer of the first line is not free for it.
        assert_eq!(ahead.ask(4, 10, 80, 2), 70);
        assert_eq!(ahead.ask(5, 90, 190, 2), 90);
        assert_eq!(
            (ahead.arrival(1, 95), ahead.arrival(5, 95), ahead.arrival(5, 95)),
            (100, 190, 190)
        );
        assert_eq!((ahead.arrival(5, 200), ahead.arrival(9, 200)), (200, 200));
    }
}
