//! The operations of threads that contend for locks: a grid of points, the same for every machine.

use super::point::Point;
use crate::failure::Failure;
use crate::mix::check_data;
use crate::slice::MOST_THREADS;
use crate::work::Length;

/// A grid of points.
pub(crate) struct PointGrid<'a> {
    pub threads: &'a [u32],
    pub lock_count: u32,
    pub sections: &'a [Length],
    /// Time between two sections; `None` means exponential with twice the mean of the section.
    pub outside: Option<Length>,
    pub reads: f64,
    /// Cache lines that a section reads and writes.
    pub data: u32,
}

impl PointGrid<'_> {
    /// Whether it makes sense.
    pub fn check(&self) -> Result<(), Failure> {
        let wrong_threads = self.threads.iter().find(|count| !(1..=MOST_THREADS).contains(*count));
        let is_wrong = |length: &&Length| !(0.0..=1e9).contains(&length.mean_ns);
        let wrong_length = self.sections.iter().chain(&self.outside).find(is_wrong);
        let faults = [
            self.threads
                .is_empty()
                .then(|| "no thread counts: give some, such as 1,2,4".to_owned()),
            wrong_threads.map(|count| {
                format!("{count} threads: a thread count is between 1 and {MOST_THREADS}")
            }),
            self.sections
                .is_empty()
                .then(|| "no section lengths: give some, such as 50ns,1us".to_owned()),
            wrong_length.map(|length| {
                let ns = length.mean_ns;
                format!(
                    "a length of {ns} ns: in a section and outside it is between 0 and a second"
                )
            }),
            (!(0.0..=100.0).contains(&self.reads))
                .then(|| format!("{} % of reads: that is between 0 and 100 %", self.reads)),
            (!(1..=1_000_000).contains(&self.lock_count))
                .then(|| format!("{} locks: there are between 1 and a million", self.lock_count)),
            check_data(self.data).err(),
        ];
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }

    /// Each section with each number of threads.
    pub fn points(&self) -> Vec<Point> {
        let point = |section: &Length, threads: &u32| Point {
            threads: *threads,
            locks: self.lock_count,
            section: *section,
            outside: self.outside.unwrap_or(Length::exponential(2.0 * section.mean_ns)),
            reads: self.reads,
            data: self.data,
        };
        let of_section = |section| self.threads.iter().map(move |threads| point(section, threads));
        self.sections.iter().flat_map(of_section).collect()
    }
}
