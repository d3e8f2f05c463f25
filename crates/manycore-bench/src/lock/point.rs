//! The work of threads at one point of a grid, and the description of the point in a record.

use manycore_measure::Parameter;

use crate::mix::Mix;
use crate::work::{Length, Spread};

/// What threads do that contend for locks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Threads.
    pub threads: u32,
    /// Locks.
    pub locks: u32,
    /// Time in a section.
    pub section: Length,
    /// Time between two sections.
    pub outside: Length,
    /// The share of sections that only read, in percent.
    pub reads: f64,
    /// Cache lines that a section reads and writes.
    pub data: u32,
}

impl Point {
    /// What its threads do.
    pub(crate) fn mix(&self) -> Mix {
        Mix::uniform(self.locks, self.section, self.outside, self.reads).with_data(self.data)
    }
}

impl Point {
    /// What a record says about it.
    pub(crate) fn parameters(&self) -> [(String, Parameter); 6] {
        let parameters: [(&str, Parameter); 6] = [
            ("locks", f64::from(self.locks).into()),
            ("section_ns", self.section.mean_ns.into()),
            ("section_spread", spread(self.section)),
            ("data_lines", f64::from(self.data).into()),
            ("outside_ns", self.outside.mean_ns.into()),
            ("outside_spread", spread(self.outside)),
        ];
        parameters.map(|(name, value)| (name.to_string(), value))
    }
}

fn spread(length: Length) -> Parameter {
    match length.spread {
        Spread::Fixed => "fixed".into(),
        Spread::Exponential => "exponential".into(),
    }
}
