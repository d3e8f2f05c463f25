//! What can be asked of a simulation, of whatever workload.

use std::time::Duration;

use manycore_sim::Model;

use crate::contender;
use crate::failure::Failure;

/// The most threads of a workload. A simulation has these and the one that starts them.
pub(crate) const THREADS_MAX: u32 = 4_095;

/// Checks that locks, numbers of threads and CPUs, and the counted time make sense together.
pub(crate) struct Question<'a> {
    pub machine: &'a Model,
    pub locks: &'a [String],
    pub threads: &'a [u32],
    pub cpus: &'a [u32],
    pub duration: Option<Duration>,
}

impl Question<'_> {
    pub fn check(&self) -> Result<(), Failure> {
        let known = || contender::simulated::names(true);
        let unknown = self.locks.iter().find(|name| !known().any(|lock| lock == *name));
        let (name, has) = (&self.machine.name, self.machine.machine().topology.cpus());
        let times = Duration::from_micros(1)..=Duration::from_secs(60);
        let faults = [
            unknown.map(|unknown| {
                let names = known().collect::<Vec<_>>().join(", ");
                format!("no lock `{unknown}` can be simulated: choose from {names}")
            }),
            self.threads.iter().find(|count| !(1..=THREADS_MAX).contains(count)).map(|count| {
                format!("{count} threads cannot be simulated: a thread count is between 1 and {THREADS_MAX}")
            }),
            self.cpus
                .iter()
                .find(|cpus| !(1..=has).contains(cpus))
                .map(|_| format!("{name} has {has} CPUs: use 1 to {has} of them")),
            self.duration
                .filter(|duration| !times.contains(duration))
                .map(|_| "the simulated time is not between 1 us and a minute".to_owned()),
        ];
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }
}
