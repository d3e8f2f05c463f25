//! The versions on which a store is built.
//!
//! No commit waits for the clocks, and no transaction when it begins. A transaction reads at its
//! thread's clock, or at the durable horizon if that is later; and so it sees every commit that was
//! acknowledged as durable before. Of commits that nobody waits for, it sees its own thread's, and
//! those of others that are older than the uncertainty of the clocks.

use manycore::clock::{RelaxedClock, Since};
use manycore::mvrlu;

use crate::sync::Counters;

pub type Clock = RelaxedClock<Since<Counters>>;
pub type Domain = mvrlu::Domain<Clock>;
pub type Handle<'a> = mvrlu::Handle<'a, Clock>;
