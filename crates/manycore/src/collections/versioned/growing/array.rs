//! Buckets in arrays: finding a bucket needs only its array's address, and no other data is in its
//! cache lines.

use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use super::bucket::Bucket;
use crate::session::object::Embedded;
use crate::sync::hint;

/// An object that is a bucket.
pub(super) type EmbeddedBucket<K, V> = Embedded<Bucket<K, V>>;

/// Arrays begin at multiples of this size: two lines, which a bucket fills, and which some
/// processors fetch together.
const ALIGN: usize = 128;

/// Bytes before an array, for where its memory begins.
const BEFORE: usize = size_of::<*mut u8>();

/// The layout of memory that contains an aligned array of this length, and a word before it. The
/// allocator is not asked for the alignment: it would then write zeros to all of the memory, rather
/// than ask the operating system for zeroed pages.
fn layout<K, V>(length: usize) -> Layout {
    let bytes = length.checked_mul(size_of::<EmbeddedBucket<K, V>>());
    let bytes = bytes.and_then(|bytes| bytes.checked_add(BEFORE + ALIGN));
    let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, align_of::<u64>()).ok());
    layout.expect("as many buckets as there is memory for")
}

/// Allocates `length` buckets that are not there yet.
pub(super) fn allocate<K: Copy, V: Copy>(length: usize) -> *mut EmbeddedBucket<K, V> {
    const { assert!(align_of::<EmbeddedBucket<K, V>>() <= ALIGN) };
    let layout = layout::<K, V>(length);
    // SAFETY: the layout has more bytes than `ALIGN`, and so is not of size 0.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    hint::huge_pages(memory, layout.size());
    // SAFETY: `layout` has room for the array, for the alignment before it, and for the word before
    // that.
    unsafe {
        let array = memory.add(BEFORE + (memory.addr() + BEFORE).wrapping_neg() % ALIGN);
        array.cast::<*mut u8>().sub(1).write(memory);
        let places = array.cast::<EmbeddedBucket<K, V>>();
        // Zero bytes are such buckets; the model checker's are larger.
        #[cfg(loom)]
        (0..length)
            .for_each(|index| places.add(index).write(EmbeddedBucket::new(Bucket::absent())));
        places
    }
}

/// Gives an array back.
///
/// # Safety
///
/// The array comes from [`allocate`], with this length, and no thread can use it any more.
pub(super) unsafe fn free<K, V>(array: *mut EmbeddedBucket<K, V>, length: usize) {
    // SAFETY: `allocate` has made the memory with the layout of this length, and has written its
    // address into the word before; no thread has the array any more (contract of this function).
    // Buckets have nothing to drop except under the model checker.
    unsafe {
        #[cfg(loom)]
        core::ptr::slice_from_raw_parts_mut(array, length).drop_in_place();
        let memory = array.cast::<*mut u8>().sub(1).read();
        dealloc(memory, layout::<K, V>(length));
    }
}
