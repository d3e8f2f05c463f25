//! Values that are counted, and that may panic.

use std::cell::Cell;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use manycore::collections::space::ArtKey;

/// How many there are, of those that were made under the same [`live`].
type Count = Arc<AtomicI64>;

thread_local! {
    static FUSE: Cell<Option<u64>> = const { Cell::new(None) };
}

static COUNT: Mutex<Option<Count>> = Mutex::new(None);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The number of additional values after `f`: the lost ones. If it is negative: those that were
/// dropped twice.
pub fn live(f: impl FnOnce()) -> i64 {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let count = Count::default();
    *COUNT.lock().unwrap() = Some(Arc::clone(&count));
    f();
    count.load(SeqCst)
}

/// The calls of `f` that its values make of `Ord`, `Hash`, `Eq`, `Clone`, `ArtKey`: the one with
/// this number panics on this thread.
pub fn with_fuse<R>(calls: u64, f: impl FnOnce() -> R) -> std::thread::Result<R> {
    FUSE.set(Some(calls));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    FUSE.set(None);
    result
}

fn burn() {
    if let Some(left) = FUSE.get() {
        FUSE.set(left.checked_sub(1));
        assert!(left > 0, "the fuse");
    }
}

/// A value on the heap, so that one that is used after its end shows.
#[derive(Debug)]
pub struct Live {
    pub number: Box<u64>,
    count: Count,
    panics: bool,
}

impl Live {
    pub fn new(number: u64) -> Self {
        let count = COUNT.lock().unwrap().clone().expect("within `live`");
        count.fetch_add(1, SeqCst);
        Self { number: Box::new(number), count, panics: false }
    }

    /// One whose end panics, unless the thread does so already.
    pub fn panicking(number: u64) -> Self {
        let mut live = Self::new(number);
        live.panics = true;
        live
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.count.fetch_sub(1, SeqCst);
        assert!(!self.panics || std::thread::panicking(), "the end of {}", self.number);
    }
}

impl Clone for Live {
    fn clone(&self) -> Self {
        burn();
        self.count.fetch_add(1, SeqCst);
        Self { number: self.number.clone(), count: Arc::clone(&self.count), panics: self.panics }
    }
}

impl PartialEq for Live {
    fn eq(&self, other: &Self) -> bool {
        burn();
        self.number == other.number
    }
}

impl Eq for Live {}

impl PartialOrd for Live {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Live {
    fn cmp(&self, other: &Self) -> Ordering {
        burn();
        self.number.cmp(&other.number)
    }
}

impl ArtKey for Live {
    type Bytes<'a> = [u8; 8];

    fn bytes(&self) -> [u8; 8] {
        burn();
        self.number.bytes()
    }
}

impl Hash for Live {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn();
        self.number.hash(state);
    }
}
