//! Where system calls should run: which CPUs are near the network card, and which of them may be
//! used.
//!
//! 'System-Call-Level Core Affinity for Improving Network Performance' (KIISE Transactions on
//! Computing Practices 23(1), 2017) executes a program's socket calls on CPUs that share the
//! last-level cache with the CPU that serves the card's interrupts, so that the kernel's data about
//! a connection stay in one package. This crate finds those CPUs, by that policy or another, and
//! gives the reason for its choice. It only reads files of a few lines in sysfs and /proc, below a
//! directory that a test can choose. A missing file that kernels may lack becomes a note in the
//! result, and a file with meaningless content is an error.
//!
//! | module | what it has |
//! |---|---|
//! | `cpu_set` | sets of CPUs, as the kernel writes them |
//! | `tree` | the files, and what is wrong with them |
//! | `topology` | packages, cores, memory nodes, caches |
//! | `interrupts` | which CPUs serve which interrupt |
//! | `network` | the card: the default route's, or one that is named |
//! | `limits` | the CPUs that may be used: affinity mask and control group |
//! | `request` | what the user asks for |
//! | `choice` | what is done, and why |
//!
//! ```
//! use manycore_placement::{Machine, Request, Tree, choose};
//!
//! let request: Request = "nic-llc:mechanism=pool".parse()?;
//! let machine = Machine::read(&Tree::of_this_machine(), request.device())?;
//! let choice = choose(&request, &machine)?;
//! println!("{}", choice.settings());
//! for reason in &choice.reasons {
//!     println!("- {reason}");
//! }
//! # Ok::<(), manycore_placement::Problem>(())
//! ```

mod choice;
mod cpu_set;
mod interrupts;
mod limits;
mod machine;
mod network;
mod problem;
mod request;
mod topology;
mod tree;

pub use choice::{Choice, Rule, choose};
pub use cpu_set::CpuSet;
pub use interrupts::Interrupt;
pub use limits::{ControlGroups, Limits};
pub use machine::Machine;
pub use network::{Nic, Queues, Route};
pub use problem::Problem;
pub use request::{Mechanism, Policy, Request};
pub use topology::{Cache, Cpu, NumaNode, Topology};
pub use tree::Tree;
