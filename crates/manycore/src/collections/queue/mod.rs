//! Queues between threads.

mod ordered;
mod take_all;

pub use ordered::{OrderedQueue, OrderedQueueHandle};
pub use take_all::{TakeAll, Taken};
