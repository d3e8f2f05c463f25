//! Filling a heap from files.

use std::sync::atomic::Ordering;

use super::run::{self, Run};
use super::{Heap, words};
use crate::journal::record::Entry;
use crate::volume::{Source, Target};

/// A heap that is being filled from files, before it is used.
pub struct Filling<'a>(pub &'a Heap);

impl Target for Filling<'_> {
    fn apply(&mut self, source: Source<'_>, entry: Entry<'_>) -> Result<(), String> {
        let heap = self.0;
        let (place, words) = (entry.place, usize::from(entry.size));
        let slot_bytes = words::slot_bytes(words);
        if place >= heap.bytes as u64 {
            return Err(format!(
                "an object is at {place}, and {} bytes of addresses are reserved: if the store is \
                 sound, it wants a larger Options::heap_bytes",
                heap.bytes
            ));
        }
        let known = words::is_size(words);
        let position = known.then(|| run::position(place, slot_bytes)).flatten();
        let (index, slot) =
            position.ok_or(format!("no object of {words} words can be at {place}"))?;
        let (is_new, is_end, is_sharp) = (entry.is_new(), entry.is_end(), source.is_sharp());
        let mut state = heap.state.lock();
        if state.runs.len() <= index {
            state.runs.resize_with(index + 1, || None);
            heap.runs.store(index + 1, Ordering::Relaxed); // Relaxed: by one thread
        }
        if state.runs[index].is_none() && (is_new || !is_sharp) {
            state.runs[index] = Some(Run::new(slot_bytes));
            heap.open_run(index, slot_bytes);
        }
        let run = state.runs[index].as_mut().filter(|run| run.slot_bytes() == slot_bytes);
        let run = run.ok_or(format!("objects at {place} do not have {words} words"))?;
        if is_sharp && is_new == run.is_live(slot) {
            let state = if is_new { "there already" } else { "not there" };
            return Err(format!("the object at {place} is {state}"));
        }
        // SAFETY: the slot is in a run of this heap, and no domain uses that yet; an entry has not
        // more words than its object, which `record` has checked.
        unsafe {
            let target = heap.words(place, words);
            if is_new {
                target.write_bytes(0, words);
            }
            let bytes = target.add(entry.first.into()).cast::<u8>();
            bytes.copy_from_nonoverlapping(entry.words.as_ptr(), entry.words.len());
        }
        if is_new || is_end {
            run.set_live(slot, !is_end);
            run.set_given(slot, !is_end);
        }
        Ok(())
    }
}
