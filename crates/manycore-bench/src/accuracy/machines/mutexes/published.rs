//! The published times of mutexes on real machines: a table in `figures/measured`.

use crate::failure::Failure;

/// The table. The file beside it names the source.
const MUTEXES: &str = include_str!("../../../../../../figures/measured/mutexes.csv");

/// The measured machines, and the models of them.
pub(super) const MACHINES: [(&str, &str); 4] = [
    ("x86-12c", "core-12500-6x2-like"),
    ("x86-44c", "xeon-e5-2699v4-2x22-like"),
    ("x86-64c", "epyc-9454p-8x8-like"),
    ("aarch64-18c", "m1-ultra-18-like"),
];

/// The model of the machine on which the published program pauses by `wfe`, and the time of that
/// pause in nanoseconds: Apple's cores resume by themselves after 1269 ns on average, as measured
/// for another program.
pub(super) const PAUSES_BY_WFE: (&str, f64) = ("m1-ultra-18-like", 1_269.0);

/// The measured locks, and their names in manycore.
const LOCKS: [(&str, &str); 4] = [
    ("glibc", "futex"),
    ("rust-std", "rust-std"),
    ("depth-gated", "depth-gated"),
    ("parking_lot", "parking-lot"),
];

/// The number of acquisitions in each measurement.
pub(super) const ACQUISITIONS: u32 = 50_000;

/// The number of entries of the map under the lock.
pub(super) const ENTRIES: u32 = 64;

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Published {
    pub model: &'static str,
    /// The name of the series. Two series may have points in common.
    pub series: String,
    /// The lock's name in manycore.
    pub lock: &'static str,
    pub tasks: u32,
    /// Wall time of an acquisition, in nanoseconds: the median.
    pub ns: f64,
}

/// All lines.
pub(super) fn mutexes() -> Result<Vec<Published>, Failure> {
    MUTEXES.lines().skip(1).filter(|line| !line.is_empty()).map(parse).collect()
}

fn parse(line: &str) -> Result<Published, Failure> {
    let wrong = || Failure::Failed(format!("figures/measured/mutexes.csv: cannot read `{line}`"));
    let fields: Vec<&str> = line.split(',').collect();
    let [machine, series, lock, tasks, median, _] = fields[..] else { return Err(wrong()) };
    let named = |names: &[(&str, &'static str)], name: &str| {
        names.iter().find(|(own, _)| *own == name).map(|(_, here)| *here).ok_or_else(wrong)
    };
    let microseconds: f64 = median.parse().map_err(|_| wrong())?;
    Ok(Published {
        model: named(&MACHINES, machine)?,
        series: series.to_owned(),
        lock: named(&LOCKS, lock)?,
        tasks: tasks.parse().map_err(|_| wrong())?,
        ns: microseconds * 1_000.0 / f64::from(ACQUISITIONS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_parses() {
        let all = mutexes().unwrap();
        let first = all.iter().find(|one| one.lock == "futex" && one.tasks == 64).unwrap();
        assert_eq!((first.model, first.ns), ("m1-ultra-18-like", 143.2));
        for (_, model) in MACHINES {
            for (_, lock) in LOCKS {
                let of = |one: &&Published| (one.model, one.lock) == (model, lock);
                assert!(all.iter().filter(of).any(|one| one.tasks == 1), "{model}, {lock}");
            }
        }
        assert!(parse("x86-12c,a,glibc,1,two,3").is_err() && parse("vax,a,glibc,1,2,3").is_err());
    }
}
