//! System calls that another thread executes, on a CPU that was chosen for it.
//!
//! When a program's thread calls the kernel, it brings the kernel's code and data into its own
//! core's caches. The network stack's are already in the caches of the core that serves the network
//! card's interrupts. If a thread near that core makes the call, only the call and its answer
//! travel. (The idea: an `LD_PRELOAD` library with system call threads, one for each socket, on the
//! cores that share a cache with the interrupts' core; background and deviations are in the book.)
//!
//! This part knows nothing of C libraries: [`calls`](crate::calls) has the functions that programs
//! call. Its tests include it by its path, because this crate exports functions that a test harness
//! itself uses.
//!
//! # How a call travels
//!
//! A descriptor gets a [`Route`] when it is opened: a CPU, chosen by a [`Rule`].
//! [`Offload::perform`] writes the call into a slot of its own cache lines and sends that where the
//! [`Mechanism`] says:
//!
//! | mechanism | who executes the call | a call that has to wait |
//! |---|---|---|
//! | `thread` | a thread of the route, bound to its CPU | blocks its thread |
//! | `pool` | the worker of the route's CPU, without blocking | waits in the worker's epoll |
//! | `uring` | a kernel thread, bound to the CPU (`IORING_SETUP_SQ_AFF`) | goes to the pool |
//!
//! - `thread`: if the thread is in a call, another one executes the next; there are up to 4,096 in
//!   a process.
//! - `pool`: a call that waits has a duplicate of the descriptor in the epoll. A call that cannot
//!   be tried goes to one of at most four threads that may block, or stays in place.
//!
//! Both sides spin for some microseconds before they sleep (`manycore::sync::tuning::spin_limit`),
//! where the process may use more than one CPU. With [`Settings::bypass`] each route measures both
//! ways, and keeps to the faster one.
//!
//! # Limits
//!
//! - A moved call is not over when a handler that interrupted it calls `siglongjmp`:
//!   [`Offload::abandon`] ends it.
//! - A `poll` of several descriptors, `select`, sends that wait on sockets that are not of the
//!   internet, and calls with flags of which it is not certain what they wait for take one of the
//!   four threads of the pool that may block.
//! - Under `pool`, a blocking `accept` takes such a thread too, when there is a connection: another
//!   process may be faster.
//! - The workers' descriptors have high numbers, so that the process' table is large: `select`
//!   answers `EBADF` for a closed number that it would have ignored beyond a small table. A process
//!   that may have fewer than 256 descriptors has no workers.
//! - A handler with `SA_RESTART` ends a send of which a part was sent, as the kernel would. Under
//!   `thread`, the caller of a `writev`, or of a receive with `MSG_WAITALL`, does not know whether
//!   a part was done. So every handler ends its sleep, and it begins anew where the kernel would
//!   have restarted the call.
//! - A handler that runs while its thread's call is being sent does not end the call, just as one
//!   that runs before a call does not. A process' first calls also make the workers meanwhile.
//! - If a call needs another thread, the calling thread makes it, with `pthread_create`, which
//!   allocates; threads that execute calls make none. A call of a signal handler, which may have
//!   interrupted `malloc`, is therefore left in place if there is no thread for it yet:
//!   [`CreateThread`](settings::CreateThread) has to refuse.
//! - The affinity masks of the process' first thread and of those that make calls are obeyed, from
//!   a second after they were changed. Where that is one CPU for both, calls are left in place
//!   until a thread that may use more CPUs reads the masks. A call that waits already stays where
//!   it is.
//! - [`Rule::Spill`] counts the routes of each process by itself.

mod affinity;
mod attempt;
mod blocking;
mod cpu_worker;
mod inline_policy;
mod internal_fds;
mod lifecycle;
pub mod number;
mod pending;
mod perform;
pub mod raw;
mod ring;
mod ring_backoff;
mod routes;
pub mod settings;
mod shared_across_fork;
mod slab;
mod uring;
mod waits;
mod worker_pool;

pub use lifecycle::{Offload, Route, Timer};
pub use manycore_channel::call::{Answer, Call, Kind, Reason};
pub use pending::PendingCall;
pub use settings::{Groups, Mechanism, Rule, Settings};

/// The signal that interrupts a thread of ours in a call; the program must neither handle nor block
/// it. Its handler is installed by [`Offload::start`].
pub const INTERRUPT: core::ffi::c_int = 61;
