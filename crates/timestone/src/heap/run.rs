//! A run: slots of one size, and which of them are live or given out.

/// Bytes of a run.
pub const RUN_BYTES: usize = 64 << 10;
/// Where its first slot is.
pub const FIRST: usize = 64;

/// Slots of the smallest size.
const SLOTS_MAX: usize = (RUN_BYTES - FIRST) / 32;
const BITMAP: usize = SLOTS_MAX.div_ceil(64);

/// The slot of an offset: its run, and its index in the run.
pub fn position(place: u64, slot_bytes: usize) -> Option<(usize, usize)> {
    let place = usize::try_from(place).ok()?;
    let (index, offset) = (place / RUN_BYTES, place % RUN_BYTES);
    let from_first = offset.checked_sub(FIRST)?;
    let fits = from_first.is_multiple_of(slot_bytes) && offset + slot_bytes <= RUN_BYTES;
    fits.then_some((index, from_first / slot_bytes))
}

/// The place of a slot.
pub fn place(index: usize, slot: usize, slot_bytes: usize) -> u64 {
    (index * RUN_BYTES + FIRST + slot * slot_bytes) as u64
}

/// What the heap knows of a run.
pub struct Run {
    slot_bytes: usize,
    slots: usize,
    live: Bits,
    given: Bits,
    /// No slot before this one can be given.
    next: usize,
}

impl Run {
    /// Creates a run with slots of this size, all of them free.
    pub fn new(slot_bytes: usize) -> Self {
        let slots = (RUN_BYTES - FIRST) / slot_bytes;
        Self { slot_bytes, slots, live: Bits::new(), given: Bits::new(), next: 0 }
    }

    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    pub fn is_live(&self, slot: usize) -> bool {
        self.live.get(slot)
    }

    pub fn set_live(&mut self, slot: usize, is: bool) {
        self.live.set(slot, is);
    }

    pub fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.slots).filter(|slot| self.live.get(*slot))
    }

    pub fn set_given(&mut self, slot: usize, is: bool) {
        self.given.set(slot, is);
        if !is {
            self.next = self.next.min(slot);
        }
    }

    /// Marks a slot as given out.
    pub fn give(&mut self, slot: usize) {
        self.given.set(slot, true);
    }

    /// A free slot.
    pub fn next_to_give(&mut self) -> Option<usize> {
        while self.next < self.slots && self.given.get(self.next) {
            self.next += 1;
        }
        (self.next < self.slots).then_some(self.next)
    }

    /// Whether each slot is taken, as far as the search for a free one has come.
    pub fn is_given_out(&self) -> bool {
        (self.next..self.slots).all(|slot| self.given.get(slot))
    }
}

struct Bits(Box<[u64; BITMAP]>);

impl Bits {
    fn new() -> Self {
        Self(Box::new([0; BITMAP]))
    }

    fn get(&self, bit: usize) -> bool {
        self.0[bit / 64] >> (bit % 64) & 1 != 0
    }

    fn set(&mut self, bit: usize, is: bool) {
        let (word, mask) = (&mut self.0[bit / 64], 1 << (bit % 64));
        *word = if is { *word | mask } else { *word & !mask };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_leads_to_its_slot_and_no_other_place_does() {
        for slot_bytes in [32, 160, 1024, 32 << 10] {
            let slots = (RUN_BYTES - FIRST) / slot_bytes;
            for slot in 0..slots {
                let place = place(3, slot, slot_bytes);
                assert_eq!(position(place, slot_bytes), Some((3, slot)));
                assert_eq!(position(place + 8, slot_bytes), None);
            }
            let behind = place(3, slots, slot_bytes);
            assert_eq!(position(behind, slot_bytes), None);
        }
    }

    #[test]
    fn each_slot_is_given_once() {
        let mut run = Run::new(480);
        run.give(2);
        let mut given = Vec::new();
        while let Some(slot) = run.next_to_give() {
            run.give(slot);
            given.push(slot);
        }
        assert_eq!(given, (0..136).filter(|slot| *slot != 2).collect::<Vec<_>>());
        assert!(run.is_given_out());
        run.set_given(5, false);
        assert_eq!((run.is_given_out(), run.next_to_give()), (false, Some(5)));
    }
}
