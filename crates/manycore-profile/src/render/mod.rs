//! A profile for people and for other programs. Each form reads a
//! [`Profile`](crate::profile::Profile) and nothing else.
//!
//! | module | what is in it |
//! |---|---|
//! | [`table`] | the whole of it for a terminal, from the next modules |
//! | `lock_table`, [`kernel_table`] | locks of the program, and of the kernel |
//! | [`system_calls`], `cpu_time`, `advice` | calls; the time on CPUs; what would help |
//! | [`page`] | one HTML file that shows everything and loads nothing |
//! | [`folded`] | stacks in lines, as flame graph programs read them |
//! | [`fn@pprof::pprof`], [`firefox`] | stacks as pprof and Firefox's profiler read them |
//! | [`trace`] | the run over time, as Chrome's and Perfetto's viewers read it |
//! | [`mod@diff`], [`diff_table`] | two profiles, lock by lock |
//! | [`summary`] | the counts of a program in a line |

mod advice;
mod cpu_time;
pub mod diff;
pub mod diff_table;
pub mod firefox;
pub mod folded;
pub mod kernel_table;
mod lock_table;
pub mod page;
pub mod pprof;
mod stacks;
pub mod summary;
pub mod system_calls;
pub mod table;
pub mod trace;
mod view;

pub use view::{Sort, View, shortened};
