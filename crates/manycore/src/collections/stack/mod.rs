//! Stacks between threads.

mod ordered;
mod treiber;

pub use ordered::{OrderedStack, OrderedStackHandle};
pub use treiber::{TreiberHandle, TreiberStack};
