//! A set-associative cache, which evicts the least recently used line of a set.

use crate::arena::LINE;
use crate::machine::Capacity;

/// A line in a cache: its number, and the version of the copy. A copy whose version is older than
/// the line's is stale, so no invalidation has to go through the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) line: u32,
    pub(crate) version: u32,
}

/// An entry: 0 if empty, else version and line number, plus 1 so that it is not 0.
type Entry = u64;

/// A cache. In each set, the most recently used line comes first.
#[derive(Debug)]
pub(crate) struct Cache {
    ways: usize,
    sets: u64,
    /// The number of sets less one, if it is a power of two: then no division is needed.
    mask: Option<u64>,
    entries: Vec<Entry>,
}

impl Cache {
    pub(crate) fn new(capacity: Capacity) -> Self {
        let ways = capacity.ways.max(1) as usize;
        let sets = (capacity.bytes / LINE as u64 / ways as u64).max(1);
        let mask = sets.is_power_of_two().then(|| sets - 1);
        Self { ways, sets, mask, entries: vec![0; ways * sets as usize] }
    }

    fn set(&mut self, line: u32) -> &mut [Entry] {
        let line = u64::from(line);
        let set = self.mask.map_or_else(|| line % self.sets, |mask| line & mask);
        let first = set as usize * self.ways;
        &mut self.entries[first..first + self.ways]
    }

    /// Whether the cache has this version of the line, which becomes the most recently used.
    #[inline]
    pub(crate) fn touch(&mut self, copy: Copy) -> bool {
        let wanted = entry(copy);
        let set = self.set(copy.line);
        if set[0] == wanted {
            return true;
        }
        let place = set.iter().position(|entry| *entry == wanted);
        if let Some(place) = place {
            set.copy_within(..place, 1);
            set[0] = wanted;
        }
        place.is_some()
    }

    /// Inserts a line, or replaces its older version, and makes it the most recently used one.
    #[inline]
    pub(crate) fn put(&mut self, copy: Copy) -> Put {
        let wanted = entry(copy);
        let set = self.set(copy.line);
        if set[0] == wanted {
            return Put::Present;
        }
        // Moves each entry back by one, from the front to the line's old position or to the end.
        let mut moved = wanted;
        for slot in set {
            let before = std::mem::replace(slot, moved);
            if before as u32 == wanted as u32 {
                return if before == wanted { Put::Present } else { Put::New(None) };
            }
            moved = before;
        }
        Put::New(line(moved).map(|line| Copy { line, version: (moved >> 32) as u32 }))
    }
}

/// The result of inserting a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// The cache had the line in this version.
    Present,
    /// The cache did not have it, and evicted this line for it.
    New(Option<Copy>),
}

fn entry(copy: Copy) -> Entry {
    u64::from(copy.version) << 32 | u64::from(copy.line + 1)
}

fn line(entry: Entry) -> Option<u32> {
    (entry as u32).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(line: u32) -> Copy {
        Copy { line, version: 7 }
    }

    /// Four sets of two lines.
    fn small() -> Cache {
        Cache::new(Capacity { bytes: 512, ways: 2 })
    }

    #[test]
    fn the_least_recently_used_line_is_evicted() {
        let mut cache = small();
        assert_eq!(cache.put(copy(1)), Put::New(None));
        assert_eq!(cache.put(copy(5)), Put::New(None));
        assert!(cache.touch(copy(1)));
        assert_eq!(cache.put(copy(9)), Put::New(Some(copy(5))));
        assert!(cache.touch(copy(1)) && cache.touch(copy(9)) && !cache.touch(copy(5)));
    }

    #[test]
    fn sets_do_not_compete() {
        let mut cache = small();
        assert!((0..8).all(|line| cache.put(copy(line)) == Put::New(None)));
        assert!((0..8).all(|line| cache.touch(copy(line))));
    }

    #[test]
    fn a_new_version_replaces_the_old_one() {
        let mut cache = small();
        cache.put(copy(1));
        assert_eq!(cache.put(copy(1)), Put::Present);
        let newer = Copy { line: 1, version: 8 };
        assert!(!cache.touch(newer));
        assert_eq!(cache.put(newer), Put::New(None));
        assert!(cache.touch(newer) && !cache.touch(copy(1)));
        assert_eq!(cache.put(copy(5)), Put::New(None), "only one way is taken");
    }

    #[test]
    fn any_number_of_sets() {
        let mut cache = Cache::new(Capacity { bytes: 3 * 64, ways: 1 });
        assert_eq!(cache.put(copy(0)), Put::New(None));
        assert_eq!(cache.put(copy(3)), Put::New(Some(copy(0))));
        assert_eq!(cache.put(copy(4)), Put::New(None));
    }
}
