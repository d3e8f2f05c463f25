//! Threads, and their transactions.

use core::ffi::c_int;
use core::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::time::Duration;

use timestone::untyped::ByteMap;
use timestone::{Durability, Member, Session, Snapshot, Stop, Transaction};

use super::config::{Kind, durability};
use super::store::{TsMap, TsStore};
use super::{give, refuse, stopped};
use manycore_capi_base::process::holder;
use manycore_capi_base::status::Status;

/// `ts_member_t`.
pub struct TsMember {
    /// Borrows what `member` leads to, and so it ends before.
    session: Open,
    member: *mut Member<'static>,
    store: *const TsStore,
    /// The thread that has registered.
    thread: u32,
    /// Conflicts since the last commit.
    attempts: u32,
    /// Maps that an operation has asked for; it has no others.
    #[allow(clippy::vec_box, reason = "the program has their addresses")]
    maps: Vec<Box<TsMap>>,
}

/// What is open.
pub enum Open {
    Nothing,
    /// And what has stopped it, if something has.
    Transaction(Transaction<'static, 'static>, Option<Stop>),
    Snapshot(Snapshot<'static, 'static>),
    /// The transaction of an operation, which the operation's caller ends; and the error that has
    /// stopped it.
    Called(NonNull<Transaction<'static, 'static>>, Option<Stop>),
    /// The thread calls an operation, which has another member.
    Calling,
}

/// The caller's member.
///
/// # Safety
///
/// Null, or from `ts_register` and not unregistered; one thread uses it at a time.
pub unsafe fn get<'a>(me: *mut TsMember) -> Result<&'a mut TsMember, Status> {
    // SAFETY: null, or a member that no other thread uses now (contract of this function).
    let me = unsafe { me.as_mut() }.ok_or(Status::Null)?;
    if me.thread == holder() { Ok(me) } else { Err(Status::NotOwner) }
}

/// Does something in the transaction that is open.
///
/// # Safety
///
/// As of [`get`].
pub unsafe fn change<R>(
    me: *mut TsMember,
    f: impl FnOnce(&mut Transaction<'static, 'static>) -> Result<R, Stop>,
) -> Result<R, Status> {
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    let (tx, stop) = match &mut unsafe { get(me) }?.session {
        Open::Nothing => return Err(Status::NoSession),
        Open::Snapshot(_) => return Err(Status::ReadsOnly),
        Open::Calling => return Err(Status::Busy),
        Open::Transaction(tx, stop) => (tx, stop),
        // SAFETY: it is valid until the operation returns, and is reached through this member only.
        Open::Called(tx, stop) => (unsafe { tx.as_mut() }, stop),
    };
    if let Some(stop) = stop {
        return Err(stopped(stop));
    }
    f(tx).map_err(|found| {
        let status = stopped(&found);
        // After a conflict it cannot commit; after another error it may, without the failed change.
        if !matches!(found, Stop::Error(_)) {
            *stop = Some(found);
        }
        status
    })
}

/// What reads, in any session.
pub trait Query {
    type Seen;
    fn run(self, session: &impl Session) -> Self::Seen;
}

/// Reads in what is open.
///
/// # Safety
///
/// As of [`get`].
pub unsafe fn read<L: Query>(me: *mut TsMember, query: L) -> Result<L::Seen, Status> {
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    match &unsafe { get(me) }?.session {
        Open::Nothing => Err(Status::NoSession),
        Open::Calling => Err(Status::Busy),
        Open::Snapshot(snapshot) => Ok(query.run(snapshot)),
        Open::Transaction(tx, _) => Ok(query.run(tx)),
        // SAFETY: it is valid until the operation returns, and is reached through this member only.
        Open::Called(tx, _) => Ok(query.run(unsafe { tx.as_ref() })),
    }
}

/// # Safety
///
/// Null, or a store that is open; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_register(store: *mut TsStore, out: *mut *mut TsMember) -> Status {
    // SAFETY: the contract of this function. It is there until `ts_close`, which finds it busy
    // until `ts_unregister`.
    let Some(found) = (unsafe { store.cast_const().as_ref::<'static>() }) else {
        return Status::Null;
    };
    if out.is_null() {
        return Status::Null;
    }
    // Relaxed: only counts; a close is not called at the same time.
    found.members.fetch_add(1, Ordering::Relaxed);
    match found.store.register() {
        Err(error) => {
            found.members.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above
            refuse(&error)
        }
        Ok(member) => {
            let member = Box::into_raw(Box::new(member));
            let (session, thread) = (Open::Nothing, holder());
            let (attempts, maps) = (0, Vec::new());
            let me = TsMember { session, member, store, thread, attempts, maps };
            // SAFETY: `out` is not null, and so it may be written (contract of this function).
            unsafe { give(out, Box::into_raw(Box::new(me))) }
        }
    }
}

/// # Safety
///
/// Null, or from `ts_register` and not unregistered; one thread uses it at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_unregister(me: *mut TsMember) -> Status {
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    let found = match unsafe { get(me) } {
        Ok(found) => found,
        Err(status) => return status,
    };
    if !matches!(found.session, Open::Nothing) {
        return Status::Busy;
    }
    let store = found.store;
    // SAFETY: `ts_register` has made boxes of both, no session borrows the member, and no code uses
    // them any more (contract of this function). The store exists: it is busy until this.
    unsafe {
        let me = Box::from_raw(me);
        drop(Box::from_raw(me.member));
        // Release: partner of the Acquire in `ts_close`.
        (*store).members.fetch_sub(1, Ordering::Release);
    }
    Status::Ok
}

/// # Safety
///
/// As of `ts_unregister`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_begin(me: *mut TsMember, kind: c_int) -> Status {
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    let (me, kind) = match (unsafe { get(me) }, Kind::of(kind)) {
        (Ok(me), Ok(kind)) => (me, kind),
        (Err(status), _) | (_, Err(status)) => return status,
    };
    if !matches!(me.session, Open::Nothing) {
        return Status::Busy;
    }
    // SAFETY: `ts_register` has made a box of it, which is valid until `ts_unregister`; that finds
    // it busy while a session borrows it, and no session does now.
    let member: &'static mut Member<'static> = unsafe { &mut *me.member };
    me.session = match kind {
        Kind::Durable => Open::Snapshot(member.begin_read()),
        Kind::Latest => Open::Snapshot(member.begin_read_latest()),
        Kind::Transaction(isolation) => match member.begin(isolation) {
            Ok(tx) => Open::Transaction(tx, None),
            Err(error) => return refuse(&error),
        },
    };
    Status::Ok
}

/// # Safety
///
/// As of `ts_unregister`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_abort(me: *mut TsMember) -> Status {
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    let me = match unsafe { get(me) } {
        Ok(me) => me,
        Err(status) => return status,
    };
    if me.is_in_call() {
        return Status::Busy;
    }
    match core::mem::replace(&mut me.session, Open::Nothing) {
        Open::Transaction(tx, Some(stop)) => {
            drop(tx);
            me.back_off(&stop)
        }
        Open::Snapshot(_) | Open::Transaction(_, None) => Status::Ok,
        Open::Nothing | Open::Called(..) | Open::Calling => Status::NoSession,
    }
}

/// # Safety
///
/// As of `ts_unregister`; null, or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_commit(me: *mut TsMember, how: c_int, ticket: *mut u64) -> Status {
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    let found = match unsafe { get(me) } {
        Ok(found) => found,
        Err(status) => return status,
    };
    // SAFETY: the store exists: it is busy while a member is registered.
    let window = unsafe { &*found.store }.window;
    match durability(how, window) {
        // SAFETY: null, or it may be written (contract of this function).
        Ok(durability) => unsafe { found.commit(durability, ticket) },
        Err(status) => status,
    }
}

/// # Safety
///
/// As of `ts_commit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_commit_within(
    me: *mut TsMember,
    window_ns: u64,
    ticket: *mut u64,
) -> Status {
    let window = Duration::from_nanos(window_ns);
    // SAFETY: `me` is null or a member that this thread uses (contract of this function).
    match unsafe { get(me) } {
        // SAFETY: null, or it may be written (contract of this function).
        Ok(found) => unsafe { found.commit(Durability::Eventual { window }, ticket) },
        Err(status) => status,
    }
}

impl TsMember {
    /// Whether it is a thread of this store.
    pub fn is_of(&self, store: *const TsStore) -> bool {
        core::ptr::eq(self.store, store)
    }

    /// That of an operation, which works on this transaction.
    pub fn called(tx: NonNull<Transaction<'static, 'static>>, store: *const TsStore) -> Self {
        let (session, member, thread) = (Open::Called(tx, None), core::ptr::null_mut(), holder());
        Self { session, member, store, thread, attempts: 0, maps: Vec::new() }
    }

    /// What has stopped the operation, at its end.
    pub fn into_stop(self) -> Option<Stop> {
        if let Open::Called(_, stop) = self.session { stop } else { None }
    }

    /// Whether an operation has it, or its thread calls one: nothing begins or ends then.
    fn is_in_call(&self) -> bool {
        matches!(self.session, Open::Called(..) | Open::Calling)
    }

    /// Whether an operation has it.
    pub fn is_called(&self) -> bool {
        matches!(self.session, Open::Called(..))
    }

    /// Keeps a map until the operation's end.
    pub fn keep(&mut self, map: ByteMap) -> *const TsMap {
        self.maps.push(Box::new(TsMap { store: self.store, map }));
        self.maps.last().map_or(core::ptr::null(), |map| &raw const **map)
    }

    /// Has the thread call a function in a transaction of its own; the thread has no other one.
    pub fn call<R>(
        &mut self,
        f: impl FnOnce(&mut Member<'static>, *const TsStore) -> R,
    ) -> Result<R, Status> {
        if !matches!(self.session, Open::Nothing) {
            return Err(Status::Busy);
        }
        self.session = Open::Calling;
        // SAFETY: `ts_register` has made a box of it, which is valid until `ts_unregister`; that
        // finds it busy, and no session borrows it.
        let result = f(unsafe { &mut *self.member }, self.store);
        self.session = Open::Nothing;
        Ok(result)
    }

    /// # Safety
    ///
    /// Null, or a pointer that may be written.
    unsafe fn commit(&mut self, durability: Durability, ticket: *mut u64) -> Status {
        if self.is_in_call() {
            return Status::Busy;
        }
        let (tx, stop) = match core::mem::replace(&mut self.session, Open::Nothing) {
            Open::Nothing | Open::Called(..) | Open::Calling => return Status::NoSession,
            Open::Snapshot(_) => return Status::Ok,
            Open::Transaction(tx, stop) => (tx, stop),
        };
        let committed = match stop {
            None => tx.commit(),
            Some(stop) => {
                drop(tx);
                Err(stop)
            }
        };
        let committed = match committed {
            Ok(committed) => committed,
            Err(stop) => {
                return match self.back_off(&stop) {
                    Status::Ok => stopped(&stop),
                    failed => failed,
                };
            }
        };
        self.attempts = 0;
        if !ticket.is_null() {
            // SAFETY: not null, and so it may be written (contract of this function).
            unsafe { ticket.write(committed.stamp()) };
        }
        super::status(committed.wait_for(durability))
    }

    /// Waits after a conflict, in no session.
    fn back_off(&mut self, stop: &Stop) -> Status {
        let Stop::Conflict(conflict) = stop else { return Status::Ok };
        // SAFETY: `ts_register` has made a box of it, which is valid until `ts_unregister`; the
        // callers have ended the session that borrowed it.
        let member = unsafe { &mut *self.member };
        let backed_off = member.back_off(*conflict, self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        super::status(backed_off)
    }
}
