//! Directories whose chains have locks: `rcu`, `lock` and `dirlock`.
//!
//! A chain is read in an RCU section, under `lock` with its lock held, and changed with its lock
//! held, or under `dirlock` with its directory's. A removed entry keeps its link, for threads that
//! are on it.
//!
//! A call first finds its names without locks, then takes the locks of all their chains in the
//! order of their addresses, and checks again. A directory that is removed has all its locks taken,
//! too, so later threads notice the removal. A call that fails because of two names takes no locks,
//! except under `lock`: it checks that no thread has had them meanwhile. Moves of directories
//! between directories exclude each other by one lock for the whole file system, under which
//! parents do not change.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr::null_mut;

use manycore::mutation;
use manycore::reclaim::{Domain, Guard, Handle};
use manycore::session::{Conflict, View};
use manycore::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use manycore::sync::hint;

use super::lock::Lock;
use super::{Brought, Directory, Do, EntryName, InodeRef, Line, Mechanism, Seen, Shared, Stop, Tx};
use crate::errno::Errno;
use crate::inode::{Inode, set_time};
use crate::name::{Key, Name, chain_of};

/// After this many attempts each, a thread waits longer before the next one.
const BACK_OFFS: u32 = 8;
const BACK_OFF_TICKS: u64 = 200;

/// The existing locks, and the calls that take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locks {
    /// One a directory, for writers.
    Directory,
    /// One a chain, for writers.
    Chain,
    /// One a chain, for all.
    ChainReaders,
}

/// The names in a directory.
pub(crate) struct Names {
    lock: Line<Lock>,
    is_removed: AtomicBool,
    /// Null for the root.
    parent: AtomicPtr<Inode>,
    chains: Box<[Chain]>,
}

/// Names whose hashes are between two bounds.
#[repr(align(64))]
struct Chain {
    lock: Lock,
    first: AtomicPtr<Entry>,
    changed: AtomicU64,
}

/// A name in a chain, in the order of hashes and then of names.
struct Entry {
    next: AtomicPtr<Entry>,
    constant: Shared<Constant>,
}

struct Constant {
    hash: u64,
    inode: *const Inode,
    name: Name,
}

// SAFETY: threads share inodes; an entry only has the address of one, which is counted.
unsafe impl Send for Constant {}
// SAFETY: a shared entry gives the address of an inode, which threads share.
unsafe impl Sync for Constant {}

/// A name's place.
struct Spot<'v> {
    link: &'v AtomicPtr<Entry>,
    /// The entry, if the name is there.
    entry: Option<&'v Entry>,
}

impl Names {
    pub fn modified(&self) -> u64 {
        // Relaxed: as all attributes.
        self.chains.iter().map(|chain| chain.changed.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    fn chain(&self, hash: u64) -> &Chain {
        &self.chains[chain_of(hash, self.chains.len())]
    }
}

fn names(directory: &Inode) -> &Names {
    match directory.directory() {
        Ok(Directory::Locked(names)) => names,
        _ => unreachable!("a directory of this mechanism"),
    }
}

/// A mechanism with locks.
pub(crate) struct Locked {
    domain: Domain,
    locks: Locks,
    moves: Line<Lock>,
    chains: usize,
}

impl Locked {
    /// With this many chains a directory.
    pub fn new(locks: Locks, chains: usize) -> Self {
        Self { domain: Domain::default(), locks, moves: Line(Lock::new()), chains }
    }

    fn lock_of<'v>(&self, place: &EntryName<'v>) -> &'v Lock {
        let names = names(place.directory.inode());
        match self.locks {
            Locks::Directory => &names.lock,
            Locks::Chain | Locks::ChainReaders => &names.chain(place.key.hash).lock,
        }
    }
}

impl Mechanism for Locked {
    fn register(&self) -> Box<dyn super::Names + '_> {
        Box::new(Access { of: self, handle: self.domain.register(), held: Vec::new() })
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.domain.statistics(visit);
    }
}

struct Access<'a> {
    of: &'a Locked,
    handle: Handle<'a>,
    /// Empty between attempts.
    held: Vec<*const Lock>,
}

impl super::Names for Access<'_> {
    fn attempt(&mut self, _: View, brought: Brought<'_>, body: &mut Do<'_>) -> Result<(), Stop> {
        let (guard, held) = (self.handle.pin(), &mut self.held);
        let mut attempt =
            Attempt { of: self.of, guard: &guard, held, moved: Vec::new(), view: PhantomData };
        let ended = body(&mut attempt, brought);
        if ended.is_err() {
            attempt.move_back();
        }
        ended
    }

    fn back_off(&mut self, _: Conflict, attempts: u32) {
        hint::delay(u64::from(attempts.min(BACK_OFFS)) * BACK_OFF_TICKS);
    }

    fn directory(&mut self) -> Directory {
        let chain = |_| Chain {
            lock: Lock::new(),
            first: AtomicPtr::new(null_mut()),
            changed: AtomicU64::new(0),
        };
        Directory::Locked(Box::new(Names {
            lock: Line(Lock::new()),
            is_removed: AtomicBool::new(false),
            parent: AtomicPtr::new(null_mut()),
            chains: (0..self.of.chains).map(chain).collect(),
        }))
    }

    fn retire(&mut self, inode: Box<Inode>) {
        let guard = self.handle.pin();
        // SAFETY: from a box; it has no links and no references, so only threads that are in a
        // section can find it; and it is retired once.
        unsafe { guard.retire(Box::into_raw(inode)) };
    }
}

/// A section, and the locks that the attempt has taken in it. Its results are valid for `'v`.
struct Attempt<'s, 'v> {
    of: &'s Locked,
    guard: &'s Guard<'s>,
    held: &'s mut Vec<*const Lock>,
    /// Directories, and their parents before.
    moved: Vec<(&'v Inode, *mut Inode)>,
    view: PhantomData<fn(&'v ()) -> &'v ()>,
}

impl Drop for Attempt<'_, '_> {
    fn drop(&mut self) {
        for lock in self.held.drain(..) {
            // SAFETY: `take` has acquired each of them, and they are of directories that the
            // section has found, or of the mechanism: they are there.
            unsafe { (*lock).release() };
        }
    }
}

impl<'v> Attempt<'_, 'v> {
    /// Takes locks in the order of their addresses, each once.
    fn take(&mut self, mut locks: Vec<&'v Lock>) {
        locks.sort_unstable_by_key(|lock| core::ptr::from_ref(*lock).addr());
        locks.dedup_by_key(|lock| core::ptr::from_ref(*lock));
        for lock in locks {
            lock.acquire();
            self.held.push(lock);
        }
    }

    /// Restores the parent of the moved directory, because the call fails for another reason.
    fn move_back(&mut self) {
        for (directory, parent) in self.moved.drain(..).rev() {
            // Release: partner of the Acquire in `parent`.
            names(directory).parent.store(parent, Ordering::Release);
        }
    }

    fn holds(&self, lock: &Lock) -> bool {
        self.held.iter().any(|held| core::ptr::eq(*held, lock))
    }

    /// Does something with a chain that it reads.
    fn reading<R>(&self, lock: &Lock, read: impl FnOnce() -> R) -> R {
        struct Release<'l>(&'l Lock);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                // SAFETY: `reading`, below, has acquired it for this `Release`, which alone
                // releases it.
                unsafe { self.0.release() };
            }
        }
        let is_read = self.of.locks != Locks::ChainReaders || self.holds(lock);
        let _release = (!is_read).then(|| {
            lock.acquire();
            Release(lock)
        });
        read()
    }

    fn follow(&self, link: &'v AtomicPtr<Entry>) -> Option<&'v Entry> {
        // Acquire: partner of the Release in `lead`, for the entry's contents.
        let entry = link.load(Ordering::Acquire);
        // SAFETY: null, or an entry that was found in this section, and is dropped after it.
        unsafe { entry.as_ref() }
    }

    /// # Safety
    ///
    /// The entry was found in this section.
    unsafe fn found(&self, entry: &'v Entry) -> InodeRef<'v> {
        // SAFETY: the name's inode has a link until the name is removed, which was not before this
        // section's begin; it is retired after that.
        unsafe { InodeRef(&*entry.constant.get().inode) }
    }

    fn spot(&self, directory: InodeRef<'v>, key: Key<'_>) -> Spot<'v> {
        let Key { bytes, hash } = key;
        let mut link = &names(directory.inode()).chain(hash).first;
        loop {
            let Some(entry) = self.follow(link) else { return Spot { link, entry: None } };
            let this = entry.constant.get();
            if this.hash > hash {
                return Spot { link, entry: None };
            }
            if this.hash == hash {
                match this.name.bytes().cmp(bytes) {
                    core::cmp::Ordering::Less => {}
                    core::cmp::Ordering::Equal => return Spot { link, entry: Some(entry) },
                    core::cmp::Ordering::Greater => return Spot { link, entry: None },
                }
            }
            link = &entry.next;
        }
    }

    /// Whether everything is as it was seen. The locks are held, or were not taken by another
    /// thread in between.
    fn check(&self, seen: &[Seen<'v>]) -> Result<(), Stop> {
        let is_same = |seen: &Seen<'v>| {
            // Relaxed: written with this lock held, so that its turns order it.
            if names(seen.place.directory.inode()).is_removed.load(Ordering::Relaxed) {
                return false;
            }
            let entry = self.spot(seen.place.directory, seen.place.key).entry;
            match (seen.inode, entry) {
                (None, None) => true,
                // SAFETY: the entry was found in this section, which lasts as long as `self`, and
                // entries are freed after it.
                (Some(inode), Some(entry)) => unsafe { self.found(entry).is(&inode) },
                _ => false,
            }
        };
        if mutation!("khronos-trusts") || seen.iter().all(is_same) {
            return Ok(());
        }
        Err(Stop::Again(Conflict::Changed))
    }

    /// Whether everything is as it was seen, and was so at one moment: at that moment no thread had
    /// any of the locks, and none was taken until everything had been checked again.
    fn was_at_once(&self, seen: &[Seen<'v>; 2]) -> bool {
        if mutation!("khronos-one-look") {
            return true;
        }
        let turns = || [&seen[0], &seen[1]].map(|seen| self.of.lock_of(&seen.place).turns());
        let before = turns();
        before.iter().all(|turns| turns % 2 == 0) && self.check(seen).is_ok() && turns() == before
    }

    /// With the lock held.
    fn lead(&self, link: &AtomicPtr<Entry>, entry: *mut Entry) {
        link.store(entry, Ordering::Release); // Release: partner of the Acquire in `follow`
    }
}

impl<'v> Tx<'v> for Attempt<'_, 'v> {
    fn enter(&self, inode: &'v Inode) -> Result<InodeRef<'v>, Stop> {
        // Acquire: partner of the Release in `remove`.
        if inode.is_directory() && names(inode).is_removed.load(Ordering::Acquire) {
            return Err(Errno::NoEntry.into());
        }
        Ok(InodeRef(inode))
    }

    fn find(&self, directory: InodeRef<'v>, key: Key<'_>) -> Option<InodeRef<'v>> {
        let lock = &names(directory.inode()).chain(key.hash).lock;
        let entry = self.reading(lock, || self.spot(directory, key).entry)?;
        // SAFETY: the entry was found in this section, which lasts as long as `self`, and entries
        // are freed after it.
        Some(unsafe { self.found(entry) })
    }

    fn parent(&self, directory: InodeRef<'v>) -> Option<InodeRef<'v>> {
        let names = names(directory.inode());
        // Acquire: partner of the Release in `remove`. Before the parent is read: a directory that
        // is there has a name in its parent, so that the parent is there for this section.
        if names.is_removed.load(Ordering::Acquire) {
            return None;
        }
        // Acquire: partner of the Release in `set_parent`.
        let parent = names.parent.load(Ordering::Acquire);
        // SAFETY: null, or an inode that is there, as said above.
        Some(unsafe { parent.as_ref() }.map_or(directory, InodeRef))
    }

    fn each(
        &self,
        directory: InodeRef<'v>,
        from: u64,
        visit: &mut dyn FnMut(Key<'_>, InodeRef<'v>) -> bool,
    ) {
        let names = names(directory.inode());
        for chain in &names.chains[chain_of(from, names.chains.len())..] {
            let is_enough = self.reading(&chain.lock, || {
                let mut link = &chain.first;
                while let Some(entry) = self.follow(link) {
                    let this = entry.constant.get();
                    let key = Key { bytes: this.name.bytes(), hash: this.hash };
                    // SAFETY: the entry was found in this section, which lasts as long as `self`,
                    // and entries are freed after it.
                    if this.hash >= from && !visit(key, unsafe { self.found(entry) }) {
                        return true;
                    }
                    link = &entry.next;
                }
                false
            });
            if is_enough {
                return;
            }
        }
    }

    fn prepare(
        &mut self,
        seen: &[Seen<'v>],
        removed: Option<InodeRef<'v>>,
        is_move: bool,
    ) -> Result<(), Stop> {
        if is_move {
            self.of.moves.acquire();
            self.held.push(&raw const *self.of.moves);
        }
        let mut locks: Vec<_> = seen.iter().map(|seen| self.of.lock_of(&seen.place)).collect();
        if let Some(removed) = removed {
            let names = names(removed.inode());
            match self.of.locks {
                Locks::Directory => locks.push(&names.lock),
                Locks::Chain | Locks::ChainReaders => {
                    locks.extend(names.chains.iter().map(|chain| &chain.lock));
                }
            }
        }
        self.take(locks);
        self.check(seen)
    }

    fn confirm(&mut self, seen: &[Seen<'v>]) -> Result<(), Stop> {
        if self.held.is_empty() { self.prepare(seen, None, false) } else { Ok(()) }
    }

    fn judge(&mut self, seen: [Seen<'v>; 2]) -> Result<(), Stop> {
        let takes_locks = self.of.locks == Locks::ChainReaders;
        if !takes_locks && self.was_at_once(&seen) { Ok(()) } else { self.confirm(&seen) }
    }

    fn change(&mut self, seen: &Seen<'v>, to: Option<&'v Inode>, now: u64) -> Result<(), Stop> {
        let Spot { link, entry } = self.spot(seen.place.directory, seen.place.key);
        let Key { bytes, hash } = seen.place.key;
        // Relaxed, both: with the lock held.
        let (first, behind) =
            (link.load(Ordering::Relaxed), entry.map(|entry| entry.next.load(Ordering::Relaxed)));
        let next = behind.unwrap_or(first);
        match to {
            Some(inode) => {
                let constant = Shared::new(Constant { hash, inode, name: Name::new(bytes) });
                let entry = Box::new(Entry { next: AtomicPtr::new(next), constant });
                self.lead(link, Box::into_raw(entry));
            }
            None => self.lead(link, next),
        }
        if behind.is_some() {
            // SAFETY: from a box, as all entries; no link leads to it any more, which has the lock
            // held, so that it is retired once.
            unsafe { self.guard.retire(first) };
        }
        set_time(&names(seen.place.directory.inode()).chain(hash).changed, now);
        Ok(())
    }

    fn remove(&mut self, directory: InodeRef<'v>) -> Result<(), Stop> {
        let names = names(directory.inode());
        // Relaxed, both: with the locks held.
        if names.is_removed.load(Ordering::Relaxed) {
            return Err(Stop::Again(Conflict::Freed));
        }
        if names.chains.iter().any(|chain| !chain.first.load(Ordering::Relaxed).is_null()) {
            return Err(Errno::NotEmpty.into());
        }
        // Release: partner of the Acquire in `enter`
        names.is_removed.store(true, Ordering::Release);
        Ok(())
    }

    fn set_parent(&mut self, directory: &'v Inode, parent: InodeRef<'v>) -> Result<(), Stop> {
        let parent = core::ptr::from_ref(parent.inode()).cast_mut();
        // Release: partner of the Acquire in `parent`.
        names(directory).parent.store(parent, Ordering::Release);
        Ok(())
    }

    fn move_below(
        &mut self,
        directory: InodeRef<'v>,
        from: InodeRef<'v>,
        to: InodeRef<'v>,
    ) -> Result<(), Stop> {
        let mut above = to;
        while !above.is(&directory) {
            match self.parent(above) {
                None => return Err(Stop::Again(Conflict::Freed)),
                Some(parent) if parent.is(&above) => {
                    // Relaxed: with the lock of moves held.
                    let before = names(directory.inode()).parent.load(Ordering::Relaxed);
                    self.moved.push((directory.inode(), before));
                    return self.set_parent(directory.inode(), to);
                }
                Some(parent) => above = parent,
            }
        }
        debug_assert!(!from.is(&to), "a move is to another directory");
        Err(Errno::Invalid.into())
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        debug_assert!(
            self.chains.iter_mut().all(|chain| chain.first.get_mut().is_null()),
            "a directory ends with names in it"
        );
    }
}
