//! Measures the costs of the machine that this runs on: the constants of a machine model.
//!
//! | module | what it measures |
//! |---|---|
//! | `topology` | nothing: which CPUs share what, as the kernel tells |
//! | `own` | a CPU alone: atomic instructions on its own cache, the pause instruction, the clock |
//! | `walk` | loads from each level of cache and from memory |
//! | `transfer` | cache lines that go from one CPU to another |
//! | `contention` | how often a compare-and-swap succeeds while another CPU tries, too |
//! | `burst` | accesses of several cores to one line at the same moment, for `machines derive` |
//! | `hand_over` | the same of each pair of CPUs, for `machines derive` |
//! | `kernel` | system calls, wake-ups, switches between threads, time slices |
//! | `model` | from what was measured to a model for the simulator |
//!
//! Each kernel runs many short batches. Other activity of the machine can only make a batch longer.
//! So the value is the 10th percentile of the batches; the range goes from the fastest batch to the
//! 75th percentile.
//!
//! ```no_run
//! let host = manycore_bench::host::measure(|what| eprintln!("{what}"))?;
//! for reading in &host.readings {
//!     let (name, value) = (&reading.name, reading.value);
//!     println!("{name}: {value:.1} [{:.1}, {:.1}]", reading.low, reading.high);
//! }
//! # Ok::<(), manycore_bench::Failure>(())
//! ```

pub(crate) mod burst;
mod contention;
pub(crate) mod hand_over;
mod kernel;
mod model;
mod own;
mod pair;
mod sample;
mod topology;
mod transfer;
mod walk;

use crate::failure::Failure;

pub use sample::Reading;
pub use topology::{Distance, Topology};

/// What was found out about this machine.
#[derive(Clone, Debug)]
pub struct Host {
    /// Which CPUs share what.
    pub topology: Topology,
    /// What it costs, each by its name.
    pub readings: Vec<Reading>,
}

impl Host {
    /// The reading of this name.
    pub fn reading(&self, name: &str) -> Option<&Reading> {
        self.readings.iter().find(|reading| reading.name == name)
    }
}

/// Measures this machine; takes some seconds. `progress` gets the name of the next measurement.
pub fn measure(mut progress: impl FnMut(&str)) -> Result<Host, Failure> {
    let topology = Topology::read().map_err(Failure::Failed)?;
    if topology.cpus.len() < 2 {
        let fault =
            "this process may run on one CPU only: give it two, so that they can be seen to share";
        return Err(Failure::Failed(fault.into()));
    }
    let first = topology.cpus[0].number;
    let mut readings = Vec::new();
    progress("atomic instructions and the clock");
    readings.extend(own::measure(first)?);
    progress("caches and memory");
    readings.extend(walk::measure(first, &topology.caches)?);
    for (distance, partner) in topology.partners() {
        progress(&format!("transfers: {}", distance.describe()));
        readings.extend(transfer::measure(first, partner, distance)?);
        progress(&format!("contention: {}", distance.describe()));
        readings.extend(contention::measure(first, partner, distance)?);
    }
    progress("system calls and switches");
    readings.extend(kernel::measure(first, topology.partners().last().map(|(_, cpu)| *cpu))?);
    Ok(Host { topology, readings })
}

/// The error for a thread that could not be kept on its CPU.
fn not_pinned(error: std::io::Error) -> Failure {
    Failure::Failed(format!("cannot keep a thread on its CPU: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_measured() {
        let host = measure(|_| ()).unwrap();
        for reading in &host.readings {
            println!("{reading:?}");
            let Reading { name, value, low, high, .. } = reading;
            assert!(0.0 < *low && low <= value && value <= high, "{name}: {low} {value} {high}");
        }
        let value = |name: &str| host.reading(name).unwrap_or_else(|| panic!("no {name}")).value;
        assert!(value("load_l1") < value("load_memory"));
        assert!(value("futex_wait_refused") < value("futex_message_local"));
        assert!(value("futex_message_local") < value("slice"));
        for (distance, _) in host.topology.partners() {
            assert!(value("rmw_own") < value(&format!("rmw_modified_{}", distance.name())));
            if distance != Distance::Sibling {
                assert!(value("rmw_own") < value(&format!("rmw_shared_{}", distance.name())));
            }
        }
    }
}
