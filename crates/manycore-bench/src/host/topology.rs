//! Which CPUs share what, as the kernel tells in sysfs.

use std::collections::BTreeSet;

use manycore_placement::{Cache, CpuSet, Tree};

use crate::cpus;

/// The CPUs that this process may run on, and their caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// In ascending order; at least one.
    pub cpus: Vec<Cpu>,
    /// Sizes of the first CPU's data caches, nearest first.
    pub caches: Vec<Cache>,
    /// Memory nodes.
    pub nodes: usize,
}

/// A CPU's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The kernel's number.
    pub number: usize,
    /// Its socket.
    pub package: usize,
    /// The least number among the threads of its core.
    pub core: usize,
    /// The lowest number among the CPUs with which it shares the last-level cache.
    pub cluster: usize,
}

/// How far two CPUs are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// Two threads of one core.
    Sibling,
    /// Cores with a last-level cache in common.
    Cluster,
    /// Cores of one socket with different last-level caches.
    Socket,
    /// Different sockets.
    Remote,
}

impl Distance {
    /// Its name in the names of readings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sibling => "sibling",
            Self::Cluster => "cluster",
            Self::Socket => "socket",
            Self::Remote => "remote",
        }
    }

    /// What it means.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Sibling => "threads of one core",
            Self::Cluster => "cores with a last-level cache in common",
            Self::Socket => "cores of one socket with different last-level caches",
            Self::Remote => "cores of different sockets",
        }
    }
}

impl Topology {
    /// Reads the topology of this machine.
    pub fn read() -> Result<Self, String> {
        let machine = manycore_placement::Topology::read(&Tree::of_this_machine())
            .map_err(|problem| problem.to_string())?;
        let places = cpus::allowed().into_iter().filter_map(|number| machine.cpu(number));
        let places: Vec<&manycore_placement::Cpu> = places.collect();
        let first = places.first().ok_or("this process may run on no CPU")?;
        Ok(Self {
            cpus: places.iter().map(|place| Cpu::at(place)).collect(),
            // A size that is not told cannot be walked through.
            caches: first.caches.iter().copied().filter(|cache| cache.bytes > 0).collect(),
            nodes: machine.nodes.len(),
        })
    }

    /// The nearest partner of the first CPU at each existing distance, the shortest distance first.
    pub fn partners(&self) -> Vec<(Distance, usize)> {
        let mut partners: Vec<(Distance, usize)> = Vec::new();
        for cpu in &self.cpus[1..] {
            let distance = self.cpus[0].distance(cpu);
            if partners.iter().all(|(known, _)| *known != distance) {
                partners.push((distance, cpu.number));
            }
        }
        partners.sort_unstable();
        partners
    }

    /// Sockets, cores and threads, and last-level caches.
    pub fn counts(&self) -> Counts {
        let count = |key: &dyn Fn(&Cpu) -> (usize, usize)| {
            self.cpus.iter().map(key).collect::<BTreeSet<_>>().len()
        };
        Counts {
            sockets: count(&|cpu| (cpu.package, 0)),
            cores: count(&|cpu| (cpu.package, cpu.core)),
            clusters: count(&|cpu| (cpu.package, cpu.cluster)),
            threads: self.cpus.len(),
        }
    }
}

/// How many there are of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Sockets.
    pub sockets: usize,
    /// Last-level caches.
    pub clusters: usize,
    /// Cores.
    pub cores: usize,
    /// Threads of cores: the kernel's CPUs.
    pub threads: usize,
}

impl Cpu {
    fn at(place: &manycore_placement::Cpu) -> Self {
        let least = |cpus: &CpuSet| cpus.first().unwrap_or(place.number);
        Self {
            number: place.number,
            package: place.package,
            core: least(&place.siblings),
            cluster: least(&place.last_level),
        }
    }

    fn distance(&self, other: &Self) -> Distance {
        if self.package != other.package {
            Distance::Remote
        } else if self.core == other.core {
            Distance::Sibling
        } else if self.cluster == other.cluster {
            Distance::Cluster
        } else {
            Distance::Socket
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(number: usize, package: usize, core: usize, cluster: usize) -> Cpu {
        Cpu { number, package, core, cluster }
    }

    #[test]
    fn partners_are_found_at_every_distance() {
        let cpus = vec![
            cpu(0, 0, 0, 0),
            cpu(1, 0, 1, 0),
            cpu(2, 0, 4, 2),
            cpu(3, 1, 0, 3),
            cpu(4, 0, 0, 0),
        ];
        let topology = Topology { cpus, caches: Vec::new(), nodes: 1 };
        let expected = [
            (Distance::Sibling, 4),
            (Distance::Cluster, 1),
            (Distance::Socket, 2),
            (Distance::Remote, 3),
        ];
        assert_eq!(topology.partners(), expected);
        let counts = Counts { sockets: 2, clusters: 3, cores: 4, threads: 5 };
        assert_eq!(topology.counts(), counts);
    }

    #[test]
    fn this_machine_is_described() {
        let topology = Topology::read().unwrap();
        assert_eq!(topology.cpus.len(), cpus::allowed().len());
        assert!(topology.caches.windows(2).all(|pair| pair[0].level < pair[1].level));
    }
}
