//! The calling thread: its own [block](Local), its preparation for locks, and the case that it is
//! the only thread of a forked child.

use super::local::forget_kernel_id;
pub use super::local::{Local, id, kernel_id, local, note, noted, renumber};
use super::{cpu, node};

/// To be called in the child of a fork, by the only thread of the child, before it uses a lock or a
/// wait queue.
///
/// The thread has a new number. Other threads were not copied, so those that wait in a queue do not
/// exist any more.
pub fn forked() {
    renumber();
    node::forked(id());
    super::process::forked();
}

/// Called in the child of a fork, by the thread that [watches](super::process::watch): other
/// threads were not copied. The calling thread owns its locks by the number that it had, unless the
/// C library has forked ([`renumber`]).
pub fn others_are_gone() {
    forget_kernel_id();
    node::forked(kernel_id());
}

/// Prepares all data that the calling thread needs for any lock, so that it makes no system call
/// for it later except to wait.
pub fn prepare() {
    id();
    node::prepare();
    cpu::count();
    cpu::nodes();
}
