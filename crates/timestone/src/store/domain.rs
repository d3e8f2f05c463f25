//! The versions on which a store is built.
//!
//! No commit waits for the clocks, and no transaction waits at its begin. A transaction reads as of
//! its thread's clock, or as of the durable horizon if that is later. So it sees every commit that
//! was acknowledged as durable before. It also sees its own thread's unacknowledged commits, and
//! those of other threads that are older than the uncertainty of the clocks.

use manycore::clock::{RelaxedClock, Since};
use manycore::mvrlu;

use crate::sync::Counters;

pub type Clock = RelaxedClock<Since<Counters>>;
pub type Domain = mvrlu::Domain<Clock>;
pub type Handle<'a> = mvrlu::Handle<'a, Clock>;
