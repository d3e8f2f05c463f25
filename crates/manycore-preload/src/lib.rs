//! The library that `manycore run` preloads into a program: it replaces the algorithm of its
//! pthread and C11 locks.
//!
//! # How a call arrives
//!
//! [`entry`] exports each function under its pthread name, *unversioned*, so that references to any
//! symbol version bind to it. An export is two instructions: it notes its caller's address and
//! jumps through the [`entry::TABLE`]. At first the table has functions that choose the lock and
//! fill in the table, so the first call initialises the library, even before any constructor. From
//! then on each entry leads to code that was compiled for the chosen lock, with statistics or
//! without. `entry::start` reads the choice from the environment and checks, in a constructor, that
//! the program's references really are bound here.
//!
//! # Where the state is
//!
//! State is in the program's own objects: [`mutex`], [`cond`] and [`rwlock`] overlay it on the
//! bytes of glibc's types, so there is no table to look up, and nothing to allocate or free.
//! Objects that glibc must own (robust, priority-inheriting, process-shared) are recognised by the
//! bits that glibc's initialiser sets, and passed on untouched through [`glibc`].
//!
//! # Statistics
//!
//! With `MANYCORE_STATS=DIR`, [`stats`] counts every acquisition, wait and hold in a memory-mapped
//! file in DIR, which `manycore profile` reads. Otherwise no code for statistics is executed.
//!
//! # What a function here may not do
//!
//! Allocate, call a function that may lock, change `errno`, print to the program's standard output,
//! or unwind (except for a cancelled wait, see `cancel.c`).
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "read only by those who change the library, in the source"
)]
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_env = "gnu"
))]

mod c11;
mod cond;
mod departed;
mod entry;
mod glibc;
mod mutex;
mod own_lock;
mod owner;
mod restricted;
mod rwlock;
mod spin;
mod stats;
mod threads;
mod time;
