//! A store: objects in memory, a journal, and the threads that use them.

mod background;
mod bell;
mod blob;
mod calling;
mod catalog;
mod checkpoint;
pub(crate) mod compaction;
mod domain;
mod flusher;
mod frames;
mod list;
mod map;
mod member;
mod monitor;
mod named;
mod operation;
mod options;
mod ordered;
mod own;
mod pointer;
mod queue;
mod read_only;
mod reads;
mod record;
mod registry;
mod replay;
mod replayed;
mod set;
mod shared;
mod stop;
mod terms;
mod ticket;
mod transaction;
mod trie;
#[doc(hidden)]
pub mod untyped;
mod wakers;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use manycore::clock::{Clock as _, RelaxedClock, Since};
use manycore::mvrlu;
use manycore::sync::mutation;

pub use blob::Blob;
pub use flusher::Stats;
pub use list::{Cursor, List};
pub use map::Map;
pub use member::Member;
pub use operation::{Arguments, Operation, Operations, Registered};
pub use options::Options;
pub use ordered::{OrderedMap, Range};
pub use pointer::Ptr;
pub use queue::Queue;
pub use read_only::ReadOnly;
pub use set::Set;
pub use terms::{Durability, Isolation, Terms};
pub use ticket::{Committing, Ticket};
pub use transaction::{Session, Snapshot, Stop, Transaction};

use crate::device::{Directory, Storage};
use crate::error::Result;
use crate::heap::{self, Heap};
use crate::random::random;
use crate::sync::Counters;
use crate::volume::{Backup, Images, Journal, Recovered, Volume};
use background::Background;
use calling::Known;
use domain::Domain;
use flusher::Flusher;
pub(crate) use replay::Replay;
use shared::Shared;

/// Persistent objects: in memory for threads, and in files for the next run.
///
/// ```
/// use timestone::{Map, Options, Store};
///
/// let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path())?;
/// let stock: Map<u64, u64> = store.map("stock")?;
/// let mut me = store.register()?;
/// me.run(|tx| stock.insert(tx, 7, 40))?; // on the disk when it returns
/// drop(me);
/// store.close()?;
///
/// let store = Store::open_with(directory.path(), Options::default())?;
/// let stock: Map<u64, u64> = store.map("stock")?;
/// let mut me = store.register()?;
/// assert_eq!(me.read(|now| stock.get(now, &7)), Some(40));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    background: Option<Background>,
    shared: Shared,
}

impl Store {
    /// Opens the store in a directory. If there is none, creates it.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`](crate::Error::Locked) if the store is open already,
    /// [`Error::Corrupted`](crate::Error::Corrupted) if files are damaged, and the operating
    /// system's errors.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(directory, Options::default())
    }

    /// As [`open`](Self::open), with options.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    pub fn open_with(directory: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::open_on(Arc::new(Directory::open(directory)?), options)
    }

    /// As [`open`](Self::open), on other devices than files of a directory: for tests.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    pub fn open_on(storage: Arc<dyn Storage>, options: Options) -> Result<Self> {
        operation::check(options.operations)?;
        let heap = Heap::new(options.heap_bytes)?;
        let mut target = Replay::new(&heap, options.operations);
        let recovered = Recovered::read(&*storage, options.journal_bytes(), &mut target)?;
        let (horizon, transactions) = (recovered.horizon, recovered.transactions);
        let seed = recovered.seed();
        // SAFETY: no domain has the heap yet: the store, which makes one for it, is made below.
        let Volume { journal, images } = recovered.start(&mut unsafe { heap.entries() })?;
        Self::start(heap, options, seed, (journal, horizon), Some((images, storage)), transactions)
    }

    /// Creates a store without files. In all other respects it is the same. Commits return
    /// immediately, whatever their durability. To keep the data, call [`backup`](Self::backup).
    ///
    /// ```
    /// use timestone::{Map, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let stock: Map<u64, u64> = store.map("stock")?;
    /// let mut me = store.register()?;
    /// me.run(|tx| stock.insert(tx, 7, 40))?;
    /// assert_eq!(me.read(|now| stock.get(now, &7)), Some(40));
    ///
    /// let directory = tempfile::tempdir()?;
    /// store.backup(directory.path())?;
    /// let stock: Map<u64, u64> = Store::open(directory.path())?.map("stock")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The operating system's errors: for memory, and for a thread.
    pub fn in_memory() -> Result<Self> {
        Self::in_memory_with(Options::default())
    }

    /// As [`in_memory`](Self::in_memory), with options. The journal's length is that of backups.
    ///
    /// # Errors
    ///
    /// As of [`in_memory`](Self::in_memory).
    pub fn in_memory_with(options: Options) -> Result<Self> {
        let heap = Heap::new(options.heap_bytes)?;
        Self::start(heap, options, random(), (Journal::nowhere(), 0), None, 0)
    }

    fn start(
        heap: Arc<Heap>,
        options: Options,
        seed: u64,
        (journal, horizon): (Journal, u64),
        files: Option<(Images, Arc<dyn Storage>)>,
        recovered: u64,
    ) -> Result<Self> {
        // The mistake: the clock begins anew, and stamps with it.
        let base = if mutation!("clock-restarts") { 0 } else { horizon };
        let clock = RelaxedClock(Since::new(Counters::default(), base));
        let config = mvrlu::Config::default().with_segments_max(options.log_segments);
        let memory = Box::new(heap::Shared(heap.clone()));
        let domain = Domain::with_memory(clock, config, memory, horizon);
        let flusher = Arc::new(Flusher::new(domain, heap.clone(), journal, files, recovered));
        let background = Some(Background::start(&flusher, options.window)?);
        let (settings, has_own) = (options.settings(), AtomicBool::new(false));
        let shared = Shared { flusher, heap, settings, seed, has_own, operations: Vec::new() };
        let mut store = Self { background, shared };
        store.shared.operations = store.known(options.operations)?;
        Ok(store)
    }

    /// These operations, which the store knows from now on.
    fn known(&self, operations: Operations) -> Result<Vec<Known>> {
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        operation::check(operations)?;
        // A call of one of them comes later.
        self.register()?.run_with(Isolation::Linearizable, |tx| {
            operations.iter().map(|it| registry::known(tx, it.name(), it.version())).collect()
        })
    }

    /// Registers the calling thread. Keep the result for as long as the thread uses the store.
    ///
    /// # Errors
    ///
    /// [`Error::Full`](crate::Error::Full) if the journal is too small for one more thread.
    pub fn register(&self) -> Result<Member<'_>> {
        Member::new(&self.shared)
    }

    /// The map of this name. If it does not exist, it is created.
    ///
    /// # Errors
    ///
    /// [`Error::Schema`](crate::Error::Schema) if the name belongs to a structure of another type;
    /// also a commit's errors.
    pub fn map<K: crate::Persist, V: crate::Persist>(&self, name: &str) -> Result<Map<K, V>> {
        Map::open(&mut self.register()?, name, self.shared.seed)
    }

    /// The ordered map of this name. If it does not exist, it is created.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn ordered_map<K, V>(&self, name: &str) -> Result<OrderedMap<K, V>>
    where
        K: crate::Persist + Ord,
        V: crate::Persist,
    {
        OrderedMap::open(&mut self.register()?, name)
    }

    /// The set of this name. If it does not exist, it is created.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn set<K: crate::Persist>(&self, name: &str) -> Result<Set<K>> {
        Set::open(&mut self.register()?, name, self.shared.seed)
    }

    /// The queue of this name. If it does not exist, it is created.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn queue<T: crate::Persist>(&self, name: &str) -> Result<Queue<T>> {
        Queue::open(&mut self.register()?, name)
    }

    /// The list of this name. If it does not exist, it is created.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn list<T: crate::Persist>(&self, name: &str) -> Result<List<T>> {
        List::open(&mut self.register()?, name)
    }

    /// The object of this name, from which the program reaches others. If it does not exist, it is
    /// created with zeros.
    ///
    /// # Errors
    ///
    /// As of [`map`](Self::map).
    pub fn root<T: crate::Persist>(&self, name: &str) -> Result<Ptr<T>> {
        own::open_root(&mut self.register()?, name)
    }

    /// Returns when all that has committed is on the disk.
    ///
    /// # Errors
    ///
    /// Those of the devices, or [`Error::Poisoned`](crate::Error::Poisoned).
    pub fn sync(&self) -> Result<()> {
        self.shared.flusher.sync()
    }

    /// All commits with stamps up to this are on the disk.
    pub fn durable(&self) -> u64 {
        self.shared.flusher.durable()
    }

    /// An upper bound of the stamps of all commits that have returned.
    pub fn now(&self) -> u64 {
        self.shared.flusher.domain.clock().0.fresh()
    }

    /// Returns when the commit with this stamp is on the disk: see [`Ticket::stamp`].
    ///
    /// # Errors
    ///
    /// As of [`sync`](Self::sync).
    pub fn wait(&self, stamp: u64) -> Result<()> {
        self.shared.flusher.wait(stamp)
    }

    /// Writes all objects into an image. Afterwards the journal has as much free room as at the
    /// begin. Transactions continue meanwhile. Images are written one at a time: if another one is
    /// under way, this one is written after it.
    ///
    /// The store does this automatically when the journal is half full.
    ///
    /// # Errors
    ///
    /// The errors of [`sync`](Self::sync). If the image cannot be written, the store continues as
    /// before.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.flusher.checkpoint(false)
    }

    /// Writes a copy of the store into a directory without a store. It has all earlier commits, and
    /// perhaps some concurrent ones. Opening the copy recovers it.
    ///
    /// Transactions continue, as during an image ([`checkpoint`](Self::checkpoint)), but the
    /// journal gets no free room until the copy is written. During a copy of a store [in
    /// memory](Self::in_memory), transactions wait when their rings are half full.
    ///
    /// # Errors
    ///
    /// The devices' errors; also if there is a store in the directory.
    pub fn backup(&self, directory: impl AsRef<Path>) -> Result<()> {
        self.backup_on(&Directory::open(directory)?)
    }

    /// As [`backup`](Self::backup), to other devices than files of a directory.
    ///
    /// # Errors
    ///
    /// As of [`backup`](Self::backup).
    pub fn backup_on(&self, storage: &dyn Storage) -> Result<()> {
        let Shared { flusher, settings, seed, .. } = &self.shared;
        if flusher.is_in_memory() {
            let uuid = u128::from(random()) << 64 | u128::from(*seed);
            let backup = Backup::of_memory(storage, uuid, settings.journal_bytes)?;
            return flusher.write_memory(backup, storage);
        }
        flusher.back_up(storage)
    }

    /// What has been done so far.
    pub fn stats(&self) -> Stats {
        self.shared.flusher.stats()
    }

    /// Writes all commits and an image, so that the next open is fast. Dropping the store does the
    /// same, but reports no errors.
    ///
    /// # Errors
    ///
    /// As of [`sync`](Self::sync).
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        match self.background.take() {
            // Its threads are the parent's.
            Some(background) if self.shared.flusher.is_elsewhere() => {
                std::mem::forget(background);
                self.shared.flusher.check_process()
            }
            Some(background) => {
                background.stop(&self.shared.flusher);
                self.shared.flusher.checkpoint(true)
            }
            None => Ok(()),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A program that wants to know of an error calls `close`. Acknowledged commits are in the
        // journal.
        let _ = self.end();
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
