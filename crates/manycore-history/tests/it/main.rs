//! The judges of histories.

mod crashes;
mod linearizable;
mod runs;
mod snapshot;
