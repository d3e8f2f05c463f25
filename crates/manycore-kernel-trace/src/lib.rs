//! Waits for locks inside of the kernel.
//!
//! ```
//! use manycore_kernel_trace::{Means, Request, Scope, Watch};
//!
//! match Watch::start(Means::Auto, &Request { scope: Scope::System }) {
//!     Ok(mut watch) => {
//!         std::thread::sleep(std::time::Duration::from_millis(10));
//!         watch.sample();
//!         for lock in &watch.finish().locks {
//!             println!("{} {}: {} waits", lock.kind, lock.name, lock.contended);
//!         }
//!     }
//!     // Most systems permit it to root only.
//!     Err(why) => println!("{why}"),
//! }
//! ```
//!
//! # By which means
//!
//! | module | means | needs |
//! |---|---|---|
//! | `bpf` | programs on two tracepoints, which add up in the kernel | CAP_BPF, CAP_PERFMON |
//! | `perf` | the same tracepoints, each event read by us | root |
//! | `lock_stat` | the kernel's statistics, system-wide | a kernel built with LOCK_STAT; root |
//!
//! The tracepoints are `contention_begin` and `contention_end`: they need Linux 5.19, and `bpf`
//! also the kernel's type information (BTF). All three means end in the same model, [`KernelLock`],
//! and list in [`KernelRun::limits`] the things that they cannot show.

mod asleep;
#[cfg(feature = "bpf")]
mod bpf;
mod cgroup;
mod clock;
mod event;
mod kallsyms;
mod limits;
mod lock_stat;
mod locks;
mod names;
mod perf;
mod sleepers;
mod sum;
mod tracefs;
#[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "some is known of locks by BPF only"))]
mod waits;
mod watch;

pub use manycore_profile::analyze::assemble::KernelSeen as Seen;
pub use manycore_profile::profile::{KernelLock, KernelRun, Scope};
pub use perf::Sampler;
pub use watch::{Means, Refusal, Request, Watch};
