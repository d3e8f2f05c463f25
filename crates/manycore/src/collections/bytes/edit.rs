//! Locked records, whose new values the caller chooses.
//!
//! Every step that may meet a conflict comes first: it locks the buckets, the pairs that may be
//! removed, and the entries of chains that may have to move. The later steps only change this
//! session's own copies.

use super::error::Error;
use super::handle::Handle;
use super::table::{Table, is, table};
use super::tally::Change;
use crate::clock::Clock;
use crate::collections::versioned::Bucket;
use crate::mvrlu::{self, Pair};
use crate::session::{Conflict, Link, RawSession, View};

/// Whether a place is locked where there is no record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Always,
    IfThere,
}

/// A record, or the place for one.
pub(super) struct Slot<'k> {
    pub key: &'k [u8],
    pub hash: usize,
    bucket: Link<Bucket<Pair, ()>>,
    /// As it was when it was locked.
    found: Option<Pair>,
    then: Then,
    /// The slot with the same key, if another slot has it.
    pub same: Option<usize>,
}

/// What becomes of it.
#[derive(Clone, Copy)]
pub(super) enum Then {
    Keep,
    Put(Pair),
    Remove,
}

impl<'k> Slot<'k> {
    pub fn new(key: &'k [u8], hash: usize) -> Self {
        let bucket = Link::NULL;
        Self { key, hash, bucket, found: None, then: Then::Keep, same: None }
    }

    fn now(&self) -> Option<Pair> {
        match self.then {
            Then::Keep => self.found,
            Then::Put(pair) => Some(pair),
            Then::Remove => None,
        }
    }
}

/// Why slots are not locked.
enum Stop {
    Conflict(Conflict),
    TooLarge,
}

impl From<Conflict> for Stop {
    fn from(conflict: Conflict) -> Self {
        Self::Conflict(conflict)
    }
}

/// Locked slots. A session is open, either the handle's transaction or a session for this edit, and
/// its thread has passed the gate.
pub(super) struct Edit<'h, 'm, C: Clock, T> {
    handle: &'h mut Handle<'m, C>,
    slots: T,
    table: *const Table,
    is_over: bool,
}

impl<'h, 'm, 'k, C: Clock, T: AsRef<[Slot<'k>]> + AsMut<[Slot<'k>]>> Edit<'h, 'm, C, T> {
    #[inline]
    pub fn lock(
        handle: &'h mut Handle<'m, C>,
        mut slots: T,
        wanted: Wanted,
    ) -> Result<Self, Error> {
        if slots.as_ref().iter().any(|slot| slot.key.len() > Pair::LONGEST) {
            return Err(Error::TooLong);
        }
        handle.look_for_failure()?;
        handle.pass_gate();
        let is_within = handle.is_in_transaction();
        let mut attempts = 0;
        loop {
            if !is_within {
                handle.raw.end_dying();
                // SAFETY: the handle is in no session: the callers have it mutably, and no
                // transaction is open (`is_within`).
                unsafe { handle.raw.begin(View::Latest) };
            }
            let root = handle.map.root;
            // SAFETY: the session is open, of the map's domain.
            let locked = unsafe {
                let table = core::ptr::from_ref(table(&handle.raw, root));
                lock_slots(&mut handle.raw, &*table, slots.as_mut(), wanted).map(|()| table)
            };
            let stop = match locked {
                Ok(table) => return Ok(Self { handle, slots, table, is_over: false }),
                Err(stop) => stop,
            };
            if !is_within {
                // SAFETY: `begin`, above, has begun the session, and nothing has ended it since.
                unsafe { handle.raw.abort() };
            }
            match stop {
                // SAFETY: `abort`, above, has just ended the session.
                Stop::Conflict(conflict) if !is_within => unsafe {
                    handle.raw.back_off(conflict, attempts);
                },
                stop => {
                    handle.fail();
                    handle.leave_gate();
                    return Err(match stop {
                        Stop::Conflict(_) => Error::Failed,
                        Stop::TooLarge => Error::TooLarge,
                    });
                }
            }
            attempts += 1;
        }
    }

    fn index(&self, index: usize) -> usize {
        self.slots.as_ref()[index].same.unwrap_or(index)
    }

    #[inline]
    pub fn value(&self, index: usize) -> Option<&[u8]> {
        let pair = self.slots.as_ref()[self.index(index)].now()?;
        // SAFETY: the session is open, and the pair was found in it or made by it.
        Some(unsafe { pair.get() }.1)
    }

    #[inline]
    pub fn then(&mut self, index: usize, then: Then) {
        let index = self.index(index);
        let before = core::mem::replace(&mut self.slots.as_mut()[index].then, then);
        if let Then::Put(pair) = before {
            // SAFETY: it was made here, and no other thread has it.
            unsafe { self.handle.raw.end_pair(pair) };
        }
    }

    #[inline]
    pub fn put(&mut self, index: usize, value: &[u8]) -> Result<(), Error> {
        if value.len() > Pair::LONGEST {
            return Err(Error::TooLong);
        }
        let key = self.slots.as_ref()[index].key;
        let pair = self.handle.raw.make_pair(key, value);
        self.then(index, Then::Put(pair));
        Ok(())
    }

    /// Commits: others see all changes at one moment.
    #[inline]
    pub fn commit(mut self) {
        self.is_over = true;
        // SAFETY: the session is open, and has found the table.
        let table = unsafe { &*self.table };
        // SAFETY: the session has locked the slots.
        let change = unsafe { apply(&mut self.handle.raw, table, self.slots.as_ref()) };
        let change = change.expect("all of it is locked");
        if self.handle.is_in_transaction() {
            self.handle.has_changed_within(table, change);
            return;
        }
        // SAFETY: `lock` has begun the session, and nothing has ended it since.
        unsafe { self.handle.raw.commit() }.expect("there was no conflict");
        if change != Change::default() {
            self.handle.has_changed(table, change);
        }
        self.handle.leave_gate();
    }
}

impl<C: Clock, T> Drop for Edit<'_, '_, C, T> {
    /// Drops the decisions. Within a transaction, the slots remain locked.
    fn drop(&mut self) {
        if self.is_over || self.handle.is_in_transaction() {
            return;
        }
        // SAFETY: `lock` has begun the session, and nothing has ended it since.
        unsafe { self.handle.raw.abort() };
        self.handle.leave_gate();
    }
}

/// # Safety
///
/// The caller is in the session of the table's domain that has found the slot. If this function
/// fails, that session can only be aborted.
#[inline]
unsafe fn lock_slots<C: Clock>(
    session: &mut mvrlu::Handle<'_, C>,
    table: &Table,
    slots: &mut [Slot<'_>],
    wanted: Wanted,
) -> Result<(), Stop> {
    let count = slots.len();
    let mut all = slots.iter_mut().filter(|slot| slot.same.is_none());
    // SAFETY: the session is one of the table\'s domain, and is aborted if this fails (contract of
    // this function).
    all.try_for_each(|slot| unsafe { lock_slot(session, table, slot, count, wanted) })
}

/// # Safety
///
/// As of [`lock_slots`], for one slot of `count`.
#[inline]
unsafe fn lock_slot<C: Clock>(
    session: &mut mvrlu::Handle<'_, C>,
    table: &Table,
    slot: &mut Slot<'_>,
    count: usize,
    wanted: Wanted,
) -> Result<(), Stop> {
    // SAFETY: the session is open, and objects that it finds stay until its end (contract of this
    // function). The bucket that it has locked does not change, nor does the bucket's chain.
    unsafe {
        let (link, number, seen) = table.find(session, slot.hash);
        slot.bucket = link;
        slot.found = None;
        let is_sure = wanted == Wanted::IfThere && seen.has_no_chain();
        if is_sure && seen.find(session, slot.hash, is(slot.key)).is_none() {
            return Ok(());
        }
        if !session.has_room() {
            return Err(Stop::TooLarge);
        }
        session.try_lock_const(link)?;
        let bucket = &*core::ptr::from_ref(&*session.deref(link));
        if !bucket.has(slot.hash, number) {
            return Err(Conflict::Retry.into());
        }
        slot.found = bucket.find(session, slot.hash, is(slot.key)).map(|(pair, ())| *pair);
        if !bucket.has_no_chain() {
            bucket.lock_chain(session, count, |pair| Some(*pair) == slot.found)?;
        }
        if let Some(pair) = slot.found {
            session.lock_pair(pair)?;
        }
    }
    Ok(())
}

/// Applies the decisions to the slots. Removals come first, so that no new entry is freed.
///
/// # Safety
///
/// In the session that has locked them.
#[inline]
unsafe fn apply<C: Clock>(
    session: &mut mvrlu::Handle<'_, C>,
    table: &Table,
    slots: &[Slot<'_>],
) -> Result<Change, Conflict> {
    let mut change = Change::default();
    // SAFETY: the session has locked the buckets (contract of this function), and so `try_lock`
    // returns its own copies, one after the other. Each new pair is put into one bucket once, and
    // removed pairs are in no bucket afterwards.
    unsafe {
        for slot in slots {
            if let (Some(old), Then::Remove) = (slot.found, slot.then) {
                let bucket = &mut *session.try_lock(slot.bucket)?;
                let (spot, ()) =
                    bucket.locate(session, slot.hash, |pair| *pair == old).expect(FOUND);
                bucket.remove(session, spot, |pair| table.hash_of(pair))?;
                session.free_pair(old)?;
                change = change.and(Change { records: -1, bytes: -length(old) });
            }
        }
        for slot in slots {
            let Then::Put(new) = slot.then else { continue };
            let bucket = &mut *session.try_lock(slot.bucket)?;
            let mut more = Change { records: 1, bytes: length(new) };
            match slot.found {
                Some(old) => {
                    let located = bucket.locate(session, slot.hash, |pair| *pair == old);
                    bucket.replace_key(session, located.expect(FOUND).0, new)?;
                    session.free_pair(old)?;
                    more = more.and(Change { records: -1, bytes: -length(old) });
                }
                None => bucket.add(session, slot.hash, new, ()),
            }
            session.claim_pair(new);
            change = change.and(more);
        }
    }
    Ok(change)
}

const FOUND: &str = "what was found in a bucket that is locked is there";

/// Bytes of the key and the value.
///
/// # Safety
///
/// The pair is there.
unsafe fn length(pair: Pair) -> isize {
    // SAFETY: the pair is there (contract of this function).
    let (key, value) = unsafe { pair.get() };
    (key.len() + value.len()).cast_signed()
}
