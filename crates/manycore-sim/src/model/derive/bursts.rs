//! Bursts: all cores of a group access a line at the same moment, and each waits until it has the
//! line.

use crate::model::Problem;

/// The mean time of an access in a burst, over the cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Burst {
    /// The operation: `write-one`, `read-written`, ... as in the first column of the file.
    pub accesses: String,
    /// The number of cores, filled group by group.
    pub cores: u32,
    /// Cycles of the core's clock.
    pub cycles: f64,
}

const HEADER: &str = "accesses,cores,cycles";

/// The kinds of accesses to a line: see `sim accuracy`.
const ACCESSES: [&str; 7] = [
    "read-one",
    "read-own",
    "read-written",
    "write-read",
    "write-one",
    "write-own",
    "add-without-end",
];

impl Burst {
    /// Reads a table of bursts. Errors refer to the file as `file`.
    pub fn table(file: &str, text: &str) -> Result<Vec<Self>, Problem> {
        let mut lines = text.lines().enumerate();
        if lines.next().is_none_or(|(_, header)| header.trim() != HEADER) {
            let fault = "has another first line";
            return Err(Problem::of_file(file, fault, &format!("begin with `{HEADER}`")));
        }
        let filled = lines.filter(|(_, line)| !line.trim().is_empty());
        filled.map(|(number, line)| Self::line(file, number + 1, line)).collect()
    }

    /// The table that [`table`](Self::table) reads.
    pub fn text(bursts: &[Self]) -> String {
        let line = |burst: &Self| {
            let Self { accesses, cores, cycles } = burst;
            format!("{accesses},{cores},{cycles:.1}\n")
        };
        std::iter::once(format!("{HEADER}\n")).chain(bursts.iter().map(line)).collect()
    }

    fn line(file: &str, number: usize, line: &str) -> Result<Self, Problem> {
        let fault = |remedy: &str| {
            Problem::of_file(file, format_args!("cannot read line {number}, `{line}`"), remedy)
        };
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [accesses, cores, cycles] = fields[..] else {
            return Err(fault(&format!("write the three fields of `{HEADER}`")));
        };
        if !ACCESSES.contains(&accesses) {
            return Err(fault(&format!("begin with one of {}", ACCESSES.join(", "))));
        }
        let cores = cores.parse().ok().filter(|cores| *cores > 0);
        let cycles = cycles.parse().ok().filter(|cycles: &f64| cycles.is_finite() && *cycles > 0.0);
        match (cores, cycles) {
            (Some(cores), Some(cycles)) => {
                Ok(Self { accesses: accesses.to_owned(), cores, cycles })
            }
            _ => Err(fault("write a number of cores and one of cycles, both above 0")),
        }
    }
}

/// The bursts of a kind, by the number of cores.
fn of_kind<'a>(bursts: &'a [Burst], accesses: &str) -> Vec<&'a Burst> {
    let mut of_kind: Vec<&Burst> =
        bursts.iter().filter(|burst| burst.accesses == accesses).collect();
    of_kind.sort_by_key(|burst| burst.cores);
    of_kind
}

/// The time of an atomic operation on a line that the core owns.
pub(super) fn rmw_hit(bursts: &[Burst]) -> Option<f64> {
    of_kind(bursts, "write-own").first().map(|burst| burst.cycles)
}

/// How long one of many readers in a group occupies the home of a line. The mean wait of n readers
/// that are served one after the other grows by half of that with each reader.
pub(super) fn read_occupancy(bursts: &[Burst], group: u32) -> Option<f64> {
    let within: Vec<&Burst> =
        of_kind(bursts, "read-written").into_iter().filter(|one| one.cores <= group).collect();
    let (first, last) = (within.first()?, within.last()?);
    let more = f64::from(last.cores.checked_sub(first.cores).filter(|more| *more > 0)?);
    Some(2.0 * (last.cycles - first.cycles) / more)
}

/// How long one read of a line that was just written occupies the home, when all measured cores
/// read it. The mean wait is half of the time in which all are served.
pub(super) fn all_reads(bursts: &[Burst], group: u32) -> Option<f64> {
    let most = of_kind(bursts, "read-written").into_iter().rfind(|burst| burst.cores > group)?;
    Some(2.0 * most.cycles / f64::from(most.cores))
}

/// How long one of `cores` atomic additions occupies the line. The mean wait is half of the time in
/// which all are served.
pub(super) fn service(bursts: &[Burst], cores: impl Fn(u32) -> bool) -> Option<f64> {
    let most = of_kind(bursts, "write-one").into_iter().rfind(|burst| cores(burst.cores))?;
    (most.cores > 1).then(|| 2.0 * most.cycles / f64::from(most.cores))
}

/// How long one of many additions occupies the line, if all cores add to it without end. Each core
/// waits for all others.
pub(super) fn service_without_end(bursts: &[Burst]) -> Option<f64> {
    let most = of_kind(bursts, "add-without-end").pop()?;
    (most.cores > 1).then(|| most.cycles / f64::from(most.cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_determine_service_times() {
        let text = "accesses,cores,cycles\nwrite-own,1,30\nwrite-one,10,500\nwrite-one,80,24000\n\
                    read-written,2,90\nread-written,10,250\nadd-without-end,16,384\n";
        let bursts = Burst::table("b.csv", text).unwrap();
        assert_eq!(rmw_hit(&bursts), Some(30.0));
        assert_eq!(read_occupancy(&bursts, 10), Some(40.0));
        assert_eq!(all_reads(&bursts, 10), None);
        assert_eq!(all_reads(&bursts, 8), Some(50.0));
        assert_eq!(service(&bursts, |cores| cores <= 10), Some(100.0));
        assert_eq!(service(&bursts, |_| true), Some(600.0));
        assert_eq!(service(&bursts, |cores| cores < 2), None);
        assert_eq!(service_without_end(&bursts), Some(24.0));
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |text: &str, word: &str| {
            let message = Burst::table("b.csv", text).unwrap_err().to_string();
            assert!(message.contains(word) && message.starts_with("b.csv"), "{message}");
        };
        refused("cores\n", "another first line");
        refused("accesses,cores,cycles\nwrite-all,2,3\n", "line 2");
        refused("accesses,cores,cycles\nwrite-one,0,3\n", "above 0");
        refused("accesses,cores,cycles\nwrite-one,2\n", "three fields");
    }
}
