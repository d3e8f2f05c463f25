//! The judges of histories.

mod linearizable;
mod runs;
mod snapshot;
