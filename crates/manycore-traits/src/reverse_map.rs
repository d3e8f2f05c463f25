//! Trees of intervals that many threads update and few read.

/// Numbers from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// The first of them.
    pub first: u64,
    /// Its position among intervals that begin at the same number: searches find them in this
    /// order, whatever the order of their insertions. So a child, for example, has a higher number
    /// than its parent.
    pub order: u64,
    /// The last of them.
    pub last: u64,
}

/// Trees of intervals, such as an operating system's for the places at which pages are mapped. An
/// interval has an owner, which inserts and removes it; the owner may be a different thread each
/// time. Readers ask which intervals overlap others.
///
/// Insertions and removals take effect at one instant between their call and their return. A reader
/// finds everything done before its call. Mechanisms that defer updates may show it any part of
/// concurrent operations: of two intervals, possibly only the later one.
pub trait ReverseMap: Sync {
    /// An interval that is in no tree. Dropped, it is gone.
    type Absent<'a>: Send
    where
        Self: 'a;

    /// An interval that is in its tree. When it is dropped, it is removed and freed.
    type Present<'a>: Send
    where
        Self: 'a;

    /// How many trees there are.
    fn trees(&self) -> usize;

    /// A new interval for the tree with this number.
    ///
    /// # Panics
    ///
    /// If there is no such tree, here or when it is inserted.
    fn interval(&self, tree: usize, interval: Interval) -> Self::Absent<'_>;

    /// The interval comes into its tree.
    fn insert<'a>(&'a self, interval: Self::Absent<'a>) -> Self::Present<'a>;

    /// The interval leaves its tree.
    fn remove<'a>(&'a self, interval: Self::Present<'a>) -> Self::Absent<'a>;

    /// Calls `found` for each interval of a tree that has a number from `first` to `last`, by first
    /// number and order.
    fn overlaps(
        &self,
        tree: usize,
        first: u64,
        last: u64,
        found: &mut (dyn FnMut(Interval) + Send),
    );

    /// The timer of mechanisms that defer work: executes work that has waited for more than `ticks`
    /// of the clock. Cheap enough to be called with every update.
    fn tend(&self, _tree: usize, _ticks: u64) {}

    /// The largest number of deferred updates of a tree at a time, or of all trees if they are
    /// handled together.
    fn put_off_max(&self) -> u64 {
        0
    }

    /// Visits the mechanism's counts so far: a name and a number each, such as applied updates.
    fn statistics(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
}
