//! Copying and compacting stores that no program has open.

use std::path::Path;
use std::sync::Arc;

use crate::ReadOnly;
use crate::device::{Directory, Storage};
use crate::error::Result;
use crate::heap::{Heap, words};
use crate::store::{Replay, compaction};
use crate::volume::Recovered;

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// Objects.
    pub objects: u64,
    /// Bytes of their slots.
    pub object_bytes: u64,
    /// The size of the runs that have the objects: the memory that a program needs for them.
    pub heap_bytes: u64,
}

impl Sizes {
    fn of(heap: &Heap) -> Self {
        let mut sizes = Self { heap_bytes: heap.run_bytes(), ..Self::default() };
        for (_, words) in heap.live() {
            sizes.objects += 1;
            sizes.object_bytes += words::slot_bytes(words) as u64;
        }
        sizes
    }
}

/// Copies a store into a directory that has no store. If a crash has left work for recovery,
/// recovery runs in the copy. The original is only read, and other programs may read it at the same
/// time.
///
/// # Errors
///
/// The errors of [`Store::open`](crate::Store::open); also if there is no store, or if the other
/// directory has one.
pub fn backup(directory: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Sizes> {
    let from = Directory::open_to_read(directory)?;
    let heap = Heap::to_read()?;
    let recovered = Recovered::read_existing(&from, &mut Replay::new(&heap, &[]))?;
    // SAFETY: the heap is this function's own, and no domain was made for it.
    let mut objects = unsafe { heap.entries() };
    recovered.copy_to(&Directory::open(to)?, &mut objects)?;
    Ok(Sizes::of(&heap))
}

/// Moves the objects of a store close together, and drops those to which no structure leads any
/// more. Returns the sizes before and after. A crash leaves the store either unchanged or
/// compacted.
///
/// # Errors
///
/// As of [`Store::open`](crate::Store::open); if there is no store.
pub fn compact(directory: impl AsRef<Path>) -> Result<(Sizes, Sizes)> {
    compact_on(Arc::new(Directory::open_existing(directory)?))
}

/// As [`compact`], for a store on other devices than files of a directory.
///
/// # Errors
///
/// As of [`compact`].
pub fn compact_on(storage: Arc<dyn Storage>) -> Result<(Sizes, Sizes)> {
    let (heap, compacted) = (Heap::to_read()?, Heap::to_read()?);
    let recovered = Recovered::read_existing(&*storage, &mut Replay::new(&heap, &[]))?;
    let before = Sizes::of(&heap);
    let store = ReadOnly::of(heap, &recovered, storage);
    // SAFETY: no domain has the new heap, here and below.
    unsafe { compaction::copy(&store, &compacted) }?;
    // SAFETY: no domain has the new heap, and nothing changes it any more.
    recovered.replace(&mut unsafe { compacted.entries() })?;
    Ok((before, Sizes::of(&compacted)))
}
