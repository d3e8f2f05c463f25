//! `manycore bench forks` and `manycore bench faults`: loads on the kernel, and which of its locks
//! they wait for.
//!
//! Throughput comes from unobserved runs, in rounds. Afterwards the kernel's locks are observed in
//! other runs. Observing costs the load something, so these runs only count towards a separate
//! throughput, shown separately.

use std::time::Duration;

use super::{Order, PARALLEL_MAX, What};
use clap::Args;
use humantime::{format_duration, parse_duration};
use manycore_kernel_trace::{Means, Request, Scope, Watch};
use manycore_measure::paired::Schedule;

use super::measured::{Measured, Profiled};
use super::output::{self, Wording};
use super::{picture, process};
use crate::front::{Outcome, PlotOptions};
use manycore_compare::trial::TrialDir;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;

/// How the load is measured.
#[derive(Args, Debug)]
pub(super) struct Measuring {
    /// Length of a run; a fifth of it more comes first, and does not count
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_duration)]
    time: Duration,
    /// Rounds, in each of which every number has its run
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Rounds afterwards in which the kernel's locks are watched; 0: not at all
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    profiles: u32,
    /// Watch the kernel's locks by this means, and not by the first that works
    #[arg(long, value_enum, value_name = "MEANS", require_equals = true, num_args = 0..=1, default_value = "auto", default_missing_value = "auto")]
    kernel: Means,
    /// Seed of what is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    pub plot: PlotOptions,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl Measuring {
    /// Measures a load with these numbers of processes or threads. Points of one load come in the
    /// order of their numbers.
    pub fn run(
        &self,
        subject: &Wording,
        loads: &[What],
        parallel: &[u32],
        room: &TrialDir,
        terminal: &Terminal,
    ) -> Result<Outcome> {
        let orders = self.orders(loads, parallel)?;
        let mut inbox = Inbox::open()?;
        let mut measured: Vec<Measured> = orders
            .into_iter()
            .map(|order| Measured { order, values: Vec::new(), profiled: Vec::new() })
            .collect();
        self.measure(&mut measured, room, &mut inbox, terminal)?;
        let refused = self.profile(&mut measured, room, &mut inbox, terminal)?;
        let results = output::results(subject, &measured, refused.as_deref())?;
        let text = output::render(subject, &results);
        let figure = Some(picture::figure(subject, &results));
        Ok(Outcome { results, text, figure, failures: Vec::new() })
    }

    fn orders(&self, loads: &[What], parallel: &[u32]) -> Result<Vec<Order>> {
        let hour = Duration::from_secs(3_600);
        if !(Duration::from_millis(10)..=hour).contains(&self.time) {
            return Err(Failure::bad_input(
                format!("a run cannot take {}", format_duration(self.time)),
                "let --time be 10ms to 1h",
            ));
        }
        if let Some(number) = parallel.iter().find(|number| !(1..=PARALLEL_MAX).contains(number)) {
            return Err(Failure::bad_input(
                format!("{number} at a time cannot be measured"),
                format!("choose numbers from 1 to {PARALLEL_MAX}"),
            ));
        }
        let mut parallel = parallel.to_vec();
        parallel.sort_unstable();
        parallel.dedup();
        let order = |what: &What, parallel: u32| Order {
            what: what.clone(),
            parallel,
            warm_up: self.time / 5,
            measured: self.time,
            seed: self.seed,
        };
        Ok(loads
            .iter()
            .flat_map(|what| parallel.iter().map(|number| order(what, *number)).collect::<Vec<_>>())
            .collect())
    }

    fn measure(
        &self,
        measured: &mut [Measured],
        room: &TrialDir,
        inbox: &mut Inbox,
        terminal: &Terminal,
    ) -> Result<()> {
        let bar = terminal.progress(u64::from(self.rounds) * measured.len() as u64);
        for order in Schedule::new(measured.len(), self.seed).take(self.rounds as usize) {
            for point in order {
                let point = &mut measured[point];
                bar.set_message(format!("{} at a time", point.order.parallel));
                let answer = process::run(&point.order, room, inbox, || {})?;
                point.values.push(answer.throughput());
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Profiles a run; prints the reason if the kernel may not be observed.
    fn profile(
        &self,
        measured: &mut [Measured],
        room: &TrialDir,
        inbox: &mut Inbox,
        terminal: &Terminal,
    ) -> Result<Option<String>> {
        let bar = terminal.progress(u64::from(self.profiles) * measured.len() as u64);
        for order in Schedule::new(measured.len(), !self.seed).take(self.profiles as usize) {
            for point in order {
                let point = &mut measured[point];
                bar.set_message(format!("{} at a time, watched", point.order.parallel));
                let watch = Watch::start(self.kernel, &Request { scope: Scope::Command });
                let mut watch = match watch {
                    Ok(watch) => watch,
                    Err(why) => return Ok(Some(why.to_string())),
                };
                let answer = process::run(&point.order, room, inbox, || watch.sample())?;
                point.profiled.push(Profiled {
                    throughput: answer.throughput(),
                    time_ns: answer.whole_ns * f64::from(point.order.parallel),
                    seen: watch.finish(),
                });
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok(None)
    }
}

/// Powers of two up to a few times the CPUs. Beyond the number of CPUs, a thread that holds a lock
/// may have no CPU.
pub(super) fn usual_numbers() -> Vec<u32> {
    let most = 4 * crate::cpus::allowed().len() as u32;
    (0..).map(|power| 1 << power).take_while(|number| *number <= most.min(PARALLEL_MAX)).collect()
}
