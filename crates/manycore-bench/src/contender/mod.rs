//! The locks that compete: all of manycore's, and their peers.
//!
//! A benchmark is written once over [`Contender`] and compiled for each lock ([`with`]), so there
//! is no call through a pointer between the loop and the lock. `simulated` has manycore's locks
//! once more, built for the simulator.

mod peer;
mod pthread;
pub(crate) mod simulated;

pub(crate) use pthread::origin;

use manycore::LockInfo;
use manycore::lock::{self, PlainLock};
use manycore_traits::{RawLock, RawRwLock};

/// The name of the unmodified program: glibc's default mutex, and the base line of every
/// comparison.
pub const BASE: &str = "glibc";

/// The base line among reader-writer locks.
pub const BASE_SHARED: &str = "glibc-rwlock";

/// A lock as a benchmark uses it.
pub trait Contender: Send + Sync + 'static {
    /// A lock that no thread holds.
    fn new() -> Self;

    /// Runs a section in which no other thread may be.
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R;

    /// Runs a section that other readers may share. With a mutex, readers exclude each other.
    fn shared<R>(&self, section: impl FnOnce() -> R) -> R {
        self.exclusive(section)
    }
}

/// A function of a contender's type.
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<C: Contender>(self) -> Self::Output;
}

/// One of manycore's locks, of either build.
struct Native<L>(L);

impl<L: RawLock + 'static> Contender for Native<L> {
    fn new() -> Self {
        Self(L::new())
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        let mut node = L::Node::default();
        // SAFETY: the node stays in place until `unlock` has returned, and the lock is held when
        // that is called.
        unsafe {
            self.0.lock(&mut node);
            let result = section();
            self.0.unlock(&mut node);
            result
        }
    }
}

/// One of manycore's reader-writer locks.
pub(crate) struct NativeRw<L>(L);

impl<L: RawRwLock + 'static> Contender for NativeRw<L> {
    fn new() -> Self {
        Self(L::new())
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.acquire_write();
        let result = section();
        // SAFETY: this thread has acquired it for writing at the begin of this function.
        unsafe { self.0.release_write() };
        result
    }

    #[inline]
    fn shared<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.acquire_read();
        let result = section();
        // SAFETY: this thread has acquired it for reading at the begin of this function.
        unsafe { self.0.release_read() };
        result
    }
}

/// A section and its result, on their way to the thread that runs the section, and back.
struct Lent<T>(T);

// SAFETY: the thread that lends it waits until it is back, so one thread at a time uses it and its
// borrows. The sections of benchmarks touch nothing that is bound to one thread.
unsafe impl<T> Send for Lent<T> {}

impl<T> Lent<T> {
    fn into_inner(self) -> T {
        self.0
    }
}

/// The form of a contender for one of manycore's ways to delegate sections, in either build of the
/// library.
macro_rules! delegate {
    ($library:ident) => {
        struct FlatCombining($library::delegate::FlatCombining<()>);

        impl $crate::contender::Contender for FlatCombining {
            fn new() -> Self {
                Self($library::delegate::FlatCombining::new(()))
            }

            #[inline]
            fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
                let section = $crate::contender::Lent(section);
                let run = move |(): &mut ()| $crate::contender::Lent(section.into_inner()());
                self.0.with(run).into_inner()
            }
        }
    };
}
use delegate;
delegate!(manycore);

/// No lock at all, to measure the cost of the loop around a lock.
struct Nothing;

impl Contender for Nothing {
    fn new() -> Self {
        Self
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        section()
    }
}

/// The contender that locks nothing. It loses updates by design and is in no list of locks.
pub(crate) const NOTHING: &str = "nothing";

/// A mutex in all but its interface.
const DELEGATE: LockInfo = manycore::delegate::FlatCombining::INFO;

macro_rules! manycore_locks {
    ($($lock:ident),* $(,)?) => {
        const LOCKS: &[LockInfo] = &[$(<lock::$lock as PlainLock>::INFO,)* DELEGATE];

        fn with_lock<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, V> {
            $(if name == <lock::$lock as PlainLock>::INFO.name {
                return Ok(visitor.visit::<Native<lock::$lock>>());
            })*
            if name == DELEGATE.name { Ok(visitor.visit::<FlatCombining>()) } else { Err(visitor) }
        }
    };
}
manycore::for_each_lock!(manycore_locks);

macro_rules! manycore_rw_locks {
    ($($lock:ident),* $(,)?) => {
        const RW_LOCKS: &[LockInfo] = &[$(<lock::$lock as RawRwLock>::INFO),*];

        fn with_rw_lock<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, V> {
            $(if name == <lock::$lock as RawRwLock>::INFO.name {
                return Ok(visitor.visit::<NativeRw<lock::$lock>>());
            })*
            Err(visitor)
        }
    };
}
manycore::for_each_rw_lock!(manycore_rw_locks);

macro_rules! inline_names {
    ($($lock:ident),* $(,)?) => {
        const INLINE: &[&str] = &[$(<lock::$lock as PlainLock>::INFO.name),*];
    };
}
manycore::for_each_inline_lock!(inline_names);

macro_rules! peers {
    ($($name:expr => $contender:ty),* $(,)?) => {
        const PEERS: &[&str] = &[$($name),*];

        fn with_peer<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == $name {
                return Some(visitor.visit::<$contender>());
            })*
            (name == NOTHING).then(|| visitor.visit::<Nothing>())
        }
    };
}
peers! {
    BASE => pthread::Mutex,
    "glibc-adaptive" => pthread::AdaptiveMutex,
    BASE_SHARED => pthread::RwLock,
    "parking_lot" => peer::ParkingLot,
    "parking_lot-rwlock" => peer::ParkingLotRwLock,
    "std" => peer::Std,
    "std-rwlock" => peer::StdRwLock,
}

/// Calls the visitor with the contender of this name; `None` if there is no such lock.
pub fn with<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
    match with_lock(name, visitor).or_else(|visitor| with_rw_lock(name, visitor)) {
        Ok(output) => Some(output),
        Err(visitor) => with_peer(name, visitor),
    }
}

/// What manycore's own mutexes say about themselves.
pub fn locks() -> &'static [LockInfo] {
    LOCKS
}

/// What manycore's own reader-writer locks say about themselves.
pub fn rw_locks() -> &'static [LockInfo] {
    RW_LOCKS
}

/// The names of the others: mutexes, or reader-writer locks.
pub fn peers(shared: bool) -> impl Iterator<Item = &'static str> {
    PEERS.iter().copied().filter(move |name| name.ends_with("-rwlock") == shared)
}

/// Whether there is a lock of this name.
pub fn exists(name: &str) -> bool {
    PEERS.contains(&name) || is_ours(name)
}

/// Whether the name is one of manycore's own locks.
pub fn is_ours(name: &str) -> bool {
    LOCKS.iter().chain(RW_LOCKS).any(|info| info.name == name)
}

/// Whether the name is one of those which the preload library can put under a program.
pub fn is_inline(name: &str) -> bool {
    INLINE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct CountTo(u32);

    impl Visitor for CountTo {
        type Output = u32;

        fn visit<C: Contender>(self) -> u32 {
            let lock = C::new();
            (0..self.0).fold(0, |sum, _| lock.shared(|| sum) + lock.exclusive(|| 1))
        }
    }

    fn all() -> impl Iterator<Item = &'static str> {
        LOCKS.iter().chain(RW_LOCKS).map(|info| info.name).chain(PEERS.iter().copied())
    }

    #[test]
    fn every_contender_locks_and_unlocks() {
        for name in all().chain([NOTHING]) {
            assert_eq!(with(name, CountTo(3)), Some(3), "{name}");
        }
        assert_eq!(with("no such lock", CountTo(3)), None);
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = all().collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
        assert!(!exists(NOTHING) && exists("futex") && exists(BASE) && !is_ours(BASE));
    }
}
