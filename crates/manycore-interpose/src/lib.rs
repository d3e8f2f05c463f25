//! The common parts of all our libraries that are preloaded into other programs, whatever they
//! interpose.
//!
//! - [`environment`]: variables, read without libc
//! - [`message`]: a line on standard error, and the end of a program that cannot be run
//! - [`objects`], [`symbols`]: what is loaded and what it defines, without the dynamic linker's
//!   functions
//! - [`next`]: the functions behind those that a library exports
//! - [`bindings`]: whether the program's calls really come to a library
//! - [`loading`]: `dlopen` without the flag that leads past it
//! - [`cancel`]: waits at which a thread can be cancelled
//! - [`path`]: paths without an allocator
//! - [`directory`]: where processes make their files of statistics
//! - [`process`]: its number and its parent's
//! - [`threads`]: how many there are
//! - [`counter`]: times where the processor's counter may not be read
//! - [`mod@noted`]: functions that are jumped to once their arguments have been noted
//!
//! Nothing here allocates, or calls a function that may lock.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "read only by those who change the library, in the source"
)]
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_env = "gnu"
))]

pub mod bindings;
pub mod cancel;
pub mod counter;
pub mod directory;
pub mod environment;
pub mod loading;
pub mod message;
pub mod next;
mod noted;
pub mod objects;
pub mod path;
pub mod process;
mod symbols;
pub mod threads;
