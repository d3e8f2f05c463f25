//! Where locks meet: machines, threads, and lengths.

use std::fmt;
use std::time::Duration;

use manycore_measure::duration;
use manycore_sim::Model;

use super::Kind;
use crate::lock::Point;
use crate::work::Length;

/// Numbers of threads, on each machine that has more CPUs.
const THREADS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Sections under mutexes, in nanoseconds.
const SECTIONS: [f64; 4] = [50.0, 100.0, 1_000.0, 10_000.0];

/// Cache lines that these read and write.
const DATA: [u32; 2] = [1, 4];

/// Sections under reader-writer locks.
const SHARED_SECTIONS: [f64; 2] = [100.0, 1_000.0];

/// The percentages of these that read.
const READS: [f64; 4] = [50.0, 90.0, 99.0, 100.0];

/// The mean time between two sections, if it does not depend on their length.
const OUTSIDE: f64 = 200.0;

/// With more threads than CPUs, this number of time slices is counted.
const SLICES: f64 = 20.0;

/// A machine, by its number, and a workload on it.
#[derive(Clone, Debug)]
pub(super) struct MachinePoint {
    pub machine: usize,
    /// Its name, without the ending that all have.
    pub name: String,
    pub cpus: u32,
    pub point: Point,
    /// Simulated time that is counted.
    pub duration: Duration,
}

/// All of them.
pub(super) fn all(kind: Kind, machines: &[Model]) -> Vec<MachinePoint> {
    let of_machine = |(number, model): (usize, &Model)| {
        let machine = model.machine();
        let slice_ns = machine.os.time_slice as f64 / machine.core.ghz;
        let cpus = machine.topology.cpus();
        let name = model.name.strip_suffix("-like").unwrap_or(&model.name).to_owned();
        let place = move |point: Point| MachinePoint {
            machine: number,
            name: name.clone(),
            cpus,
            duration: counted(&point, cpus, slice_ns),
            point,
        };
        threads(cpus).into_iter().flat_map(move |threads| {
            of_threads(kind, threads).into_iter().map(place.clone()).collect::<Vec<_>>()
        })
    };
    machines.iter().enumerate().flat_map(of_machine).collect()
}

fn threads(cpus: u32) -> Vec<u32> {
    let fewer = THREADS.into_iter().filter(|threads| *threads < cpus);
    fewer.chain([cpus, 2 * cpus]).collect()
}

fn of_threads(kind: Kind, threads: u32) -> Vec<Point> {
    let point = |section: f64, outside: f64, reads, data| Point {
        threads,
        locks: 1,
        section: Length::fixed(section),
        outside: Length::fixed(outside),
        reads,
        data,
    };
    match kind {
        Kind::Mutexes => {
            let of_section = |section: f64| {
                [0.0, OUTSIDE, 10.0 * section].into_iter().flat_map(move |outside| {
                    DATA.into_iter().map(move |data| point(section, outside, 0.0, data))
                })
            };
            SECTIONS.into_iter().flat_map(of_section).collect()
        }
        Kind::ReaderWriter => {
            let of_section =
                |section| READS.into_iter().map(move |reads| point(section, OUTSIDE, reads, 1));
            SHARED_SECTIONS.into_iter().flat_map(of_section).collect()
        }
    }
}

/// The counted time. It is so long that each thread runs several times.
fn counted(point: &Point, cpus: u32, slice_ns: f64) -> Duration {
    let round = f64::from(point.threads) * (point.section.mean_ns + 300.0) + point.outside.mean_ns;
    let enough = (10.0 * round).max(2e6);
    let slices = if point.threads > cpus { SLICES * slice_ns } else { 0.0 };
    Duration::from_nanos(enough.max(slices) as u64)
}

impl MachinePoint {
    /// Whether it is among the few of a short run.
    pub fn is_quick(&self) -> bool {
        let Point { threads, section, outside, reads, data, .. } = self.point;
        let is_asked = |all: &[f64], value: f64| all.contains(&value);
        [8, self.cpus, 2 * self.cpus].contains(&threads)
            && is_asked(&[100.0, 1_000.0], section.mean_ns)
            && outside.mean_ns == OUTSIDE
            && is_asked(&[0.0, 99.0], reads)
            && data == 1
    }

    /// The number of threads, or its ratio to the number of CPUs.
    pub fn threads_in_words(&self) -> String {
        match self.point.threads {
            all if all == self.cpus => "all".to_owned(),
            twice if twice == 2 * self.cpus => "2x all".to_owned(),
            few => few.to_string(),
        }
    }

    pub fn section_in_words(&self) -> String {
        duration(self.point.section.mean_ns).trim_end().to_owned()
    }
}

/// The columns of a table by [`MachinePoint::threads_in_words`].
pub(super) fn columns() -> Vec<String> {
    let few = THREADS.iter().map(u32::to_string);
    few.chain(["all".to_owned(), "2x all".to_owned()]).collect()
}

impl fmt::Display for MachinePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { threads, outside, reads, data, .. } = self.point;
        let outside = duration(outside.mean_ns);
        let (name, section, outside) = (&self.name, self.section_in_words(), outside.trim_end());
        write!(f, "{name}, {threads} threads, {section} of {data}, {outside} outside")?;
        if reads > 0.0 { write!(f, ", {reads} % reading") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manycore_sim::model;

    #[test]
    fn every_machine_has_all_its_points_once() {
        let machines = ["ivybridge-2x10", "epyc-2x96"].map(|name| model::find(name).unwrap());
        let places = all(Kind::Mutexes, &machines);
        // 1 to 16, 20 and 40 threads; 1 to 64, 192 and 384.
        assert_eq!(places.len(), (7 + 9) * SECTIONS.len() * 3 * DATA.len());
        let mut names: Vec<String> = places.iter().map(MachinePoint::to_string).collect();
        names.sort();
        names.dedup();
        // With sections of 20 ns and 10 times that outside 200 ns would be there twice.
        assert_eq!(names.len(), places.len());
        let quick = places.iter().filter(|place| place.is_quick()).count();
        assert_eq!(quick, 2 * 3 * 2);
        let shared = all(Kind::ReaderWriter, &machines);
        assert_eq!(shared.len(), (7 + 9) * SHARED_SECTIONS.len() * READS.len());
    }

    #[test]
    fn what_is_counted_has_turns_of_all_threads() {
        for place in all(Kind::Mutexes, &[model::find("epyc-2x96").unwrap()]) {
            let turns = place.duration.as_nanos() as f64
                / (f64::from(place.point.threads) * place.point.section.mean_ns);
            assert!(turns >= 5.0, "{place}: {turns}");
        }
    }
}
