//! A key or a value as nodes store it. Nodes are copied bytewise, so a number is stored itself, and
//! for any other value the address of an object that owns it.
//!
//! ```text
//!   u64, i32, bool, (), ...          String, Vec<u8>, structs, ...
//!   +-----------+                    +-----------+       object
//!   |   value   |                    |  link  ---+-----> | head | value |
//!   +-----------+                    +-----------+
//! ```
//!
//! The object never changes. A commit that removes the word from the map frees the object. The
//! thread that reclaims it drops it, once, when no session is open that may have found it.
//!
//! The [`TypeId`] says whether a type is one of the numbers; the compiler evaluates that test.
//! Every `Copy` type could be stored in the word, but generic code cannot test for `Copy`. A type
//! without a destructor could not: it may be an atomic, whose copies would then differ.

use alloc::boxed::Box;
use core::any::TypeId;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};

use crate::session::object::{OWNED_MAX, drop_owned, owned};
use crate::session::{Conflict, Link, RawSession};

/// The requirements on keys and values: they may move to another thread, are shared, and may be
/// dropped after their map.
pub trait Datum: Send + Sync + 'static {}

impl<T: Send + Sync + 'static> Datum for T {}

/// A key or a value in a node. Its contents are valid only in sessions: see [`get`](Self::get).
#[repr(transparent)]
pub struct Word<T>(MaybeUninit<*mut ()>, PhantomData<fn(T) -> T>);

opaque! { [T] Word<T>, "Word"; }

// SAFETY: a word leads to a `T`, or is itself a number of that type.
unsafe impl<T: Send + Sync> Send for Word<T> {}
// SAFETY: a shared word gives a shared reference to a `T`, which is `Sync`.
unsafe impl<T: Send + Sync> Sync for Word<T> {}

impl<T> Clone for Word<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Word<T> {}

/// Whether a value is stored in the word itself: its type is copied bytewise, has no padding, and
/// fits.
#[inline]
fn is_inline<T: 'static>() -> bool {
    macro_rules! is_one_of {
        ($($type:ty)*) => { $(TypeId::of::<T>() == TypeId::of::<$type>())||* };
    }
    size_of::<T>() <= size_of::<Word<T>>()
        && align_of::<T>() <= align_of::<Word<T>>()
        && is_one_of!(() bool char u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64)
}

/// Whether it is too large for an object, which then has a box.
const fn is_large<T>() -> bool {
    size_of::<T>() > OWNED_MAX || align_of::<T>() > 16
}

impl<T: Datum> Word<T> {
    /// What no node counts as an entry.
    pub const NONE: Self = Self(MaybeUninit::uninit(), PhantomData);

    /// Makes the word of a new object, or of a number. It belongs to the caller until a commit has
    /// put it into a node.
    #[inline]
    pub fn new<S: RawSession>(handle: &mut S, value: T) -> Self {
        let mut word = Self::NONE;
        if is_inline::<T>() {
            // SAFETY: the word is as large and as aligned as such a type needs.
            unsafe { word.0.as_mut_ptr().cast::<T>().write(value) };
        } else if is_large::<T>() {
            word.0.write(handle.make_owned(Box::new(value)).as_ptr());
        } else {
            word.0.write(handle.make_owned(value).as_ptr());
        }
        word
    }

    /// Makes the word of a new object, or of a number; the object ends if the session is aborted.
    ///
    /// # Safety
    ///
    /// The caller is in a session, which has the word in a node if it commits.
    #[inline]
    pub unsafe fn claimed<S: RawSession>(session: &mut S, value: T) -> Self {
        let word = Self::new(session, value);
        // SAFETY: `new`, in the line above, has made the word; the session has it in a node if it
        // commits (contract of this function).
        unsafe { word.claim(session) };
        word
    }

    /// Has the object end if the session is aborted.
    ///
    /// # Safety
    ///
    /// As for [`claimed`](Self::claimed); once.
    #[inline]
    pub unsafe fn claim<S: RawSession>(self, session: &mut S) {
        if is_inline::<T>() {
            return;
        }
        // SAFETY: the session has the word in a node if it commits, and claims it once (contract of
        // this function); the size gives the owner's type, as in `new`.
        unsafe {
            if is_large::<T>() {
                session.claim_owned(self.link::<Box<T>>());
            } else {
                session.claim_owned(self.link::<T>());
            }
        }
    }

    /// The link to the object.
    ///
    /// # Safety
    ///
    /// The word was made, for a type that is not stored in the word itself; its object owns a `U`.
    #[inline]
    unsafe fn link<U>(self) -> Link<U> {
        // SAFETY: `new` has written it (contract of this function).
        Link::from_ptr(unsafe { self.0.assume_init() })
    }

    /// What it stands for.
    ///
    /// # Safety
    ///
    /// The word was made by `new`. Its object is valid for as long as the reference is used, as it
    /// is in a session that has found the word.
    #[inline]
    pub unsafe fn get(&self) -> &T {
        // SAFETY: `new` has written one or the other, by the same tests; the object is valid
        // (contract of this function).
        unsafe {
            if is_inline::<T>() {
                &*self.0.as_ptr().cast::<T>()
            } else if is_large::<T>() {
                owned::<Box<T>>(self.link())
            } else {
                owned(self.link::<T>())
            }
        }
    }

    /// Whether another word, which was found later in the same session, has the same object or the
    /// same number.
    ///
    /// # Safety
    ///
    /// Both were made.
    #[inline]
    pub unsafe fn is(self, other: Self) -> bool {
        if !is_inline::<T>() {
            // SAFETY: both words were made, and lead to objects (contract of this function), so
            // that their links are initialised.
            return unsafe { self.0.assume_init() == other.0.assume_init() };
        }
        let number = |word: Self| {
            let mut number = [0; size_of::<*mut ()>()];
            let from = word.0.as_ptr().cast::<u8>();
            // SAFETY: as many bytes were written, of a type without padding, which fits.
            unsafe { from.copy_to_nonoverlapping(number.as_mut_ptr(), size_of::<T>()) };
            number
        };
        number(self) == number(other)
    }

    /// Frees the object, if there is one, with the session's commit.
    ///
    /// # Safety
    ///
    /// To be called in a session that has found the word, or has claimed it; after its commit no
    /// node has it.
    #[inline]
    pub unsafe fn free<S: RawSession>(self, session: &mut S) -> Result<(), Conflict> {
        if is_inline::<T>() {
            return Ok(());
        }
        // SAFETY: the session has found the word or has claimed it, and no node has it after the
        // commit (contract of this function); the size gives the owner's type, as in `new`.
        unsafe {
            if is_large::<T>() {
                session.free_owned(self.link::<Box<T>>())
            } else {
                session.free_owned(self.link::<T>())
            }
        }
    }

    /// Ends the object, if there is one, and returns its value.
    ///
    /// # Safety
    ///
    /// As for [`end`](Self::end).
    pub unsafe fn into_inner<S: RawSession>(self, handle: &mut S) -> T {
        // SAFETY: the contract of this function. The moved value is not dropped in its old place:
        // the object is ended as one whose value needs no drop.
        unsafe {
            if is_inline::<T>() {
                core::ptr::read(self.get())
            } else if is_large::<T>() {
                let value = core::ptr::read(owned(self.link::<Box<T>>()));
                handle.end_owned(self.link::<ManuallyDrop<Box<T>>>());
                *value
            } else {
                let value = core::ptr::read(owned(self.link::<T>()));
                handle.end_owned(self.link::<ManuallyDrop<T>>());
                value
            }
        }
    }

    /// Drops the value, and leaves the object's memory to its domain.
    ///
    /// # Safety
    ///
    /// As for [`end`](Self::end).
    pub unsafe fn drop_value(self) {
        if is_inline::<T>() {
            return;
        }
        // SAFETY: no thread can find the word any more or use its value (contract of this
        // function); the size gives the owner's type, as in `new`.
        unsafe {
            if is_large::<T>() {
                drop_owned(self.link::<Box<T>>());
            } else {
                drop_owned(self.link::<T>());
            }
        }
    }

    /// Ends the object, if there is one, and drops its value.
    ///
    /// # Safety
    ///
    /// The word was made by a handle of this domain. From now on no thread can find it or use its
    /// value.
    pub unsafe fn end<S: RawSession>(self, handle: &mut S) {
        if is_inline::<T>() {
            return;
        }
        // SAFETY: the handle is of the word's domain, and no thread can find the word any more
        // (contract of this function); the size gives the owner's type, as in `new`.
        unsafe {
            if is_large::<T>() {
                handle.end_owned(self.link::<Box<T>>());
            } else {
                handle.end_owned(self.link::<T>());
            }
        }
    }
}

/// To be called in sessions only, as [`get`](Self::get) is: a thread that hashes a key has found it
/// in a session.
impl<T: Datum + Hash> Hash for Word<T> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // SAFETY: words that are hashed are in nodes that a session has found.
        unsafe { self.get() }.hash(state);
    }
}
