//! The facade: everything an algorithm may know about the machine below it.
//!
//! An algorithm in this crate names atomics, waiting, clocks and CPUs only through this module, and
//! keeps no state in a `static` or a `thread_local!`: the domain that a process has by itself
//! (`reclaim::section`) is no part of one, and native only. Then the same source runs on each back
//! end:
//!
//! | back end | chosen by | atomics | waiting |
//! |---|---|---|---|
//! | Linux | default | `core` | raw futex calls: no libc, no `errno`, no allocation |
//! | bare | no OS, or `--cfg manycore_bare` | `core` | a kernel's symbols, [`bare`](self#bare) |
//! | Miri | the interpreter | `core` | its futexes, by libc |
//! | loom | `--cfg loom` | loom's | a model of futexes on loom's `park` |
//! | simulated | `manycore-simulated`, see below | `core`'s, charged | the simulated machine's |
//!
//! It is for authors of algorithms and for kernels, and not covered by this crate's promises about
//! versions. A program needs at most `thread::forked`, [`thread::id`], [`CachePadded`] and
//! [`Deadline`].
//!
//! # Rules for loops that wait
//!
//! - A loop that polls calls [`hint::spin_loop`] each turn. The model checker yields there, and the
//!   simulator parks the core until a line that the loop read changes.
//! - A loop that polls for a limited time asks [`time::has_passed`] or [`clock::has_passed`],
//!   rather than for the time: the simulator then knows until when to park the core.
//! - A loop that polls for a limited number of turns calls [`hint::pause`]: the core is not parked.
//! - A timed back-off is [`time::delay`] or [`hint::delay`], never a counted loop.
//!
//! # Simulated
//!
//! The package `manycore-simulated` consists of these sources and a feature `sim`, which this
//! package does not have. So one program can use both, and no combination of features changes the
//! native one. Every atomic access, and every access to a [`cell::UnsafeCell`], costs simulated
//! time; everything else is free.
//!
//! # Bare
//!
//! A kernel that links this crate defines the symbols listed in `sync/bare.rs`: futex wait and
//! wake, yield, a cycle counter and its rate, and the numbers of CPUs, of nodes of memory and of
//! threads.

// Here the methods are wrapped that algorithms must not name.
#![allow(clippy::disallowed_methods)]

mod deadline;
#[cfg(not(any(loom, feature = "sim")))]
mod foresight;
pub mod node;
mod of_process;
mod own;
mod pad;
pub(crate) mod panic;
#[doc(hidden)]
pub mod phase;
#[doc(hidden)]
pub mod table;
pub mod time;
#[cfg(not(loom))]
#[doc(hidden)]
pub mod tuning;

#[cfg(feature = "sim")]
#[path = "simulated/mod.rs"]
mod backend;
#[cfg(all(target_os = "linux", not(any(loom, manycore_bare, miri, feature = "sim"))))]
#[path = "linux/mod.rs"]
mod backend;
#[cfg(all(target_os = "linux", miri, not(any(loom, manycore_bare, feature = "sim"))))]
#[path = "miri/mod.rs"]
mod backend;
#[cfg(loom)]
#[path = "loom.rs"]
mod backend;
#[cfg(all(any(manycore_bare, not(target_os = "linux")), not(loom), not(feature = "sim")))]
#[path = "bare.rs"]
mod backend;

#[cfg(all(target_os = "linux", not(loom), not(manycore_bare), not(feature = "sim")))]
pub use backend::thread::Local;
#[cfg(loom)]
pub use backend::tuning;
pub use backend::{atomic, barrier, cell, clock, cpu, futex, hint, process, thread};
pub use deadline::Deadline;
#[cfg(all(
    feature = "lock_api",
    any(feature = "sim", all(target_os = "linux", not(loom), not(manycore_bare)))
))]
pub(crate) use deadline::Moment;
pub(crate) use own::own_of;
pub use pad::CachePadded;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The wait ended by a wake-up, a signal, or because the word had changed already: read the
    /// word again.
    Perhaps,
    /// The deadline has passed.
    TimedOut,
}

/// `const fn new` where atomics have const constructors, a plain one under loom, whose atomics have
/// none.
macro_rules! const_new {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) -> $out:ty $body:block) => {
        #[cfg(not(loom))]
        $(#[$meta])* $vis const fn $name($($arg: $ty),*) -> $out $body
        #[cfg(loom)]
        $(#[$meta])* $vis fn $name($($arg: $ty),*) -> $out $body
    };
}
pub(crate) use const_new;

/// An array of a value that cannot be copied: the expression is evaluated for each place.
macro_rules! array_of {
    ($value:expr; $length:expr) => {{
        #[cfg(not(loom))]
        let array = [const { $value }; $length];
        #[cfg(loom)]
        let array = core::array::from_fn(|_| $value);
        array
    }};
}
pub(crate) use array_of;

/// A table of which the whole process has one: a function that returns its entries, each made by a
/// constant whose bytes are zero, and its name among such objects of a process.
macro_rules! process_wide {
    ($(#[$meta:meta])* $vis:vis fn $name:ident() -> [$entry:ty; $length:literal] of $new:expr, named $of_process:ident) => {
        $(#[$meta])*
        $vis fn $name() -> &'static [$entry] {
            // One entry for each execution of the model checker, whose values have no constants.
            #[cfg(loom)]
            {
                loom::lazy_static! {
                    static ref TABLE: [$entry; 1] = [$new];
                }
                &*TABLE
            }
            #[cfg(not(loom))]
            {
                static TABLE: [$entry; $length] = [const { $new }; $length];
                #[cfg(not(feature = "sim"))]
                let table = &TABLE;
                // SAFETY: an entry whose bytes are zero is a new one, which each use of this macro
                // says of its constant; the name belongs to this table.
                #[cfg(feature = "sim")]
                let table = unsafe { $crate::sync::table_of_process($crate::sync::OfProcess::$of_process, &TABLE) };
                table
            }
        }
    };
}
pub(crate) use process_wide;

/// A memory ordering that a test can weaken to `Relaxed` by name.
///
/// `order!(Release, "futex-release")` is `Ordering::Release`. Under loom,
/// `MANYCORE_MUTATION=futex-release` makes it `Relaxed`, and then the lock's model has to fail:
/// that shows that the model checks the ordering's purpose.
#[doc(hidden)]
#[macro_export]
macro_rules! order {
    ($order:ident, $mutation:literal) => {{
        #[cfg(not(loom))]
        let order = $crate::sync::atomic::Ordering::$order;
        #[cfg(loom)]
        let order = $crate::sync::weaken($mutation, $crate::sync::atomic::Ordering::$order);
        order
    }};
}
pub use order;

/// Orders a sequentially consistent read-modify-write before the sequentially consistent load of
/// another address that follows it. The hardware and the language need nothing for this: the two
/// orderings suffice. The model checker takes them for weaker than they are, and needs a fence.
/// `MANYCORE_MUTATION` leaves out the fence with this name.
macro_rules! store_load {
    ($mutation:literal) => {
        #[cfg(loom)]
        $crate::sync::fence_unless($mutation);
    };
}
pub(crate) use store_load;

/// A sequentially consistent fence; with the model checker, `MANYCORE_MUTATION` leaves out the one
/// with this name.
macro_rules! full_fence {
    ($mutation:literal) => {
        // SeqCst: orders what comes before it before what comes after it; each use names the
        // partner.
        #[cfg(not(loom))]
        $crate::sync::atomic::fence($crate::sync::atomic::Ordering::SeqCst);
        #[cfg(loom)]
        $crate::sync::fence_unless($mutation);
    };
}
pub(crate) use full_fence;

/// A store, and a full fence after it. With the model checker, `MANYCORE_MUTATION` leaves out the
/// fence with this name.
macro_rules! store_and_fence {
    ($place:expr, $value:expr, $mutation:literal) => {
        // SeqCst: on x86 an exchange is both store and fence, and takes an eighth of the time of a
        // fence. Each use names the partner.
        #[cfg(all(target_arch = "x86_64", not(any(loom, feature = "sim", miri))))]
        $place.swap($value, $crate::sync::atomic::Ordering::SeqCst);
        #[cfg(not(all(target_arch = "x86_64", not(any(loom, feature = "sim", miri)))))]
        {
            // Release: partner of an Acquire that reads this value rather than the old one.
            $place.store($value, $crate::sync::atomic::Ordering::Release);
            $crate::sync::full_fence!($mutation);
        }
    };
}
pub(crate) use store_and_fence;

/// The address of a cell's data; no thread writes them while the caller reads them. A simulation
/// charges the first lines of a large cell; reads beyond those have to be [touched](hint::touch).
#[inline]
pub(crate) fn head_of<T>(cell: &cell::UnsafeCell<T>) -> *const T {
    #[cfg(feature = "sim")]
    return cell.head();
    #[cfg(not(feature = "sim"))]
    cell.with(|data| data)
}

/// Whether a test has planted the mistake with this name, to see whether exploring schedules finds
/// it.
///
/// Simulated, and under the model checker, `MANYCORE_MUTATION=queue-hand-off` makes
/// `mutation!("queue-hand-off")` true. Otherwise it is the constant false.
#[doc(hidden)]
#[macro_export]
macro_rules! mutation {
    ($mutation:literal) => {{
        #[cfg(not(any(feature = "sim", loom)))]
        let is_mutated = false;
        #[cfg(any(feature = "sim", loom))]
        let is_mutated = $crate::sync::is_mutated($mutation);
        is_mutated
    }};
}
pub use mutation;

/// Has the model checker see the end of a value's life as a write to its fields, which fails the
/// model if a thread touches them at the same time or later. Without the checker there is nothing
/// to do.
macro_rules! mortal {
    ($value:ident $(<$parameter:ident>)? { $($field:ident),* }) => {
        #[cfg(loom)]
        impl$(<$parameter>)? Drop for $value$(<$parameter>)? {
            fn drop(&mut self) {
                $crate::sync::mortal_end!(self { $($field),* });
            }
        }
    };
}
pub(crate) use mortal;

/// The same in a destructor that does more.
macro_rules! mortal_end {
    ($value:ident { $($field:ident),* }) => {
        #[cfg(loom)]
        if !$crate::sync::is_panicking() {
            $($value.$field.with_mut(|_| ());)*
        }
    };
}
pub(crate) use mortal_end;

#[cfg(feature = "sim")]
pub(crate) use backend::table::of_process as table_of_process;
#[cfg(loom)]
pub(crate) use backend::{fence_unless, is_panicking};
#[cfg(feature = "sim")]
pub(crate) use of_process::OfProcess;
// For the macros above, where another crate uses them.
#[cfg(any(feature = "sim", loom))]
#[doc(hidden)]
pub use backend::is_mutated;
#[cfg(loom)]
#[doc(hidden)]
pub use backend::weaken;
