//! Transactions on objects that threads share, over any mechanism that has sessions:
//! [`mvrlu`](crate::mvrlu) or [`rlu`](crate::rlu).
//!
//! ```
//! use manycore::mvrlu::Domain;
//! use manycore::session::{self, Conflict};
//!
//! session::scope(&<Domain>::default(), |accounts| {
//!     let mut member = accounts.register();
//!     let (ours, theirs) = (member.create(100_u64), member.create(0_u64));
//!     member.run(|tx| {
//!         *tx.try_lock(ours)? -= 30;
//!         *tx.try_lock(theirs)? += 30;
//!         Ok(())
//!     });
//!     let sum = member.read(|snapshot| snapshot.deref(ours) + snapshot.deref(theirs));
//!     assert_eq!(sum, 100);
//! });
//! ```
//!
//! # What is safe, and why
//!
//! A [`Ptr`] bears the brand of the [`scope`] in which its object was made: a lifetime that no
//! other scope has. So pointers of one domain cannot get into sessions of another. The compiler
//! checks that, and the check costs nothing at run time. Objects are copied bytewise from version
//! to version, so they are `Copy`, and may have pointers of the same brand in them. A session is a
//! closure's argument: it cannot be used after its end, or be forgotten, and a panic in the closure
//! aborts it. A session is not `Send`, because it belongs to its thread.
//!
//! The compiler cannot see whether a pointer to a freed object is left somewhere, so
//! [`Transaction::free`] is `unsafe`. So is [`Transaction::alloc`], whose object is gone if the
//! transaction is aborted. [`Member::create`] is safe.

pub(crate) mod object;
pub(crate) mod pool;
pub(crate) mod retry_queue;

use core::marker::PhantomData;

pub use manycore_traits::{Conflict, Link, RawSession, Sessions, View};

pub use self::object::owned;

/// A lifetime that is like no other.
type Brand<'id> = PhantomData<fn(&'id ()) -> &'id ()>;

/// The requirements on an object: threads share it, and it is copied bytewise.
pub trait Object: Copy + Send + Sync {}

impl<T: Copy + Send + Sync> Object for T {}

/// Runs `f` with a domain whose pointers have a brand of their own.
pub fn scope<M: Sessions, R>(domain: &M, f: impl for<'id> FnOnce(Scope<'_, 'id, M>) -> R) -> R {
    f(Scope { domain, brand: PhantomData })
}

/// A domain, to threads of a [`scope`].
pub struct Scope<'a, 'id, M> {
    domain: &'a M,
    brand: Brand<'id>,
}

impl<M> Clone for Scope<'_, '_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Scope<'_, '_, M> {}

impl<'a, 'id, M: Sessions> Scope<'a, 'id, M> {
    /// Lets the calling thread take part.
    #[must_use]
    pub fn register(self) -> Member<'a, 'id, M> {
        Member { handle: self.domain.register(), brand: PhantomData }
    }
}

/// An object of a [`scope`]: where it is.
///
/// The referents have to live as long as the pointer is used, whichever thread has written it:
///
/// ```compile_fail
/// use manycore::{mvrlu, session};
///
/// let domain: mvrlu::Domain = mvrlu::Domain::default();
/// session::scope(&domain, |scope| {
///     let mut member = scope.register();
///     let name = member.create("outer");
///     {
///         let inner = String::from("inner");
///         // `inner` does not live long enough.
///         member.run(|transaction| Ok(*transaction.try_lock(name)? = inner.as_str()));
///     }
///     member.read(|now| println!("{}", now.deref(name)));
/// });
/// ```
///
/// ```
/// # use manycore::{mvrlu, session};
/// let domain: mvrlu::Domain = mvrlu::Domain::default();
/// session::scope(&domain, |scope| {
///     let mut member = scope.register();
///     let name = member.create("outer");
///     {
///         let inner = "inner";
///         member.run(|transaction| Ok(*transaction.try_lock(name)? = inner));
///     }
///     member.read(|now| assert_eq!(*now.deref(name), "inner"));
/// });
/// ```
pub struct Ptr<'id, T> {
    link: Link<T>,
    brand: Brand<'id>,
}

impl<T> Clone for Ptr<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<'_, T> {}

impl<T> PartialEq for Ptr<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.link == other.link
    }
}

impl<T> Eq for Ptr<'_, T> {}

impl<T> core::fmt::Debug for Ptr<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.link.fmt(f)
    }
}

/// A thread that takes part.
pub struct Member<'a, 'id, M: Sessions + 'a> {
    handle: M::Handle<'a>,
    brand: Brand<'id>,
}

/// A session that reads: it sees the state of one moment.
pub struct Snapshot<'s, 'id, S> {
    handle: &'s S,
    brand: Brand<'id>,
}

/// A session that may also write.
pub struct Transaction<'s, 'id, S: RawSession> {
    open: Open<'s, S>,
    brand: Brand<'id>,
}

opaque! {
    [M] Scope<'_, '_, M>, "Scope";
    [M: Sessions] Member<'_, '_, M>, "Member";
    [S] Snapshot<'_, '_, S>, "Snapshot";
    [S: RawSession] Transaction<'_, '_, S>, "Transaction";
}

/// A session that is aborted when this value is dropped, for example by a panic, unless it was
/// committed.
pub(crate) struct Open<'s, S: RawSession> {
    pub(crate) handle: &'s mut S,
    is_over: bool,
}

impl<'s, S: RawSession> Open<'s, S> {
    /// Begins a session; the handle is in none.
    #[inline]
    pub(crate) fn begin(handle: &'s mut S, view: View) -> Self {
        // SAFETY: handles are in no session between two calls here: `Open` borrows the handle
        // mutably and ends the session when it is dropped; if it is forgotten, the borrow lasts as
        // long as the handle.
        unsafe { handle.begin(view) };
        Self { handle, is_over: false }
    }

    /// If the session has met a conflict, it is aborted.
    #[inline]
    pub(crate) fn commit(mut self) -> Result<(), Conflict> {
        self.is_over = true;
        // SAFETY: `begin` has begun the session, and `is_over` shows that it has not ended.
        unsafe { self.handle.commit() }
    }

    /// Ends a session that has locked nothing, and so cannot have met a conflict.
    #[inline]
    pub(crate) fn end(self) {
        let ended = self.commit();
        debug_assert!(ended.is_ok(), "a session that has only read has met a conflict");
    }
}

impl<S: RawSession> Drop for Open<'_, S> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_over {
            // SAFETY: `begin` has begun the session, and `is_over` shows that it has not ended.
            unsafe { self.handle.abort() };
        }
    }
}

/// Runs `f` in sessions, until there is no conflict.
#[inline]
pub(crate) fn retry<S: RawSession, R>(
    handle: &mut S,
    view: View,
    mut f: impl FnMut(&mut S) -> Result<R, Conflict>,
) -> R {
    let mut attempts = 0;
    loop {
        let open = Open::begin(handle, view);
        // Dropped with an error, the session is aborted.
        let ended = f(open.handle).and_then(|result| open.commit().map(|()| result));
        match ended {
            Ok(result) => return result,
            // SAFETY: the `Open` has given `f` the handle, and has ended the session: by `commit`,
            // or when it was dropped.
            Err(conflict) => unsafe { handle.back_off(conflict, attempts) },
        }
        attempts += 1;
    }
}

/// Executes an operation in an open session. If the operation fails, or panics halfway, for example
/// in a key's `Ord`, the session can only abort.
///
/// # Safety
///
/// In a session.
#[inline]
pub(crate) unsafe fn whole<S: RawSession, R>(
    session: &mut S,
    operation: impl FnOnce(&mut S) -> Result<R, Conflict>,
) -> Result<R, Conflict> {
    struct Half<'s, S: RawSession>(&'s mut S, Option<Conflict>);
    impl<S: RawSession> Drop for Half<'_, S> {
        fn drop(&mut self) {
            if let Some(conflict) = self.1 {
                // SAFETY: `whole` was called in an open session (its contract), which outlives this
                // guard.
                unsafe { self.0.doom(conflict) };
            }
        }
    }
    let mut half = Half(session, Some(Conflict::Retry));
    let result = operation(half.0);
    half.1 = result.as_ref().err().copied();
    result
}

impl<'id, S: RawSession> Transaction<'_, 'id, S> {
    /// The transaction's view of an object: as it was when the transaction began, or with the
    /// transaction's own writes.
    #[inline]
    #[must_use]
    pub fn deref<T: Object>(&self, object: Ptr<'id, T>) -> &T {
        // SAFETY: `Transaction` exists only while its session is open. The brand proves that the
        // link comes from this domain, and no reachable object was freed (contract of `free`). The
        // session's view does not change before its end, except by `try_lock`, which borrows the
        // whole transaction.
        unsafe { &*self.open.handle.deref(object.link) }
    }

    /// Locks an object, and returns a copy that the caller may change. Other threads see the
    /// changes after the commit.
    ///
    /// # Errors
    ///
    /// If another thread has locked the object, or has changed or freed it since the transaction
    /// began; or if the log is full of versions that others may still read. After that the
    /// transaction can only abort: end it, for example by `?`.
    ///
    /// # Panics
    ///
    /// Under MV-RLU, if the transaction by itself fills a log of
    /// [`Config::segments_max`](crate::mvrlu::Config::segments_max) segments, or an object does not
    /// fit into one of [`Config::segment_bytes`](crate::mvrlu::Config::segment_bytes).
    #[inline]
    pub fn try_lock<T: Object>(&mut self, object: Ptr<'id, T>) -> Result<&mut T, Conflict> {
        // SAFETY: the session and the object are there as in `deref`. Only this session sees the
        // copy. While the copy is borrowed, the whole transaction is.
        unsafe { self.open.handle.try_lock(object.link).map(|data| &mut *data) }
    }

    /// Locks an object that the transaction has only read. If each transaction locks all objects on
    /// which it depends, there is no write skew: the result is as if the transactions had run one
    /// after the other.
    ///
    /// # Errors
    ///
    /// As of [`try_lock`](Self::try_lock).
    ///
    /// # Panics
    ///
    /// As of [`try_lock`](Self::try_lock).
    #[inline]
    pub fn try_lock_const<T: Object>(&mut self, object: Ptr<'id, T>) -> Result<(), Conflict> {
        // SAFETY: the `Transaction` exists only while its session is open, and the brand says that
        // this session has found the object.
        unsafe { self.open.handle.try_lock_const(object.link) }
    }

    /// A new object.
    ///
    /// # Safety
    ///
    /// If the transaction is aborted, the pointer is not used any more.
    #[inline]
    pub unsafe fn alloc<T: Object>(&mut self, data: T) -> Ptr<'id, T> {
        // SAFETY: `Transaction` is there only while its session is open.
        Ptr { link: unsafe { self.open.handle.alloc(data) }, brand: PhantomData }
    }

    /// Locks an object, and frees it with the commit.
    ///
    /// # Errors
    ///
    /// As of [`try_lock`](Self::try_lock).
    ///
    /// # Panics
    ///
    /// As of [`try_lock`](Self::try_lock).
    ///
    /// # Safety
    ///
    /// After the commit, no object has a pointer to it, and no code uses one that was read before.
    #[inline]
    pub unsafe fn free<T: Object>(&mut self, object: Ptr<'id, T>) -> Result<(), Conflict> {
        // SAFETY: the session and the object are there as in `deref`; that no object has a link to
        // it after the commit is the contract of this function.
        unsafe { self.open.handle.free(object.link) }
    }
}

impl<'id, S> Clone for Snapshot<'_, 'id, S> {
    fn clone(&self) -> Self {
        Self { handle: self.handle, brand: PhantomData::<fn(&'id ()) -> &'id ()> }
    }
}

impl<'s, 'id, S: RawSession> Snapshot<'s, 'id, S> {
    /// An object as it was at the snapshot's moment.
    #[inline]
    #[must_use]
    pub fn deref<T: Object>(&self, object: Ptr<'id, T>) -> &'s T {
        // SAFETY: `Snapshot` exists only while its session is open, which writes nothing, so its
        // view does not change. The brand proves that the link comes from this domain, and no
        // reachable object was freed (contract of `Transaction::free`).
        unsafe { &*self.handle.deref(object.link) }
    }

    /// Reads within this session, in a part of the program that elsewhere opens a session of its
    /// own: it sees the same moment.
    pub fn read<R>(&self, f: impl FnOnce(Self) -> R) -> R {
        f(self.clone())
    }
}

impl<'a, 'id, M: Sessions> Member<'a, 'id, M> {
    /// Reads objects as they are at one moment.
    pub fn read<R>(&mut self, f: impl FnOnce(Snapshot<'_, 'id, M::Handle<'a>>) -> R) -> R {
        let open = Open::begin(&mut self.handle, View::Snapshot);
        let result = f(Snapshot { handle: open.handle, brand: PhantomData });
        open.end();
        result
    }

    /// Runs `f` in a transaction, and commits the transaction unless there was a conflict. After a
    /// conflict it is as if `f` had not run.
    ///
    /// # Errors
    ///
    /// The result of `f`. If `f` has met a conflict and returns something else, the result is the
    /// conflict: the transaction cannot commit, whatever `f` returns.
    ///
    /// # Panics
    ///
    /// Under RLU, if this thread commits writes while it has another session of the domain open: it
    /// would wait for itself.
    pub fn attempt<R>(
        &mut self,
        f: impl FnOnce(&mut Transaction<'_, 'id, M::Handle<'a>>) -> Result<R, Conflict>,
    ) -> Result<R, Conflict> {
        let open = Open::begin(&mut self.handle, View::Snapshot);
        let mut transaction = Transaction { open, brand: PhantomData };
        let result = f(&mut transaction)?;
        transaction.open.commit().map(|()| result)
    }

    /// Runs `f` in a transaction, and repeats it after each conflict, also if `f` does not return
    /// the conflict. The pauses between attempts become longer. There is no limit: a caller that
    /// needs one uses [`attempt`](Self::attempt).
    ///
    /// # Panics
    ///
    /// As of [`attempt`](Self::attempt).
    pub fn run<R>(
        &mut self,
        mut f: impl FnMut(&mut Transaction<'_, 'id, M::Handle<'a>>) -> Result<R, Conflict>,
    ) -> R {
        let mut attempts = 0;
        loop {
            match self.attempt(&mut f) {
                Ok(result) => return result,
                // SAFETY: `attempt` has dropped its `Open`, which ends the session.
                Err(conflict) => unsafe { self.handle.back_off(conflict, attempts) },
            }
            attempts += 1;
        }
    }

    /// A new object, which exists until the domain's end or until it is freed.
    ///
    /// # Panics
    ///
    /// Under MV-RLU, if it is larger than 32,760 bytes, or does not fit into a segment of a log:
    /// see [`Config::segment_bytes`](crate::mvrlu::Config::segment_bytes). Under RLU such an object
    /// does not compile.
    pub fn create<T: Object>(&mut self, data: T) -> Ptr<'id, T> {
        let open = Open::begin(&mut self.handle, View::Latest);
        // SAFETY: `open` has begun the session, which `end` commits: so the object stays.
        let link = unsafe { open.handle.alloc(data) };
        open.end();
        Ptr { link, brand: PhantomData }
    }

    /// The mechanism's own handle, for what it has in addition to sessions.
    pub fn handle(&self) -> &M::Handle<'a> {
        &self.handle
    }
}
