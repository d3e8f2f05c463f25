//! System calls that another thread executes, on a CPU that was chosen for it.
//!
//! A program's thread that calls the kernel brings the kernel's code and data into its own core's caches: those of the
//! network stack, which the core that serves the network card's interrupts has already. Let a thread near that core make the
//! call, and only the call and its answer travel. (The idea: an `LD_PRELOAD` library with system call threads, one a socket,
//! on the cores that share a cache with the interrupts' core; background and deviations in the book.)
//!
//! This crate moves calls, and knows nothing of C libraries: `manycore-syscalls` has the functions that programs call.
//!
//! # How a call travels
//!
//! A descriptor gets a [`Lane`] when it is opened: a CPU, chosen by a [`Rule`]. [`Steer::perform`] writes the call into a slot of
//! its own cache lines and sends that where the [`Mechanism`] says:
//!
//! | mechanism | who executes the call | a call that has to wait |
//! |---|---|---|
//! | `thread` | a thread of the lane, bound to its CPU; another one if that is in a call (up to 4,096 in a process) | blocks its thread |
//! | `pool` | the worker of the lane's CPU, which tries it without blocking | waits in the worker's epoll, with a duplicate of the descriptor; what cannot be tried goes to one of at most four threads that may block, or is left in place |
//! | `uring` | a thread of the kernel, bound to the CPU (`IORING_SETUP_SQ_AFF`) | goes to the pool |
//!
//! Both sides spin for some microseconds before they sleep (`manycore::sync::tuning::spin_limit`), where the process may use more
//! than one CPU. With [`Settings::bypass`] each lane measures both ways, and keeps to the faster one.
//!
//! # Limits
//!
//! - A moved call is not over when a handler that interrupted it calls `siglongjmp`: [`Steer::abandon`] ends it.
//! - A `poll` of several descriptors, `select`, sends that wait on sockets that are not of the internet, and calls with flags of
//!   which it is not certain what they wait for take one of the four threads of the pool that may block.
//! - Under `pool`, a blocking `accept` takes such a thread too, when there is a connection: another process may be faster.
//! - The workers' descriptors have high numbers, so that the process' table is large: `select` answers `EBADF` for a closed
//!   number that it would have ignored beyond a small table. A process that may have fewer than 256 descriptors has no workers.
//! - A handler with `SA_RESTART` ends a send of which some is gone, as the kernel would. Of a `writev`, and of a receive with
//!   `MSG_WAITALL`, the caller does not know under `thread` whether some is: it has to sleep so that every handler ends it, and
//!   to begin anew where that is what the kernel would have done.
//! - Threads are made by whoever makes a call that needs one, with `pthread_create`, which allocates; whoever executes calls makes none.
//!   A call out of a signal handler, which may have interrupted `malloc`, is therefore left in place if there is no thread for it yet:
//!   [`CreateThread`] has to refuse.
//! - The affinity masks of the process' first thread and of those that make calls are obeyed, from a second after they were changed; where
//!   that is one CPU for both, calls are left in place until a thread with more looks. A call that waits already is not followed.
//! - [`Rule::Spill`] counts the lanes of each process by itself.
//!
//! # A first program
//!
//! ```
//! use manycore_steer::{Call, Flight, Kind, Lane, Reason, Steer};
//!
//! static STEER: Steer = Steer::new();
//!
//! // Nothing was started: the call is to be executed in place.
//! let call = Call { number: libc::SYS_getpid as usize, args: [0; 6] };
//! // SAFETY: the call has no arguments.
//! let answer = unsafe { STEER.perform(&Lane::NONE, &call, Kind::Quick, &Flight::default()) };
//! assert_eq!(answer, Err(Reason::Off));
//! ```
#![cfg(target_os = "linux")]

mod call;
mod hand;
mod queue;
mod slot;
mod stack;

// What talks to the kernel is not for the model checker, nor for a simulated machine.
#[cfg(not(any(loom, feature = "sim")))]
mod affinity;
#[cfg(not(any(loom, feature = "sim")))]
mod attempt;
#[cfg(not(any(loom, feature = "sim")))]
mod blocking;
#[cfg(not(any(loom, feature = "sim")))]
mod bypass;
#[cfg(not(any(loom, feature = "sim")))]
mod family;
#[cfg(not(any(loom, feature = "sim")))]
mod flight;
#[cfg(not(any(loom, feature = "sim")))]
mod hands;
#[cfg(not(any(loom, feature = "sim")))]
mod lanes;
#[cfg(not(any(loom, feature = "sim")))]
mod late;
#[cfg(not(any(loom, feature = "sim")))]
mod own;
#[cfg(not(any(loom, feature = "sim")))]
mod perform;
#[cfg(not(any(loom, feature = "sim")))]
mod raw;
#[cfg(not(any(loom, feature = "sim")))]
mod ring;
#[cfg(not(any(loom, feature = "sim")))]
mod settings;
#[cfg(not(any(loom, feature = "sim")))]
mod slab;
#[cfg(not(any(loom, feature = "sim")))]
mod station;
#[cfg(not(any(loom, feature = "sim")))]
mod steer;
#[cfg(not(any(loom, feature = "sim")))]
mod uring;
#[cfg(not(any(loom, feature = "sim")))]
mod waits;
#[cfg(not(any(loom, feature = "sim")))]
mod worker;

pub use call::{Answer, Call, Kind, Reason};
#[cfg(not(any(loom, feature = "sim")))]
pub use flight::Flight;
#[cfg(not(any(loom, feature = "sim")))]
pub use settings::{
    CPUS_MAX, CreateThread, GROUPS_MAX, Groups, MayCreateThread, Mechanism, Rule, Settings, Sleep,
};
#[cfg(not(any(loom, feature = "sim")))]
pub use steer::{Lane, Steer, Timer};

/// The parts whose threads meet, for the models that check them, and for simulated programs.
#[cfg(any(loom, feature = "sim"))]
pub mod model {
    pub use crate::hand::Hand;
    pub use crate::queue::{Bell, Calls, Cancelled, Queue};
    pub use crate::slot::{Order, Reply, Slot};
    pub use crate::stack::Stack;
}

/// The signal that interrupts a thread of ours in a call; the program must neither handle nor block it. Its handler is
/// installed by [`Steer::start`].
pub const INTERRUPT: core::ffi::c_int = 61;
