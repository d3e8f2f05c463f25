//! A transaction's writes, as a record: the words that differ from the old ones.

use manycore::session::Link;

use super::domain::Handle;
use crate::heap::Heap;
use crate::heap::words::with_words;
use crate::journal::record::{ALLOCATED, FREED, HAS_OBJECTS, entry_header, record_header};

/// Up to `GAP` equal words between two changed ones are written as well, because an entry's header
/// has that length.
const GAP: usize = 2;

/// Writes the record of the session that is open; its stamp is open.
///
/// The words are a record's in the format of a frame, on a little-endian machine.
pub fn write(handle: &Handle<'_>, heap: &Heap, into: &mut Vec<u64>) {
    into.clear();
    into.extend(record_header(0, 0, 0));
    let mut flags = 0;
    for (link, bytes) in handle.made::<()>() {
        let (place, words) = (heap.place(link), bytes / 8 - 1);
        flags = HAS_OBJECTS;
        with_words!(words, |W| {
            // SAFETY: the session is open and has made the object, of the type that belongs to its
            // size.
            let made = unsafe { &*handle.made_data(Link::<W>::from_ptr(link.as_ptr())) };
            push_made(into, place, made);
        });
    }
    for write in handle.writes() {
        let (place, words) = (heap.place(write.link::<()>()), write.object_bytes() / 8 - 1);
        with_words!(words, |W| {
            // SAFETY: the session is open, and has written the object, of the type that belongs to
            // its size.
            let (after, before) = unsafe {
                let (after, before) = handle.written::<W>(write);
                (&*after, &*before)
            };
            push_written(into, place, after, before, write.is_end());
            flags |= if write.is_end() { HAS_OBJECTS } else { 0 };
        });
    }
    let length = u32::try_from(into.len() * 8).expect("a record is smaller than a ring");
    let [first, _] = record_header(length, flags, 0);
    into[0] = first;
}

/// A new object: what is not zero of it.
pub fn push_made(into: &mut Vec<u64>, place: u64, words: &[u64]) {
    let first = words.iter().position(|word| *word != 0).unwrap_or(0);
    let end = words.iter().rposition(|word| *word != 0).map_or(first, |last| last + 1);
    push_entry(into, place, words.len(), first, &words[first..end], ALLOCATED);
}

/// Appends an entry for an object that was changed or freed. If the transaction itself has created
/// the object, its old state counts, so nothing is written twice.
pub fn push_written(into: &mut Vec<u64>, place: u64, after: &[u64], before: &[u64], is_end: bool) {
    if is_end {
        return push_entry(into, place, after.len(), 0, &[], FREED);
    }
    let mut at = 0;
    while let Some(first) = (at..after.len()).find(|at| after[*at] != before[*at]) {
        let mut end = first + 1;
        while let Some(next) =
            (end..after.len().min(end + GAP + 1)).find(|at| after[*at] != before[*at])
        {
            end = next + 1;
        }
        push_entry(into, place, after.len(), first, &after[first..end], 0);
        at = end;
    }
}

fn push_entry(
    into: &mut Vec<u64>,
    place: u64,
    size: usize,
    first: usize,
    words: &[u64],
    flags: u16,
) {
    let narrow = |number: usize| u16::try_from(number).expect("an object has few words");
    into.extend(entry_header(place, narrow(size), narrow(first), narrow(words.len()), flags));
    into.extend_from_slice(words);
}
