//! A file system, and a thread's access to it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use manycore::mvrlu;
use manycore::rlu;
use manycore::session::{Conflict, View};
use manycore::sync::atomic::{AtomicU64, Ordering};

use crate::errno::Errno;
use crate::inode::{Body, Inode};
use crate::options::{Options, Sync, Walk};
use crate::record::{ATTRIBUTES, Noted, Noting, Recorder};
use crate::sync::held::{Held, InodeHandle};
use crate::sync::locked::{Locked, Locks};
use crate::sync::versioned::Versioned;
use crate::sync::{Brought, EntryName, Mechanism, Names, Start, Stop, Tx};

/// A file system in memory.
///
/// A file system. Each thread uses it through a [`Cx`]. Dropping it frees its contents.
pub struct Fs {
    mechanism: Box<dyn Mechanism>,
    options: Options,
    /// Taken when it is dropped.
    root: Option<Held>,
    contexts: AtomicU64,
    /// Inodes from a disk have numbers up to this one.
    restored: AtomicU64,
    pub(crate) recorder: Option<Recorder>,
}

/// A path, and the directory from which a call follows it. A path that begins with a slash begins
/// at the root instead.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The directory to which the path is relative.
    pub directory: &'a Inode,
    /// The path.
    pub path: &'a [u8],
}

/// The number of bits of an inode's number that tell which context has made it.
const CONTEXT_BITS: u32 = 12;

/// A thread reads the lines of all other threads, for a grace period, once in this many versions. A
/// directory that had names and is removed has one version for each of its chains. With a limit as
/// low as that of lists and trees, each removal would cause such a scan. Readers do not pay for the
/// higher limit: they have a limit of their own.
const VERSIONS_MAX: u32 = 512;

fn versions() -> mvrlu::Domain {
    let config = mvrlu::Config::default().with_versions_max(VERSIONS_MAX);
    mvrlu::Domain::new(Default::default(), config)
}

impl Fs {
    /// An empty one.
    ///
    /// # Panics
    ///
    /// If the number of chains is no power of two, or more than 4096.
    pub fn new(options: Options) -> Self {
        let chains = options.chains;
        assert!(
            chains.is_power_of_two() && chains <= 4096,
            "Options::chains is {chains}: it has to be a power of two up to 4096"
        );
        let mechanism: Box<dyn Mechanism> = match options.sync {
            Sync::DirLock => Box::new(Locked::new(Locks::Directory, chains)),
            Sync::Lock => Box::new(Locked::new(Locks::ChainReaders, chains)),
            Sync::Rcu => Box::new(Locked::new(Locks::Chain, chains)),
            Sync::Rlu => Box::new(Versioned::new(<rlu::Domain>::default(), chains)),
            Sync::MvRlu => Box::new(Versioned::new(versions(), chains)),
        };
        Self::with_mechanism(mechanism, options)
    }

    fn with_mechanism(mechanism: Box<dyn Mechanism>, options: Options) -> Self {
        let recorder = options.records.then(Recorder::new);
        let (contexts, restored) = (AtomicU64::new(1), AtomicU64::new(0));
        let mut fs = Self { mechanism, options, root: None, contexts, restored, recorder };
        let directory = Body::Directory(fs.mechanism.register().directory());
        fs.root = Some(Held::new(Inode::new(1, fs.id(), 0o755, 0, 0, directory)));
        fs
    }

    /// The calling thread's access: one for each CPU of a kernel, or for each thread. May allocate;
    /// keep it.
    ///
    /// # Panics
    ///
    /// If it is the 4096th of this file system.
    pub fn context(&self) -> Cx<'_> {
        // Relaxed: a number that no other has.
        let number = self.contexts.fetch_add(1, Ordering::Relaxed);
        assert!(number < 1 << CONTEXT_BITS, "contexts are made once, and not for each call");
        Cx {
            fs: self,
            names: self.mechanism.register(),
            number,
            made: 0,
            now: 0,
            retries: Retries::default(),
        }
    }

    /// The directory in which all paths begin that begin with a slash.
    pub fn root(&self) -> &Inode {
        self.root.as_deref().expect("the root is there until the end")
    }

    /// What was chosen when it was made.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Visits the mechanism's counters: a name and a number for each.
    pub fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.mechanism.statistics(visit);
    }

    /// A number that distinguishes its inodes from those of other file systems.
    fn id(&self) -> usize {
        (&raw const *self.mechanism).addr()
    }
}

impl Drop for Fs {
    fn drop(&mut self) {
        let mut cx = self.context();
        cx.empty_root();
        let changes = cx.changes(crate::Which::Files(&[]));
        cx.keep(changes);
        drop(cx);
        if let Some(inode) = self.root.take().and_then(Held::release) {
            self.mechanism.register().retire(inode);
        }
    }
}

impl fmt::Debug for Fs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fs").field("options", &self.options).finish_non_exhaustive()
    }
}

/// How often calls had to begin anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Another call was changing the same.
    pub locked: u64,
    /// Another call has changed the same.
    pub changed: u64,
    /// Another call has removed it.
    pub freed: u64,
    /// There was no room for another version.
    pub full: u64,
}

impl Retries {
    fn count(&mut self, conflict: Conflict) {
        *match conflict {
            Conflict::Locked => &mut self.locked,
            Conflict::Freed => &mut self.freed,
            Conflict::Full => &mut self.full,
            // Changed, Retry, and distinctions of later versions of the library.
            _ => &mut self.changed,
        } += 1;
    }
}

/// A thread's handle of a file system. All calls are its methods, in the modules of [`calls`].
///
/// No call sleeps, or waits for a device. Under `dirlock`, `lock` and `rcu`, calls wait for locks.
/// Under `rlu`, commits wait for the calls that are running.
///
/// [`calls`]: crate::calls
pub struct Cx<'fs> {
    pub(crate) fs: &'fs Fs,
    pub(crate) names: Box<dyn Names + 'fs>,
    pub(crate) number: u64,
    made: u64,
    now: u64,
    retries: Retries,
}

impl<'fs> Cx<'fs> {
    /// The file system.
    pub fn fs(&self) -> &'fs Fs {
        self.fs
    }

    /// Calls from now on change times to this: nanoseconds since 1970.
    pub fn set_time(&mut self, nanoseconds: u64) {
        self.now = nanoseconds;
    }

    /// How often calls had to begin anew.
    pub fn retries(&self) -> Retries {
        self.retries
    }

    /// One more reference to an inode that the caller holds.
    pub fn hold(&self, inode: &Inode) -> Option<InodeHandle<'fs>> {
        self.check(inode);
        Held::acquire(inode).map(InodeHandle::new)
    }

    /// Releases a reference to an inode. If the inode has no names and no other references, it is
    /// freed.
    pub fn close(&mut self, node: InodeHandle<'fs>) {
        self.check(&node);
        self.release(node.into_held());
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn release(&mut self, held: Held) {
        if let Some(inode) = held.release() {
            self.names.retire(inode);
        }
    }

    /// A name is gone, whose link this is.
    pub(crate) fn unlinked(&mut self, link: Held) {
        link.set_changed(self.now);
        // Without other names nothing of it is kept; a thread that gives it one meanwhile notes
        // that.
        if link.links() > 1 {
            self.mark(&link, ATTRIBUTES);
        }
        self.release(link);
    }

    /// An inode that was made has got no name.
    pub(crate) fn unmade(&mut self, held: Held) {
        held.remove_link();
        self.release(held);
    }

    /// An inode that is going to have a name.
    pub(crate) fn make(&mut self, mode: u32, body: Body) -> Held {
        // Relaxed: the disk's contents are restored before anything else is made.
        self.made = self.made.max(self.fs.restored.load(Ordering::Relaxed)) + 1;
        self.make_numbered(self.made << CONTEXT_BITS | self.number, mode, body)
    }

    /// From now on, new inodes get only numbers above this one, in every context.
    pub(crate) fn is_restored(&self, number: u64) {
        // Relaxed: as above.
        self.fs.restored.fetch_max(number >> CONTEXT_BITS, Ordering::Relaxed);
    }

    pub(crate) fn make_numbered(&self, number: u64, mode: u32, body: Body) -> Held {
        Held::new(Inode::new(number, self.fs.id(), mode, 1, self.now, body))
    }

    /// Checks that an inode is one of this file system.
    fn check(&self, inode: &Inode) {
        assert!(inode.owner() == self.fs.id(), "an inode of another file system");
    }

    /// The view of calls that only read.
    pub(crate) fn reading(&self) -> View {
        match self.fs.options.walk {
            Walk::Current => View::Latest,
            Walk::Moment => View::Snapshot,
        }
    }

    /// Makes attempts until one succeeds; returns its result, and its references.
    pub(crate) fn run<R>(
        &mut self,
        view: View,
        ask: Ask<'_>,
        mut body: impl for<'v> FnMut(&mut dyn Tx<'v>, Brought<'v>, &mut Holds<'fs>) -> Result<R, Stop>,
    ) -> Result<(R, Option<Held>), Errno> {
        let root = self.fs.root();
        for inode in [ask.from.map(|at| at.directory), ask.to.map(|at| at.directory), ask.inode] {
            inode.inspect(|inode| self.check(inode));
        }
        let brought = Brought {
            from: start(ask.from, root),
            to: start(ask.to, root),
            inode: ask.inode.unwrap_or(root),
            root,
            now: self.now,
            seed: self.fs.options.seed,
        };
        let (mut attempts, noting) = (0, self.noting());
        loop {
            let (mut result, mut holds) = (None, Holds::with(noting));
            let ended = self.names.attempt(view, brought, &mut |tx, brought| {
                result = Some(body(tx, brought, &mut holds)?);
                Ok(())
            });
            if let Ok(()) = ended {
                let result = result.expect("an attempt that succeeds has a result");
                self.has_changed(holds.noted);
                return Ok((result, holds.held));
            }
            self.has_not_changed(holds.noted);
            // The name to be removed is there, and has its link.
            if let Some(held) = holds.held.filter(|_| !holds.is_removal) {
                self.release(held);
            }
            match ended {
                Err(Stop::Fail(errno)) => return Err(errno),
                Err(Stop::Again(conflict)) => {
                    self.retries.count(conflict);
                    self.names.back_off(conflict, attempts);
                }
                Ok(()) => unreachable!("has returned"),
            }
            attempts += 1;
        }
    }
}

fn start<'a>(at: Option<At<'a>>, root: &'a Inode) -> Start<'a> {
    let At { directory, path } = at.unwrap_or(At { directory: root, path: b"/" });
    Start { directory, path }
}

/// The references of an attempt that outlive it. They are released if it fails.
pub(crate) struct Holds<'fs> {
    held: Option<Held>,
    is_removal: bool,
    noting: Option<Noting<'fs>>,
    noted: Vec<Noted>,
}

impl<'fs> Holds<'fs> {
    fn with(noting: Option<Noting<'fs>>) -> Self {
        Self { held: None, is_removal: false, noting, noted: Vec::new() }
    }

    /// Notes names that the attempt will change, for the record of changes.
    pub fn note(&mut self, places: &[EntryName<'_>]) -> Result<(), Stop> {
        for place in places {
            if let Some(noting) = &self.noting {
                // No thread has the directory any more: it was removed.
                self.noted.push(noting.note(place).ok_or(Stop::Again(Conflict::Freed))?);
            }
        }
        Ok(())
    }

    /// Takes a reference to an inode. If the inode has none, it was found by a name that no longer
    /// exists.
    pub fn hold(&mut self, inode: &Inode) -> Result<(), Stop> {
        let held = Held::acquire(inode).ok_or(Stop::Again(Conflict::Freed))?;
        debug_assert!(self.held.is_none(), "an attempt holds one inode");
        self.held = Some(held);
        Ok(())
    }

    /// Holds an inode that loses a name, by the link of that name. The caller owns the link once
    /// the name is removed.
    pub fn unlink(&mut self, inode: &Inode) {
        debug_assert!(self.held.is_none(), "an attempt holds one inode");
        (self.held, self.is_removal) = (Some(Held::link_of(inode)), true);
    }

    /// Counts a link of an inode that gets another name. The new name owns the link if the attempt
    /// succeeds.
    pub fn link(&mut self, inode: &Inode) -> Result<(), Stop> {
        inode.add_link().map_err(|errno| match errno {
            // As above: another file may have the name now.
            Errno::NoEntry => Stop::Again(Conflict::Freed),
            other => other.into(),
        })?;
        self.held = Some(Held::link_of(inode));
        Ok(())
    }
}

/// What a call is about.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ask<'a> {
    pub from: Option<At<'a>>,
    pub to: Option<At<'a>>,
    pub inode: Option<&'a Inode>,
}

impl<'a> Ask<'a> {
    pub fn at(at: At<'a>) -> Self {
        Self { from: Some(at), ..Self::default() }
    }

    /// Refers to an inode that the caller has already: the path is `.`, from that inode.
    pub fn of(inode: &'a Inode) -> Self {
        Self::at(At { directory: inode, path: b"." }).with(inode)
    }

    pub fn with(self, inode: &'a Inode) -> Self {
        Self { inode: Some(inode), ..self }
    }

    pub fn to(self, to: At<'a>) -> Self {
        Self { to: Some(to), ..self }
    }
}

impl fmt::Debug for Cx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("retries", &self.retries).finish_non_exhaustive()
    }
}
