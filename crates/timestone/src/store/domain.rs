//! The versions on which a store is built.

use manycore::clock::{Ordo, Since};
use manycore::mvrlu;

pub type Clock = Since<Ordo>;
pub type Domain = mvrlu::Domain<Clock>;
pub type Handle<'a> = mvrlu::Handle<'a, Clock>;
