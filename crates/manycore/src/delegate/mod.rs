//! Delegation: the thread that owns the data executes the other threads' operations on the data.
//!
//! With a lock, data moves to the next thread in order, which on a large machine takes longer than
//! a short section. Here the sections move to the thread that has the data. There is no acquisition
//! and no release, so these are no [`RawLock`](crate::RawLock)s: a section is a closure, which
//! another thread may run.

mod flat_combining;

pub use flat_combining::FlatCombining;
