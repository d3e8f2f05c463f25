//! The library that `manycore run --syscalls` preloads into a program: its system calls on sockets,
//! executed by other threads, on the CPUs where they belong.
//!
//! # How a call arrives
//!
//! [`entry`] exports each function under its name in libc, *unversioned*, so that references to any
//! symbol version bind to it. Behind it is a function in [`calls`] of the same signature, which
//! asks [`moved`] to have the call executed elsewhere. The answer is either a result, or that the
//! call has to be executed in place: then libc's own function ([`real`]) is called, with its full
//! treatment of errors, signals and cancellation.
//!
//! # Who decides
//!
//! [`state`] decides whether calls are moved in this process at all: not before the library has
//! started, not in a child that shares its parent's memory, and not after the program has requested
//! something from the kernel that holds for one thread only ([`calls::ties`]). [`thread`] decides
//! whether the calling thread may have its calls moved: not in a signal handler that interrupted a
//! moved call. [`descriptors`] knows which descriptors are sockets, and the route of each.
//! [`offload`] executes the calls, in a process that has one [`table::OFFLOAD`]. [`worker_threads`]
//! makes threads for that, where [`handlers`] finds that one may be made.
//!
//! # What a function here may not do
//!
//! It must not allocate, call a function that may lock, change `errno` except as the call does,
//! print to the program's standard output, or unwind (except for a cancelled call).
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "read only by those who change the library, in the source"
)]
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_env = "gnu"
))]

mod calls;
mod counters;
mod descriptors;
mod dispositions;
mod entry;
mod file_size;
mod files;
mod handlers;
mod in_flight;
#[cfg_attr(target_arch = "aarch64", path = "machine_arm.rs")]
mod machine;
mod memory;
mod moved;
mod offload;
mod program_threads;
mod real;
mod settings;
mod start;
mod state;
mod table;
mod thread;
mod threads;
mod worker_threads;
