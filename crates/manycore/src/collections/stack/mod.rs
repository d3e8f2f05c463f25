//! Stacks between threads.

mod treiber;

pub use treiber::{TreiberHandle, TreiberStack};
