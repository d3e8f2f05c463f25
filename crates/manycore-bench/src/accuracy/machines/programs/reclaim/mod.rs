//! Sorted lists with several reclamation schemes, after published comparisons. The list is the same
//! with all schemes, so only the scheme differs.
//!
//! | module | what is in it |
//! |---|---|
//! | `scheme` | what a list asks of a scheme, and what all schemes need |
//! | `epochs` | nothing is freed; epochs; quiescent states |
//! | `hazard` | hazard pointers |
//! | `intervals` | hazard eras; the first and the last era of an operation (2GEIBR) |
//! | `lists` | Harris' list in Michael's form, one or a table of them |
//!
//! They store, load and wait like the program of the set `reclaim-ibr`, and are written for the
//! simulator alone. No memory is freed while another thread can read it; tests check that under
//! explored schedules. manycore's own reclamation is in `reclaim`.

mod epochs;
mod hazard;
mod intervals;
mod lists;
mod scheme;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use manycore_sim::thread;
use serde::{Deserialize, Serialize};

use self::epochs::{Epochs, Leak, Quiescence};
use self::hazard::Pointers;
use self::intervals::{Eras, Interval};
use self::lists::Lists;
use self::scheme::{Access, Pace, Scheme};
use crate::simulated::{Finding, Run, SimulatedProgram};
use crate::structure::{self, Simulated, SimulatedActor, SimulatedUse};

/// Threads use a table of lists.
///
/// The operation on a key depends on the key modulo 100, as in the published programs, which draw
/// key and operation from one number. So after the first moments the keys of insertions are in the
/// lists and the keys of removals are not, and only `puts` change the lists.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reclaim {
    /// Keys are below this.
    pub range: u64,
    pub lists: u64,
    /// The operations, in percent; the remaining ones remove.
    pub gets: u64,
    #[serde(default)]
    pub puts: u64,
    #[serde(default)]
    pub inserts: u64,
    /// The time of an operation apart from its accesses.
    pub beside_ns: f64,
}

impl SimulatedProgram for Reclaim {
    const NAME: &'static str = "Reclaim";

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        let job = run.job;
        let maker = maker(&job.mechanism)
            .ok_or_else(|| format!("there is no reclamation scheme `{}`", job.mechanism))?;
        let keys: Vec<u64> = (0..self.range).filter(|key| self.is_first(*key)).collect();
        let how = Simulated { threads: job.threads, operations: None, keys: keys.len() as u64 };
        // Any odd multiplier keeps the threads' seeds apart.
        let seed = |thread| (u64::from(thread) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ job.seed;
        structure::simulate(run, how, seed, || {
            let table = maker(job.threads, self.lists);
            Ok(Use { table, program: self, keys: &keys })
        })
    }
}

impl Reclaim {
    /// Whether a key is in the lists at the start. Keys that some operation inserts are. Of the
    /// keys that are only looked up, a share is: the one that random draws of half of the range
    /// would insert.
    fn is_first(&self, key: u64) -> bool {
        let kind = key % 100;
        if kind < self.gets {
            // 1 - exp(-1/2), by Fibonacci hashing.
            return key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < 1_689_944_000;
        }
        kind < self.gets + self.puts + self.inserts
    }

    /// Does an operation on a key; returns by how much the number of keys grew.
    fn act(&self, access: &mut dyn Access, key: u64) -> i64 {
        let kind = key % 100;
        if kind < self.gets {
            access.get(key);
            0
        } else if kind < self.gets + self.puts {
            i64::from(access.put(key))
        } else if kind < self.gets + self.puts + self.inserts {
            i64::from(access.insert(key))
        } else {
            -i64::from(access.remove(key))
        }
    }
}

/// A table of lists with any scheme.
trait Table {
    fn access(&self) -> Box<dyn Access + '_>;
}

impl<S: Scheme> Table for Lists<S> {
    fn access(&self) -> Box<dyn Access + '_> {
        Box::new(self.handle())
    }
}

/// Makes a table for this many threads and lists.
type Maker = fn(u32, u64) -> Box<dyn Table>;

fn table<S: Scheme>(threads: u32, lists: u64) -> Box<dyn Table> {
    Box::new(Lists::<S>::new(threads, lists, Pace::default()))
}

fn maker(scheme: &str) -> Option<Maker> {
    Some(match scheme {
        Leak::NAME => table::<Leak>,
        Epochs::NAME => table::<Epochs>,
        Quiescence::NAME => table::<Quiescence>,
        Pointers::NAME => table::<Pointers>,
        Eras::NAME => table::<Eras>,
        Interval::NAME => table::<Interval>,
        _ => return None,
    })
}

/// A table that simulated threads use.
struct Use<'a> {
    table: Box<dyn Table>,
    program: &'a Reclaim,
    keys: &'a [u64],
}

impl SimulatedUse for Use<'_> {
    /// The seed of a thread's draws.
    type Operations = u64;
    /// The number of keys that the thread has added.
    type Tally = i64;
    type Actor<'a>
        = Actor<'a>
    where
        Self: 'a;

    fn actor(&self, _: u32, seed: u64) -> Actor<'_> {
        let random = fastrand::Rng::with_seed(seed);
        let Self { table, program, keys } = self;
        Actor { access: table.access(), program, keys, random, added: 0 }
    }

    fn statistics(&self, _: &mut dyn FnMut(&'static str, u64)) {}

    fn verify(&self, tallies: &[i64], _: u64) -> Result<BTreeMap<String, f64>, String> {
        let expected = self.keys.len() as i64 + tallies.iter().sum::<i64>();
        let mut access = self.table.access();
        let mut found = 0;
        for key in 0..self.program.range {
            found += i64::from(access.get(key));
            thread::progress();
        }
        if found != expected {
            return Err(format!(
                "the lists have {found} keys, but the results of the operations add up to {expected}"
            ));
        }
        Ok(BTreeMap::new())
    }
}

/// A simulated thread.
struct Actor<'a> {
    access: Box<dyn Access + 'a>,
    program: &'a Reclaim,
    keys: &'a [u64],
    random: fastrand::Rng,
    added: i64,
}

impl SimulatedActor<i64> for Actor<'_> {
    fn fill(&mut self) {
        for key in self.keys {
            self.access.insert(*key);
            thread::progress();
        }
    }

    fn act(&mut self) -> f64 {
        let key = self.random.u64(..self.program.range);
        self.added += self.program.act(&mut *self.access, key);
        self.program.beside_ns
    }

    fn tally(&self) -> i64 {
        self.added
    }
}
