//! A bucket: two words of state, and six or seven entries.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use bytemuck::NoUninit;

use super::super::table::Buckets;
use super::super::word::{MOVED, free, lock, matching, occupied, slots, tag_bits, tag_of, with};
use super::words::{load, store, words};
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use crate::sync::{clock, hint, mutation, order, tuning};

/// The bucket has overflow lines.
const MORE: u64 = 1 << 58;

/// A cache line.
#[cfg_attr(not(loom), repr(C, align(64)))]
#[cfg_attr(loom, repr(C))]
struct Line([AtomicU64; WORDS]);

/// The number of words in it.
const WORDS: usize = 8;
const _: () = assert!(size_of::<Line>() == WORDS * size_of::<AtomicU64>(), "nothing but words");

impl Default for Line {
    fn default() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// An overflow line for entries that do not fit into a bucket. It has the same layout, but its
/// first word has tags only.
struct Overflow {
    lines: Box<[Line]>,
    next: AtomicPtr<Overflow>,
}

/// The words of a bucket or of an overflow line.
///
/// Word 0 has a tag for each slot, and the flags; only the thread that has locked the bucket writes
/// it. Word 1 is the version. It grows by two before a free slot is written, because that slot may
/// have had an entry. It is odd while a value is replaced. Keys and values follow, slot by slot.
///
/// Invariant: a slot with a tag has an entry, whose bytes change only while the version is odd, or
/// by one store.
struct Words<'t, K, V> {
    words: &'t [AtomicU64],
    _of: PhantomData<(K, V)>,
}

impl<K, V> Clone for Words<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Words<'_, K, V> {}

impl<'t, K: NoUninit, V: NoUninit> Words<'t, K, V> {
    const ENTRY: usize = words::<K>() + words::<V>();
    /// The number of lines that six entries take: 64 bytes for entries of one word, 128 of two.
    const LINES: usize = (2 + 6 * Self::ENTRY).div_ceil(WORDS);
    /// The number of entries for which a bucket has room: seven if that takes no more lines than
    /// six. Two are enough for the model checker.
    const SLOTS: usize = if cfg!(loom) {
        2
    } else if 2 + 7 * Self::ENTRY <= WORDS * Self::LINES {
        7
    } else {
        6
    };
    const TAGS: u64 = tag_bits(Self::SLOTS);

    /// The words of these lines, of which there are [`LINES`](Self::LINES).
    #[inline]
    fn of(lines: &'t [Line]) -> Self {
        assert!(lines.len() == Self::LINES);
        let first = lines.as_ptr().cast();
        // SAFETY: adjacent lines are adjacent words, `WORDS` in each.
        let words = unsafe { core::slice::from_raw_parts(first, WORDS * lines.len()) };
        Self { words, _of: PhantomData }
    }

    #[inline]
    fn key(self, slot: usize) -> &'t [AtomicU64] {
        let at = 2 + slot * Self::ENTRY;
        &self.words[at..at + words::<K>()]
    }

    #[inline]
    fn value(self, slot: usize) -> &'t [AtomicU64] {
        let at = 2 + slot * Self::ENTRY + words::<K>();
        &self.words[at..at + words::<V>()]
    }

    #[inline]
    fn load(self, slot: usize) -> (MaybeUninit<K>, MaybeUninit<V>) {
        (load(self.key(slot)), load(self.value(slot)))
    }

    /// As `load`, for a slot with a tag. The calling thread has locked the bucket.
    #[inline]
    fn entry(self, slot: usize) -> (K, V) {
        let (key, value) = self.load(slot);
        // SAFETY: a slot with a tag has an entry, and only the calling thread, which has the lock,
        // writes.
        unsafe { (key.assume_init(), value.assume_init()) }
    }

    #[inline]
    fn store(self, slot: usize, entry: &(K, V)) {
        // Relaxed, both: the store of the tag publishes them.
        store(self.key(slot), &entry.0, Ordering::Relaxed);
        store(self.value(slot), &entry.1, Ordering::Relaxed);
    }
}

/// The result of a reader's search.
pub(super) enum Lookup<T> {
    Found(T),
    Absent,
    /// The entries are in the next table.
    Moved,
}

/// A bucket of a table.
pub(super) struct Bucket<'t, K, V> {
    words: Words<'t, K, V>,
    more: &'t AtomicPtr<Overflow>,
}

impl<K, V> Clone for Bucket<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Bucket<'_, K, V> {}

impl<'t, K: NoUninit, V: NoUninit> Bucket<'t, K, V> {
    #[inline]
    fn word(self) -> &'t AtomicU64 {
        &self.words.words[0]
    }

    #[inline]
    fn version(self) -> &'t AtomicU64 {
        &self.words.words[1]
    }

    /// The value of the key with this tag for which `is` returns true.
    #[inline]
    pub fn find(self, tag: u8, mut is: impl FnMut(&K) -> bool) -> Lookup<V> {
        self.undisturbed(|version| {
            let with_tag = |tags| matching(tags, Words::<K, V>::TAGS, tag);
            self.visit(version, with_tag, |key, value| is(&key).then_some(value))
        })
    }

    /// Replaces the contents of `to` by all entries; returns false if they are in the next table.
    pub fn copy_to(self, to: &mut Vec<(K, V)>) -> bool {
        let found = self.undisturbed(|version| {
            to.clear();
            let all = |tags| occupied(tags, Words::<K, V>::TAGS);
            self.visit(version, all, |key, value| {
                to.push((key, value));
                None::<()>
            })
        });
        !matches!(found, Lookup::Moved)
    }

    /// Calls `show` with the entries of the slots that `which` selects by their tags, until it
    /// returns something. Returns `None` if a writer has changed an entry since the version was
    /// read.
    #[inline]
    fn visit<R>(
        self,
        version: u64,
        which: impl Fn(u64) -> u64,
        mut show: impl FnMut(K, V) -> Option<R>,
    ) -> Option<Lookup<R>> {
        // Acquire: partner of the Releases in `Locked::drop` and `moved`.
        let word = self.word().load(order!(Acquire, "plain-read"));
        if word & MOVED != 0 {
            return Some(Lookup::Moved);
        }
        let (mut line, mut tags) = (self.words, word);
        let mut more = (word & MORE != 0).then_some(self.more);
        loop {
            for slot in slots(which(tags)) {
                let (key, value) = line.load(slot);
                if !self.is_still(version) {
                    return None;
                }
                // SAFETY: the slot had a tag, and no thread has written to it while it was read,
                // since the version is the same: key and value are consistent.
                let (key, value) = unsafe { (key.assume_init(), value.assume_init()) };
                if let Some(result) = show(key, value) {
                    return Some(Lookup::Found(result));
                }
            }
            let Some(next) = more.and_then(overflow) else { return Some(Lookup::Absent) };
            (line, more) = (Words::of(&next.lines), Some(&next.next));
            // Acquire: partner of the Releases in `Locked::put_in` and `Locked::take_out`.
            tags = line.words[0].load(order!(Acquire, "plain-further-read"));
        }
    }

    /// Whether slots that were read before have not changed since the version was read.
    #[inline]
    fn is_still(self, version: u64) -> bool {
        // Acquire: partner of the writers' fences: a reader of a byte that a writer wrote sees the
        // version that the writer wrote before.
        if !mutation!("plain-read-fence") {
            fence(Ordering::Acquire);
        }
        self.version().load(Ordering::Relaxed) == version // Relaxed: the fence orders it
    }

    /// Repeats a read, with the version, until no writer has disturbed it.
    #[inline]
    fn undisturbed<R>(self, mut read: impl FnMut(u64) -> Option<R>) -> R {
        let mut since = None;
        loop {
            // Acquire: partner of the Releases in `Locked::overwrite` and `Locked::replace`: a
            // thread that sees the new contents of a slot also sees that the old tag was removed.
            let version = self.version().load(order!(Acquire, "plain-version"));
            let is_whole = version & 1 == 0;
            if let Some(result) = is_whole.then(|| read(version)).flatten() {
                return result;
            }
            // Writing a value takes some nanoseconds. If it takes longer, the writer has lost its
            // CPU.
            let since = *since.get_or_insert_with(clock::now);
            if clock::has_passed(since, tuning::spin_limit()) {
                hint::yield_now();
            }
            hint::spin_loop();
        }
    }

    /// Locks the bucket against other writers; `None` if the entries are in the next table.
    #[inline]
    pub fn lock(self) -> Option<Locked<'t, K, V>> {
        lock(self.word()).map(|word| Locked { bucket: self, word })
    }
}

/// The next overflow line, if there is one.
#[inline]
fn overflow(more: &AtomicPtr<Overflow>) -> Option<&Overflow> {
    // Acquire: partner of the Release in `Locked::put_in`.
    let next = more.load(order!(Acquire, "plain-more"));
    // SAFETY: null, or a line that `put_in` has made, which stays as long as the table.
    unsafe { next.as_ref() }
}

/// An entry and the slot that holds it.
pub(super) struct SlotRef<'t, K, V> {
    line: Words<'t, K, V>,
    slot: usize,
    is_overflow: bool,
    /// The entry's value.
    pub value: V,
}

/// A bucket that the calling thread has locked. Dropping this unlocks it.
pub(super) struct Locked<'t, K: NoUninit, V: NoUninit> {
    bucket: Bucket<'t, K, V>,
    /// The word that unlocking will store.
    word: u64,
}

impl<'t, K: NoUninit, V: NoUninit> Locked<'t, K, V> {
    /// Calls `f` with the bucket and its overflow lines, and with their tags, until it returns
    /// something.
    #[inline]
    fn lines<R>(&self, mut f: impl FnMut(Words<'t, K, V>, u64, bool) -> Option<R>) -> Option<R> {
        if let Some(result) = f(self.bucket.words, self.word, false) {
            return Some(result);
        }
        let mut more = (self.word & MORE != 0).then_some(self.bucket.more);
        while let Some(next) = more.and_then(overflow) {
            let line = Words::of(&next.lines);
            // Relaxed: this thread is the writer.
            if let Some(result) = f(line, line.words[0].load(Ordering::Relaxed), true) {
                return Some(result);
            }
            more = Some(&next.next);
        }
        None
    }

    /// The slot of the key with this tag for which `is` returns true.
    #[inline]
    pub fn find(&self, tag: u8, mut is: impl FnMut(&K) -> bool) -> Option<SlotRef<'t, K, V>> {
        self.lines(|line, tags, is_overflow| {
            slots(matching(tags, Words::<K, V>::TAGS, tag)).find_map(|slot| {
                let (key, value) = line.entry(slot);
                is(&key).then_some(SlotRef { line, slot, is_overflow, value })
            })
        })
    }

    /// Writes to a slot without a tag. A reader that has found the old entry there will notice.
    #[inline]
    fn overwrite(&self, line: Words<'t, K, V>, slot: usize, entry: &(K, V)) {
        // Relaxed: this thread is the writer.
        let version = self.bucket.version().load(Ordering::Relaxed);
        // Release: partner of the Acquire in `undisturbed`, which then sees that the slot's tag is
        // gone.
        self.bucket.version().store(version + 2, order!(Release, "plain-overwrite"));
        // Release: partner of the fence in `is_still`, after which a reader sees the new version.
        if !mutation!("plain-overwrite-fence") {
            fence(Ordering::Release);
        }
        line.store(slot, entry);
    }

    /// Inserts an entry whose key is not in the bucket. Returns whether this added an overflow
    /// line.
    #[inline]
    pub fn put_in(&mut self, tag: u8, entry: &(K, V)) -> bool {
        if let Some(slot) = free(self.word, Words::<K, V>::TAGS) {
            self.overwrite(self.bucket.words, slot, entry);
            self.word = with(self.word, slot, tag); // which others see when this is dropped
            return false;
        }
        self.put_overflow(tag, entry)
    }

    #[cold]
    fn put_overflow(&mut self, tag: u8, entry: &(K, V)) -> bool {
        let mut more = self.bucket.more;
        while let Some(next) = overflow(more) {
            let line = Words::of(&next.lines);
            let tags = line.words[0].load(Ordering::Relaxed); // Relaxed: this thread is the writer
            if let Some(slot) = free(tags, Words::<K, V>::TAGS) {
                self.overwrite(line, slot, entry);
                // Release: partner of the Acquire in `visit`.
                line.words[0].store(with(tags, slot, tag), order!(Release, "plain-put-further"));
                return false;
            }
            more = &next.next;
        }
        let lines: Box<[Line]> = (0..Words::<K, V>::LINES).map(|_| Line::default()).collect();
        let line = Words::<K, V>::of(&lines);
        line.store(0, entry);
        // Relaxed: the store below publishes it.
        line.words[0].store(with(0, 0, tag), Ordering::Relaxed);
        let overflow =
            Box::into_raw(Box::new(Overflow { lines, next: AtomicPtr::new(null_mut()) }));
        // Release: partner of the Acquire in `overflow`.
        more.store(overflow, order!(Release, "plain-put-line"));
        self.word |= MORE;
        true
    }

    /// Replaces the value in a slot.
    #[inline]
    pub fn replace(&self, slot_ref: &SlotRef<'t, K, V>, value: &V) {
        let to = slot_ref.line.value(slot_ref.slot);
        if to.len() == 1 {
            // Release: partner of the fence in `is_still`, for the caller's earlier writes.
            store(to, value, order!(Release, "plain-replace-word"));
            return;
        }
        // Relaxed: this thread is the writer.
        let version = self.bucket.version().load(Ordering::Relaxed);
        self.bucket.version().store(version + 1, Ordering::Relaxed); // Relaxed: the fence orders it
        // Release: partner of the fence in `is_still`, after which a reader sees that the version
        // is odd.
        if !mutation!("plain-replace-fence") {
            fence(Ordering::Release);
        }
        store(to, value, Ordering::Relaxed); // Relaxed: before the Release below
        // Release: partner of the Acquire in `undisturbed`: the whole value.
        self.bucket.version().store(version + 2, order!(Release, "plain-replace"));
    }

    /// Removes an entry, which other threads may still have found.
    #[inline]
    pub fn take_out(&mut self, slot_ref: &SlotRef<'t, K, V>) {
        if !slot_ref.is_overflow {
            self.word = with(self.word, slot_ref.slot, 0);
            return;
        }
        // Relaxed: this thread is the writer.
        let tags = slot_ref.line.words[0].load(Ordering::Relaxed);
        // Release: partner of the Acquire in `visit`.
        slot_ref.line.words[0]
            .store(with(tags, slot_ref.slot, 0), order!(Release, "plain-take-further"));
    }
}

impl<K: NoUninit, V: NoUninit> Drop for Locked<'_, K, V> {
    #[inline]
    fn drop(&mut self) {
        // Release: partner of the Acquires in `lock` and `visit`.
        self.bucket.word().store(self.word, order!(Release, "plain-unlock"));
    }
}

/// The buckets of a table.
pub(super) struct Inline<K, V> {
    lines: Box<[Line]>,
    /// The overflow lines of each bucket.
    more: Box<[AtomicPtr<Overflow>]>,
    _of: PhantomData<fn() -> (K, V)>,
}

impl<K: NoUninit, V: NoUninit> Inline<K, V> {
    /// The bucket with this number.
    #[inline]
    pub fn bucket(&self, number: usize) -> Bucket<'_, K, V> {
        let lines = Words::<K, V>::LINES;
        let words = Words::of(&self.lines[number * lines..(number + 1) * lines]);
        Bucket { words, more: &self.more[number] }
    }
}

impl<K: NoUninit, V: NoUninit> Buckets for Inline<K, V> {
    type Entry = (K, V);
    type Locked<'t> = Locked<'t, K, V>;

    fn new(count: usize) -> Self {
        Self {
            lines: (0..count * Words::<K, V>::LINES).map(|_| Line::default()).collect(),
            more: (0..count).map(|_| AtomicPtr::new(null_mut())).collect(),
            _of: PhantomData,
        }
    }

    #[inline]
    fn count(&self) -> usize {
        self.more.len()
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.lines) + size_of_val(&*self.more)
    }

    #[inline]
    fn lock(&self, number: usize) -> Option<Locked<'_, K, V>> {
        self.bucket(number).lock()
    }

    fn for_each(locked: &Locked<'_, K, V>, mut f: impl FnMut(u8, (K, V))) {
        locked.lines(|line, tags, _| {
            for slot in slots(occupied(tags, Words::<K, V>::TAGS)) {
                f(tag_of(tags, slot), line.entry(slot));
            }
            None::<()>
        });
    }

    fn moved(locked: Locked<'_, K, V>) {
        // Release: partner of the Acquire in `visit`: for the entries in the next table's buckets.
        locked.bucket.word().store(MOVED, order!(Release, "plain-moved"));
        core::mem::forget(locked);
    }

    fn fill(&self, number: usize, tag: u8, entry: (K, V)) -> bool {
        let bucket = self.bucket(number);
        let word = bucket.word().load(Ordering::Relaxed); // Relaxed: no other thread has it
        let mut filled = Locked { bucket, word };
        filled.put_in(tag, &entry)
    }

    fn forget(&self, number: usize) {
        let bucket = self.bucket(number);
        bucket.word().store(0, Ordering::Relaxed); // Relaxed, here and below: no other thread has it
        let mut more = bucket.more.swap(null_mut(), Ordering::Relaxed);
        while !more.is_null() {
            // SAFETY: the line comes from a box, see `put_in`, and no other thread has it.
            let overflow = unsafe { Box::from_raw(more) };
            more = overflow.next.load(Ordering::Relaxed);
        }
    }
}
