//! Queues between threads.

mod take_all;

pub use take_all::{TakeAll, Taken};
