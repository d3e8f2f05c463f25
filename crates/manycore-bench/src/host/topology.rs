//! Which CPUs share what, as the kernel tells in sysfs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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
    /// Its core within the socket.
    pub core: usize,
    /// The least number among the CPUs with which it shares the last-level cache.
    pub cluster: usize,
}

/// A cache that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is the nearest.
    pub level: u32,
    /// Its size.
    pub bytes: u64,
    /// Lines a set; 0 if the kernel does not tell.
    pub ways: u32,
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
    /// Of this machine.
    pub fn read() -> Result<Self, String> {
        let numbers = cpus::allowed();
        let sysfs = Path::new("/sys/devices/system/cpu");
        let cpus = numbers.iter().map(|number| Cpu::read(sysfs, *number)).collect::<Vec<_>>();
        let first = cpus.first().ok_or("this process may run on no CPU")?;
        let nodes = fs::read_dir("/sys/devices/system/node").map_or(1, |entries| {
            let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            names.filter(|name| name.starts_with("node")).count().max(1)
        });
        Ok(Self { caches: caches(&sysfs.join(format!("cpu{}", first.number))), cpus, nodes })
    }

    /// The nearest partner of the first CPU at each distance that there is, nearest first.
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
    fn read(sysfs: &Path, number: usize) -> Self {
        let directory = sysfs.join(format!("cpu{number}"));
        let of_topology = |name: &str| read_number(&directory.join("topology").join(name));
        let shared = last_level(&directory).and_then(|cache| {
            let list = fs::read_to_string(cache.join("shared_cpu_list")).ok()?;
            first_number(&list)
        });
        Self {
            number,
            package: of_topology("physical_package_id").unwrap_or(0),
            // Where the kernel says nothing, as on some virtual machines, each CPU is a core.
            core: of_topology("core_id").unwrap_or(number),
            cluster: shared.unwrap_or(0),
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

/// The caches of a CPU that hold data, with their directories.
fn cache_directories(cpu: &Path) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(cpu.join("cache")) else { return Vec::new() };
    let of_entry = |path: PathBuf| {
        let kind = fs::read_to_string(path.join("type")).ok()?;
        let level = read_number(&path.join("level"))? as u32;
        (kind.trim() != "Instruction").then_some((level, path))
    };
    let mut found: Vec<_> = entries.flatten().filter_map(|entry| of_entry(entry.path())).collect();
    found.sort_unstable();
    found
}

fn last_level(cpu: &Path) -> Option<PathBuf> {
    cache_directories(cpu).pop().map(|(_, path)| path)
}

fn caches(cpu: &Path) -> Vec<Cache> {
    let of_directory = |(level, path): (u32, PathBuf)| {
        let text = fs::read_to_string(path.join("size")).ok()?;
        let kib: u64 = text.trim().strip_suffix('K')?.parse().ok()?;
        let ways = read_number(&path.join("ways_of_associativity")).unwrap_or(0) as u32;
        Some(Cache { level, bytes: kib << 10, ways })
    };
    cache_directories(cpu).into_iter().filter_map(of_directory).collect()
}

fn read_number(path: &Path) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The first number of a list such as `0-3,8`.
fn first_number(list: &str) -> Option<usize> {
    list.trim().split([',', '-']).next()?.parse().ok()
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
    fn lists_of_cpus_begin_with_a_number() {
        assert_eq!(first_number("4-7,12\n"), Some(4));
        assert_eq!(first_number(""), None);
    }

    #[test]
    fn this_machine_is_described() {
        let topology = Topology::read().unwrap();
        assert_eq!(topology.cpus.len(), cpus::allowed().len());
        assert!(topology.caches.windows(2).all(|pair| pair[0].level < pair[1].level));
    }
}
