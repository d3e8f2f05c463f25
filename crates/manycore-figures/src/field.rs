//! By what measurements are told apart.

use manycore_measure::Measurement;
use serde::Deserialize;

/// A dimension of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// What is compared: locks, or other mechanisms.
    Series,
    /// Threads of the workload.
    Threads,
    /// Terminals of a database, each with a thread.
    Terminals,
    /// Clients of a server, each with a worker.
    Clients,
    /// CPUs that the threads may use.
    Cpus,
    /// The share of operations that write, in percent.
    Update,
    /// What operations do, by name.
    Mix,
    /// How much more popular some keys are than others; 0 if all are equally popular.
    Zipf,
}

/// A measurement's value in one dimension.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Coordinate {
    /// A number.
    Number(f64),
    /// A name.
    Name(String),
}

impl Field {
    /// All of them.
    const ALL: [(Self, &str); 8] = [
        (Self::Series, "series"),
        (Self::Threads, "threads"),
        (Self::Terminals, "terminals"),
        (Self::Clients, "clients"),
        (Self::Cpus, "cpus"),
        (Self::Update, "update"),
        (Self::Mix, "mix"),
        (Self::Zipf, "zipf"),
    ];

    /// The name in files and on the axis of a picture.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(field, _)| *field == self).map_or("", |(_, name)| name)
    }

    /// Each of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.iter().map(|(field, _)| *field)
    }

    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own)| *own == name).map(|(field, _)| *field)
    }

    /// The coordinate of a measurement in this dimension; `None` if its workload does not have this
    /// dimension.
    pub fn of(self, measurement: &Measurement) -> Option<Coordinate> {
        let number = match self {
            Self::Series => return Some(Coordinate::Name(measurement.mechanism.name().to_owned())),
            Self::Threads | Self::Terminals | Self::Clients => f64::from(measurement.threads),
            Self::Mix => return Some(Coordinate::Name(measurement.name("mix")?.to_owned())),
            Self::Cpus => measurement.number("cpus")?,
            Self::Update => measurement.update?,
            Self::Zipf => measurement.number("zipf")?,
        };
        Some(Coordinate::Number(number))
    }

    /// The coordinates of measurements in this dimension, each once, numbers in order.
    pub fn places<'a>(self, of: impl IntoIterator<Item = &'a Measurement>) -> Vec<Coordinate> {
        let mut places: Vec<Coordinate> = Vec::new();
        for place in of.into_iter().filter_map(|measurement| self.of(measurement)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        // Names keep the order of the figure.
        places.sort_by(|a, b| match (a, b) {
            (Coordinate::Number(a), Coordinate::Number(b)) => a.total_cmp(b),
            _ => std::cmp::Ordering::Equal,
        });
        places
    }
}

impl std::fmt::Display for Coordinate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}
