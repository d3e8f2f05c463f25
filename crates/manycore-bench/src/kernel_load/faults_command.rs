//! `manycore bench faults`: threads that touch memory while others map some.

use super::What;
use clap::Args;

use super::command::{Measuring, usual_numbers};
use super::output::Wording;
use crate::front::{Benchmark, Outcome, PlotOptions};
use manycore_compare::trial::TrialDir;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench faults
  manycore bench faults --threads 1,2,8,64 --update 0,10,100 --plot faults.html
  manycore bench faults --update 50 --kernel=perf --json > faults.json

Workload:
  Threads of one process. Of their operations, --update percent map 64 KiB, touch four
  pages and unmap them; the others touch a page that is not there yet, each thread in
  a part of its own of one mapping. Mapping changes the address space, and a page fault
  needs it to stay as it is: the two sides of mmap_lock. Since Linux 6.4 most faults take
  the lock of their mapping alone.

Output:
  operations   of all threads together, from runs without a profile
  of linear    the speed-up over as many times as there are CPUs for it
  Then the kernel's locks, from other runs: how much of the threads' time they were
  waited for. That takes root, or what the line in its place says.

Exit status:
  0   measured, with the kernel's locks or without
  1   the load failed
  2   bad usage
";

/// Threads of one process map memory and fault: operations, and which of the kernel's locks they
/// wait for
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Numbers of threads [default: powers of two, up to four times the CPUs]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    threads: Vec<u32>,
    /// Shares of operations that map, in percent; the others are page faults
    #[arg(long, value_name = "PERCENT,..", value_delimiter = ',', default_value = "10,50")]
    update: Vec<f64>,
    #[command(flatten)]
    measuring: Measuring,
}

impl Benchmark for Options {
    const NAME: &'static str = "faults";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        if let Some(share) = self.update.iter().find(|share| !(0.0..=100.0).contains(*share)) {
            return Err(Failure::bad_input(
                format!("an update share of {share} makes no sense"),
                "it is between 0 and 100 %",
            ));
        }
        let threads = if self.threads.is_empty() { usual_numbers() } else { self.threads.clone() };
        let mut shares = self.update.clone();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        let loads: Vec<What> = shares.into_iter().map(|update| What::Faults { update }).collect();
        let subject = Wording {
            workload: "faults",
            those: "threads",
            operations: "operations",
            per: 1.0,
            unit: "/s",
            parameters: Vec::new(),
        };
        self.measuring.run(&subject, &loads, &threads, &TrialDir::new()?, terminal)
    }

    fn json(&self) -> bool {
        self.measuring.json
    }

    fn plot(&self) -> Option<&PlotOptions> {
        Some(&self.measuring.plot)
    }
}
