//! Sessions: reading and writing objects that many threads share, as of one moment.
//!
//! This is the base for data structures over any mechanism that implements it. It checks nothing;
//! see the safe interface in the library `manycore`.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

/// An object's address, as it is stored in other objects; or null.
///
/// An object is read and written through a link, as through a `&mut T`. So a link to a type may not
/// be used as one to a shorter-lived or a longer-lived type (invariance).
#[repr(transparent)]
pub struct Link<T>(*mut (), PhantomData<fn(T) -> T>);

// SAFETY: a link is a bare address: nothing of `T` can be reached through it in safe code, so
// another thread may have and copy it.
unsafe impl<T> Send for Link<T> {}
// SAFETY: sharing a link gives other threads only copies of the address.
unsafe impl<T> Sync for Link<T> {}

impl<T> Link<T> {
    /// Leads nowhere.
    pub const NULL: Self = Self(core::ptr::null_mut(), PhantomData);

    /// For implementations of a mechanism: the link that leads to this place.
    #[inline]
    pub const fn from_ptr(object: *mut ()) -> Self {
        Self(object, PhantomData)
    }

    /// Where it leads.
    #[inline]
    #[must_use]
    pub const fn as_ptr(self) -> *mut () {
        self.0
    }

    /// Whether it leads nowhere.
    #[inline]
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T> Clone for Link<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Link<T> {}

impl<T> Default for Link<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T> PartialEq for Link<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Link<T> {}

impl<T> Hash for Link<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> fmt::Debug for Link<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({:p})", self.0)
    }
}

/// Why a session cannot lock an object, and has to be given up and begun anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// Another thread has locked the object.
    Locked,
    /// Another thread has changed the object since the session began.
    Changed,
    /// Another thread has freed the object.
    Freed,
    /// There is no room for another version before old ones can be discarded.
    Full,
    /// A conflict that the caller itself has found in what it has read.
    Retry,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Locked => "another thread has locked the object",
            Self::Changed => "another thread has changed the object",
            Self::Freed => "another thread has freed the object",
            Self::Full => "there is no room for another version yet",
            Self::Retry => "the transaction asked to be run again",
        })
    }
}

impl core::error::Error for Conflict {}

/// What a session sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The state as of one moment, the session's begin.
    Snapshot,
    /// Sees of each object what is committed when the session reads it. Cheaper to begin; two
    /// objects may be read as they never were at the same time, which the caller has to expect.
    Latest,
}

/// A mechanism with sessions, and the objects that threads use through it.
///
/// # Safety
///
/// The methods of the handles keep their documented contracts. In particular, objects that a
/// session has read do not change until the session's end, except by the session's own writes.
pub unsafe trait Sessions: Send + Sync + Sized {
    /// What one thread has sessions with.
    type Handle<'a>: RawSession
    where
        Self: 'a;

    /// The calling thread's access. May allocate; keep it for as long as the thread takes part.
    fn register(&self) -> Self::Handle<'_>;

    /// Visits the counts so far: a name and a number each, such as aborted attempts.
    fn statistics(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
}

/// A thread's access to objects: at most one session at a time.
///
/// # Safety
///
/// As for [`Sessions`].
pub unsafe trait RawSession {
    /// Begins a session.
    ///
    /// # Safety
    ///
    /// No session of this handle is open.
    unsafe fn begin(&mut self, view: View);

    /// What the session sees of an object, or has written itself.
    ///
    /// # Safety
    ///
    /// In a session. The link is not null, and was found in it: it leads to an object of this
    /// mechanism that was not freed, or by a commit that this session does not see.
    unsafe fn deref<T: Copy>(&self, link: Link<T>) -> *const T;

    /// Locks an object, and returns a copy of it, to be changed; others see the change after the
    /// commit. The data is the session's view, or under [`View::Latest`] the last committed data:
    /// the caller then checks whether it is as expected.
    ///
    /// # Errors
    ///
    /// [`Conflict::Locked`], [`Changed`](Conflict::Changed), [`Freed`](Conflict::Freed) or
    /// [`Full`](Conflict::Full); the session can then only abort: see [`commit`](Self::commit).
    /// This does not hold if the session itself has freed the object.
    ///
    /// # Panics
    ///
    /// If the session by itself wants more room than the mechanism is configured to have.
    ///
    /// # Safety
    ///
    /// As for [`deref`](Self::deref).
    unsafe fn try_lock<T: Copy>(&mut self, link: Link<T>) -> Result<*mut T, Conflict>;

    /// Locks an object that the session will not change, up to the session's end. If all
    /// transactions do this with objects that they have only read, their commits are as if they had
    /// run one after the other (no write skew).
    ///
    /// # Safety
    ///
    /// As for [`deref`](Self::deref).
    unsafe fn try_lock_const<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict>;

    /// The committed data of an object that no other session has locked now, as for
    /// [`View::Latest`]. The check comes after all locks that this session has taken: if two
    /// sessions each lock an object and then read the other's, at most one succeeds. So sessions
    /// that depend on objects that many read, and few change, need not lock these against each
    /// other.
    ///
    /// # Errors
    ///
    /// As of [`try_lock`](Self::try_lock): another session has locked the object, or has freed it.
    ///
    /// # Safety
    ///
    /// As for [`deref`](Self::deref), in a session of [`View::Latest`].
    unsafe fn read_unlocked<T: Copy>(&mut self, link: Link<T>) -> Result<*const T, Conflict> {
        // SAFETY: the contract of this function. No other session has locked the object.
        unsafe {
            self.try_lock_const(link)?;
            Ok(self.deref(link))
        }
    }

    /// A new object. If the session is aborted, there is no such object.
    ///
    /// # Safety
    ///
    /// In a session.
    unsafe fn alloc<T: Copy>(&mut self, data: T) -> Link<T>;

    /// Locks an object, and frees it with the session's commit.
    ///
    /// # Safety
    ///
    /// As for [`deref`](Self::deref); and after the commit no object has a link to it.
    unsafe fn free<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict>;

    /// A new object that owns its value: no thread changes it, and its end drops the value. It may
    /// be made in a session or between two, belongs to neither, and is the caller's until a commit
    /// has a link to it.
    ///
    /// # Panics
    ///
    /// If the value is larger than the mechanism's largest object, or aligned to more than 32
    /// bytes.
    fn make_owned<T: Send + Sync + 'static>(&mut self, value: T) -> Link<T>;

    /// Ends an object from [`make_owned`](Self::make_owned); its value is dropped by
    /// [`end_dying`](Self::end_dying).
    ///
    /// # Safety
    ///
    /// It is of this mechanism; no commit has had a link to it, and no code uses it from now on.
    unsafe fn end_owned<T: Send + Sync + 'static>(&mut self, link: Link<T>);

    /// If the session is aborted, ends the object as by [`end_owned`](Self::end_owned).
    ///
    /// # Safety
    ///
    /// In a session; once for an object from [`make_owned`](Self::make_owned), to which no commit
    /// has had a link, and which has one if this session commits.
    unsafe fn claim_owned<T: Send + Sync + 'static>(&mut self, link: Link<T>);

    /// Frees an object from [`make_owned`](Self::make_owned) with the session's commit: its value
    /// is dropped when no session is open that may have found it, by the
    /// [`end_dying`](Self::end_dying) of any handle, or at the mechanism's end.
    ///
    /// # Errors
    ///
    /// As of [`free`](Self::free).
    ///
    /// # Safety
    ///
    /// As for [`free`](Self::free).
    unsafe fn free_owned<T: Send + Sync + 'static>(
        &mut self,
        link: Link<T>,
    ) -> Result<(), Conflict>;

    /// Drops the values of objects that have ended, and that no thread has any more, as far as this
    /// handle knows of them: here, and nowhere else, destructors of values run. To be called now
    /// and then, where they may panic.
    ///
    /// # Panics
    ///
    /// If a destructor does. The others run when it is called again, or at the mechanism's end.
    fn end_dying(&mut self);

    /// Locks an object that lies permanently in its owner's memory: after the grace period of the
    /// commit, the mechanism does not touch it any more.
    ///
    /// # Errors
    ///
    /// As of [`free`](Self::free).
    ///
    /// # Safety
    ///
    /// As for [`free`](Self::free); the memory stays until what [`free_owned`](Self::free_owned)
    /// frees in this or a later session of the same handle is dropped.
    unsafe fn free_in_place<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict>;

    /// The handle is the calling thread's now: another has passed it on, in no session. Reports
    /// then name this one.
    fn adopt(&mut self) {}

    /// How many objects of this type one session can lock or free, with room for a few others.
    fn locks_max<T: Copy>(&self) -> usize {
        usize::MAX
    }

    /// Dooms the session, whose user has found a conflict or has panicked halfway: it can only
    /// abort.
    ///
    /// # Safety
    ///
    /// In a session.
    unsafe fn doom(&mut self, conflict: Conflict);

    /// Ends the session; all that it has written is seen by others, at once.
    ///
    /// # Errors
    ///
    /// Returns the first conflict that the session has met. Then the session ends as by
    /// [`abort`](Self::abort), even if its user has ignored the conflict: its writes may be only a
    /// part of a consistent change.
    ///
    /// # Safety
    ///
    /// In a session. It has ended when this returns, whatever the result.
    unsafe fn commit(&mut self) -> Result<(), Conflict>;

    /// Ends the session as if it had not been.
    ///
    /// # Safety
    ///
    /// In a session.
    unsafe fn abort(&mut self);

    /// After an abort: waits a little, the longer the more attempts there were, or until there is
    /// room.
    ///
    /// # Safety
    ///
    /// In no session.
    unsafe fn back_off(&mut self, conflict: Conflict, attempts: u32);
}
