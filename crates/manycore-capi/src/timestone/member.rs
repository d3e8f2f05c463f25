//! Threads, and their transactions.

use core::ffi::c_int;
use std::sync::atomic::Ordering;
use std::time::Duration;

use timestone::{Durability, Member, Session, Snapshot, Stop, Transaction};

use super::config::{Kind, durability};
use super::store::TsStore;
use super::{give, refuse, stopped};
use crate::process::holder;
use crate::status::Status;

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
}

/// What is open.
pub enum Open {
    Nothing,
    /// And what has stopped it, if something has.
    Transaction(Transaction<'static, 'static>, Option<Stop>),
    Snapshot(Snapshot<'static, 'static>),
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
    // SAFETY: the contract of this function.
    match &mut unsafe { get(me) }?.session {
        Open::Nothing => Err(Status::NoSession),
        Open::Snapshot(_) => Err(Status::ReadsOnly),
        Open::Transaction(_, Some(stop)) => Err(stopped(stop)),
        Open::Transaction(tx, stop) => f(tx).map_err(|found| {
            let status = stopped(&found);
            // After a conflict it cannot commit; after another error it may, without what failed.
            if matches!(found, Stop::Conflict(_)) {
                *stop = Some(found);
            }
            status
        }),
    }
}

/// What reads, in any session.
pub trait Look {
    type Seen;
    fn look(self, session: &impl Session) -> Self::Seen;
}

/// Reads in what is open.
///
/// # Safety
///
/// As of [`get`].
pub unsafe fn read<L: Look>(me: *mut TsMember, look: L) -> Result<L::Seen, Status> {
    // SAFETY: the contract of this function.
    match &unsafe { get(me) }?.session {
        Open::Nothing => Err(Status::NoSession),
        Open::Snapshot(snapshot) => Ok(look.look(snapshot)),
        Open::Transaction(tx, _) => Ok(look.look(tx)),
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
            let me = TsMember { session, member, store, thread, attempts: 0 };
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
    // SAFETY: the contract of this function.
    let found = match unsafe { get(me) } {
        Ok(found) => found,
        Err(status) => return status,
    };
    if !matches!(found.session, Open::Nothing) {
        return Status::Busy;
    }
    let store = found.store;
    // SAFETY: `ts_register` has made boxes of both, no session borrows the member, and nobody uses
    // them any more (contract of this function). The store is there: it is busy until this.
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
    // SAFETY: the contract of this function.
    let (me, kind) = match (unsafe { get(me) }, Kind::of(kind)) {
        (Ok(me), Ok(kind)) => (me, kind),
        (Err(status), _) | (_, Err(status)) => return status,
    };
    if !matches!(me.session, Open::Nothing) {
        return Status::Busy;
    }
    // SAFETY: `ts_register` has made a box of it, which is there until `ts_unregister`; that finds
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
    // SAFETY: the contract of this function.
    let me = match unsafe { get(me) } {
        Ok(me) => me,
        Err(status) => return status,
    };
    match core::mem::replace(&mut me.session, Open::Nothing) {
        Open::Nothing => Status::NoSession,
        Open::Transaction(tx, Some(stop)) => {
            drop(tx);
            me.back_off(&stop)
        }
        Open::Snapshot(_) | Open::Transaction(_, None) => Status::Ok,
    }
}

/// # Safety
///
/// As of `ts_unregister`; null, or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_commit(me: *mut TsMember, how: c_int, ticket: *mut u64) -> Status {
    // SAFETY: the contract of this function.
    let found = match unsafe { get(me) } {
        Ok(found) => found,
        Err(status) => return status,
    };
    // SAFETY: the store is there: it is busy while a member is registered.
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
    // SAFETY: the contract of this function.
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

    /// # Safety
    ///
    /// Null, or a pointer that may be written.
    unsafe fn commit(&mut self, durability: Durability, ticket: *mut u64) -> Status {
        let (tx, stop) = match core::mem::replace(&mut self.session, Open::Nothing) {
            Open::Nothing => return Status::NoSession,
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
        // SAFETY: `ts_register` has made a box of it, which is there until `ts_unregister`; the
        // callers have ended the session that borrowed it.
        let member = unsafe { &mut *self.member };
        let backed_off = member.back_off(*conflict, self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        super::status(backed_off)
    }
}
