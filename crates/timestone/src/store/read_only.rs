//! Stores that are only read.

use std::path::Path;
use std::sync::Arc;

use super::catalog;
use super::list::List;
use super::map::Map;
use super::options::Options;
use super::ordered::OrderedMap;
use super::own;
use super::pointer::Ptr;
use super::queue::Queue;
use super::replay::Replay;
use super::set::Set;
use super::transaction::{Session, sealed};
use crate::device::{Directory, Storage};
use crate::error::Result;
use crate::heap::Heap;
use crate::volume::Recovered;

/// A read-only view of a store on the disk. Several programs may open the same directory at the
/// same time, but none of them may write it.
///
/// Recovery after a crash is done in memory; nothing is written.
///
/// ```
/// use timestone::{Map, ReadOnly, Store};
///
/// let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path())?;
/// let stock: Map<u64, u64> = store.map("stock")?;
/// store.register()?.run(|tx| stock.insert(tx, 7, 40))?;
/// store.close()?;
///
/// let store = ReadOnly::open(directory.path())?;
/// let stock: Map<u64, u64> = store.map("stock")?;
/// assert_eq!(stock.get(&store, &7), Some(40));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ReadOnly {
    heap: Arc<Heap>,
    seed: u64,
    horizon: u64,
    /// Keeps the directory from being written to.
    _storage: Arc<dyn Storage>,
}

impl ReadOnly {
    /// Reads the store in a directory.
    ///
    /// # Errors
    ///
    /// As of [`Store::open`](super::Store::open); and if there is no store.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_on(Arc::new(Directory::open_to_read(directory)?), Options::default())
    }

    /// As [`open`](Self::open), on other devices than files of a directory, and with options. Of
    /// these it uses the heap's size, and the operations, which recovery may have to run.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    pub fn open_on(storage: Arc<dyn Storage>, options: Options) -> Result<Self> {
        let heap = Heap::new(options.heap_bytes)?;
        let mut target = Replay::new(&heap, options.operations);
        let recovered = Recovered::read_existing(&*storage, &mut target)?;
        Ok(Self::of(heap, &recovered, storage))
    }

    /// The map of this name.
    ///
    /// # Errors
    ///
    /// [`Error::Schema`](crate::Error::Schema) if the name belongs to another structure, or to
    /// none.
    pub fn map<K: crate::Persist, V: crate::Persist>(&self, name: &str) -> Result<Map<K, V>> {
        let root = catalog::find_root(self, name, &Map::<K, V>::schema())?;
        Ok(Map::at(root, self.seed))
    }

    /// The ordered map of this name.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn ordered_map<K, V>(&self, name: &str) -> Result<OrderedMap<K, V>>
    where
        K: crate::Persist + Ord,
        V: crate::Persist,
    {
        catalog::find_root(self, name, &OrderedMap::<K, V>::schema()).map(OrderedMap::at)
    }

    /// The set of this name.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn set<K: crate::Persist>(&self, name: &str) -> Result<Set<K>> {
        self.map(name).map(Set::of)
    }

    /// The queue of this name.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn queue<T: crate::Persist>(&self, name: &str) -> Result<Queue<T>> {
        Ok(Queue::at(self, catalog::find_root(self, name, &Queue::<T>::schema())?))
    }

    /// The list of this name.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn list<T: crate::Persist>(&self, name: &str) -> Result<List<T>> {
        catalog::find_root(self, name, &List::<T>::schema()).map(List::at)
    }

    /// The object of this name, as [`Store::root`](super::Store::root) has created it.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn root<T: crate::Persist>(&self, name: &str) -> Result<Ptr<T>> {
        catalog::find_root(self, name, &own::schema::<T>()).map(Ptr::at)
    }

    /// A view of the store in this heap, which was filled from these files.
    pub(crate) fn of(heap: Arc<Heap>, recovered: &Recovered, storage: Arc<dyn Storage>) -> Self {
        let (seed, horizon) = (recovered.seed(), recovered.horizon);
        Self { heap, seed, horizon, _storage: storage }
    }

    /// Words of the object at a place.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(super) fn words_at(&self, place: u64) -> usize {
        let words = self.heap.words_at(place);
        words.unwrap_or_else(|| panic!("no object at {place}: the store's data is damaged"))
    }

    /// The view has exactly the commits up to this stamp.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }
}

impl Session for ReadOnly {}

impl sealed::Objects for ReadOnly {
    #[inline]
    fn object(&self, place: u64, words: usize) -> &[u64] {
        // SAFETY: no domain has this heap, and it is not filled any more.
        unsafe { self.heap.read(place, words) }
    }

    #[inline]
    fn note(&self, _: u64, _: usize) {}

    #[inline]
    fn heap(&self) -> &Heap {
        &self.heap
    }
}

impl std::fmt::Debug for ReadOnly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadOnly").field("horizon", &self.horizon).finish_non_exhaustive()
    }
}
