//! What a mechanism has done, counted by each thread for itself.
//!
//! Relaxed throughout: each number is written by one thread, and read by others as a statistic.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Makes a public `Stats` of numbers, and the `Counters` of one thread that it is the sum of.
macro_rules! counters {
    ($(#[$of:meta])* Stats: $($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            /// Each number with its name.
            pub fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                $(visit(stringify!($name), self.$name);)*
            }
        }

        #[derive(Default)]
        pub(super) struct Counters {
            $(pub $name: $crate::sync::atomic::AtomicU64,)*
        }

        impl Counters {
            pub fn add_to(&self, stats: &mut Stats) {
                // Relaxed: a statistic.
                $(stats.$name += self.$name.load($crate::sync::atomic::Ordering::Relaxed);)*
            }
        }
    };
}
pub(crate) use counters;

/// Adds to a counter of the calling thread's.
#[inline]
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed); // Relaxed: as above
}
