//! From starting a program to the files of its processes: starts it with statistics on, polls it
//! while it runs, and reads the files when it has ended.
//!
//! | module | what is in it |
//! |---|---|
//! | `observe` | the loop: start, poll, read, [`assemble`](crate::analyze::assemble::assemble) |
//! | [`kernel_only`] | the same of what runs already, by the kernel's side alone |
//! | [`directory`], [`entry`], `private_dir` | where processes write, and by which names |
//! | [`namespaces`] | processes of an inner PID namespace |
//! | `poll`, [`process_tree`], [`mapped_files`] | what is seen of processes while they live |
//! | [`kernel_side`] | what the kernel says meanwhile |
//! | `cache_misses`, `model_events` | counters of the processor |
//! | `uncounted` | processes that left nothing, and why |

mod cache_misses;
pub mod directory;
pub mod entry;
pub mod kernel_only;
pub mod kernel_side;
pub mod mapped_files;
mod model_events;
pub mod namespaces;
mod observe;
mod poll;
mod private_dir;
pub mod process_tree;
mod uncounted;

pub use cache_misses::CacheMissCounters;
pub use kernel_side::Beside;
pub use observe::observe;
