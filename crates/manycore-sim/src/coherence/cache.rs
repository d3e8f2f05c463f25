//! A set-associative cache: which lines it has, the least recently used of each set first to go.

use crate::arena::LINE;
use crate::machine::Capacity;

/// A line as a cache knows it: its number, and of which version the copy is. A copy of an older version than the
/// line's is stale, so that nobody has to go through the caches to invalidate it.
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
        match set.iter().position(|entry| *entry == wanted) {
            Some(way) => {
                to_front(set, way, wanted);
                true
            }
            None => false,
        }
    }

    /// Puts a line in, in place of an older version if there is one; returns what has to go for it.
    pub(crate) fn insert(&mut self, copy: Copy) -> Option<Copy> {
        let set = self.set(copy.line);
        let older = set.iter().position(|entry| line(*entry) == Some(copy.line));
        let way = older.unwrap_or(set.len() - 1);
        let gone = if older.is_some() { 0 } else { set[way] };
        to_front(set, way, entry(copy));
        line(gone).map(|line| Copy { line, version: (gone >> 32) as u32 })
    }
}

/// Puts an entry first, and those before the place behind it.
fn to_front(set: &mut [Entry], place: usize, entry: Entry) {
    let mut moved = entry;
    for slot in &mut set[..=place] {
        std::mem::swap(slot, &mut moved);
    }
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
    fn the_least_recently_used_line_goes() {
        let mut cache = small();
        assert_eq!(cache.insert(copy(1)), None);
        assert_eq!(cache.insert(copy(5)), None);
        assert!(cache.touch(copy(1)));
        assert_eq!(cache.insert(copy(9)), Some(copy(5)));
        assert!(cache.touch(copy(1)) && cache.touch(copy(9)) && !cache.touch(copy(5)));
    }

    #[test]
    fn sets_do_not_compete() {
        let mut cache = small();
        assert!((0..8).all(|line| cache.insert(copy(line)).is_none()));
        assert!((0..8).all(|line| cache.touch(copy(line))));
    }

    #[test]
    fn a_new_version_replaces_the_old_one() {
        let mut cache = small();
        cache.insert(copy(1));
        let newer = Copy { line: 1, version: 8 };
        assert!(!cache.touch(newer));
        assert_eq!(cache.insert(newer), None);
        assert!(cache.touch(newer) && !cache.touch(copy(1)));
        assert_eq!(cache.insert(copy(5)), None, "only one way is taken");
    }

    #[test]
    fn any_number_of_sets() {
        let mut cache = Cache::new(Capacity { bytes: 3 * 64, ways: 1 });
        assert_eq!(cache.insert(copy(0)), None);
        assert_eq!(cache.insert(copy(3)), Some(copy(0)));
        assert_eq!(cache.insert(copy(4)), None);
    }
}
