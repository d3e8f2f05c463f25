//! The simulated program: interrupts, workers, and syscall threads if there are.

use std::cell::Cell;

use hdrhistogram::Histogram;
use manycore_sim::thread::{self, StartCpu};

use super::assumptions::Assumptions;
use super::channel::Channel;
use super::kernel::{Call, ENDED, Kernel};
use super::{IN_PLACE, THREAD};
use crate::simulated::{Finding, Run, SimulatedProgram, Window, sight};
use crate::waits::recorder;

/// What a worker did.
#[derive(Clone)]
struct Outcome {
    /// The number of requests in the counted time, and in total.
    counted: u64,
    served: u64,
    /// The number of requests whose content was not what the client had sent.
    wrong: u64,
    /// From a request's arrival to its answer, in cycles.
    times: Histogram<u64>,
}

impl SimulatedProgram for Assumptions {
    const NAME: &'static str = "Server";

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        simulate(run, self)
    }
}

fn simulate(run: &Run, assumed: &Assumptions) -> Result<Finding, String> {
    let job = run.job;
    let moved = match job.mechanism.as_str() {
        IN_PLACE => false,
        THREAD => true,
        other => return Err(format!("there is no `{other}` to simulate")),
    };
    let starts = starts(run, assumed, moved);
    let window = run.window(0);
    let workers = job.threads as usize;
    let recorders: Vec<_> = (0..workers).map(|_| Cell::new(Some(recorder()))).collect();
    let report = run.simulate(|| {
        let kernel = Kernel::new(assumed, run.ghz(), job.threads, window.end);
        let spin = (assumed.spin_ns * run.ghz()) as u64;
        let channels: Vec<Channel> =
            (0..workers).map(|worker| Channel::new(thread_cpu(run, assumed, worker))).collect();
        let outcomes = thread::parallel_at(&starts, |number| {
            let number = number as usize;
            let first = assumed.interrupt_cpus as usize;
            if number < first {
                kernel.interrupts(number);
                return None;
            }
            let worker = (number - first) % workers;
            let channel = &channels[worker];
            if number - first >= workers {
                channel.serve(spin, |call, client| kernel.execute(call, client));
                return None;
            }
            let times = recorders[worker].take().expect("each worker runs once");
            let channel = moved.then_some(channel);
            Some(work(&kernel, channel, spin, window, times))
        });
        outcomes.into_iter().flatten().collect::<Vec<Outcome>>()
    })?;
    let outcomes = &report.result;
    match outcomes.iter().map(|outcome| outcome.wrong).sum::<u64>() {
        0 => {}
        wrong => return Err(format!("{wrong} requests were read wrongly")),
    }
    if outcomes.iter().all(|outcome| outcome.counted == 0) {
        return Err("no request was served in the time: let it be longer".to_owned());
    }
    let served = outcomes.iter().map(|outcome| outcome.served).sum::<u64>().max(1);
    let counts = outcomes.iter().map(|outcome| outcome.counted).collect();
    let times = outcomes.iter().map(|outcome| &outcome.times);
    Ok(Finding { slice: run.slice(window, counts, times), sight: sight(&report, served) })
}

/// The CPU of a worker's syscall thread: the first package's CPUs without interrupts, in turn.
fn thread_cpu(run: &Run, assumed: &Assumptions, worker: usize) -> u32 {
    let first = assumed.interrupt_cpus;
    first + worker as u32 % (run.machine.topology.cores_per_socket - first)
}

/// The CPUs of threads: interrupts on the first CPUs of the first package; workers on all other
/// CPUs; syscall threads near the interrupts.
fn starts(run: &Run, assumed: &Assumptions, moved: bool) -> Vec<StartCpu> {
    let topology = &run.machine.topology;
    let (first, package) = (assumed.interrupt_cpus, topology.cores_per_socket);
    let interrupts = (0..first).map(|cpu| StartCpu { cpu, pinned: true });
    // A worker's first CPU: one package after the other, so that all CPUs get equally many.
    let in_package = |at: u32| (at..topology.cores()).step_by(package as usize);
    let others: Vec<u32> = (0..package).flat_map(in_package).filter(|cpu| *cpu >= first).collect();
    let turn = |number: u32| others[number as usize % others.len()];
    let workers = (0..run.job.threads).map(|number| StartCpu { cpu: turn(number), pinned: false });
    let calls = 0..if moved { run.job.threads } else { 0 };
    let calls = calls.map(|worker| thread_cpu(run, assumed, worker as usize));
    let calls = calls.map(|cpu| StartCpu { cpu, pinned: true });
    interrupts.chain(workers).chain(calls).collect()
}

/// What a worker does until the server ends.
fn work(
    kernel: &Kernel,
    channel: Option<&Channel>,
    spin: u64,
    window: Window,
    times: Histogram<u64>,
) -> Outcome {
    let mut outcome = Outcome { counted: 0, served: 0, wrong: 0, times };
    let call = |call: Call, client: u32| match channel {
        Some(channel) => channel.perform(call, client, spin),
        None => kernel.execute(call, client),
    };
    loop {
        let client = call(Call::Accept, 0);
        if client == ENDED {
            channel.into_iter().for_each(Channel::end);
            return outcome;
        }
        let (number, arrived) = kernel.asked(client);
        call(Call::Fcntl, client);
        call(Call::Fcntl, client);
        outcome.wrong += u64::from(call(Call::Read, client) != number);
        kernel.page();
        call(Call::Write, client);
        let now = thread::now();
        outcome.served += 1;
        if (window.begin..window.end).contains(&now) {
            outcome.counted += 1;
            outcome.times.saturating_record(now.saturating_sub(arrived).max(1));
        }
        for last in [Call::ReadNothing, Call::Shutdown, Call::Poll, Call::ReadNothing, Call::Close]
        {
            call(last, client);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::simulated::{self, Job, Program};
    use crate::slice::Pinning;

    fn job(mechanism: &str, clients: u32, assumed: Assumptions) -> Job {
        Job {
            machine: manycore_sim::model::find("ivybridge-2x10").unwrap().to_toml(),
            cpus: None,
            mechanism: mechanism.to_owned(),
            threads: clients,
            program: Program::of(&assumed),
            measured: Duration::from_millis(4),
            pinning: Pinning::None,
            seed: 1,
            every_turn: false,
            patient: false,
        }
    }

    fn finding(mechanism: &str, clients: u32, assumed: Assumptions) -> Finding {
        simulated::simulate::<Assumptions>(&job(mechanism, clients, assumed)).unwrap()
    }

    #[test]
    fn a_client_alone_waits_for_its_page_and_the_way() {
        let served = |mechanism| {
            let finding = finding(mechanism, 1, Assumptions::default());
            finding.slice.counts.iter().sum::<u64>()
        };
        // A request takes 50 us on the way and about 130 us in the server, so 22 are served in 4
        // ms.
        assert!((18..=24).contains(&served(IN_PLACE)), "{}", served(IN_PLACE));
        assert!((10..=22).contains(&served(THREAD)), "{}", served(THREAD));
    }

    #[test]
    fn pages_that_take_long_are_all_that_counts() {
        let served = |mechanism| {
            let assumed = Assumptions { page_ns: 2e6, ..Assumptions::default() };
            // Long enough for twenty pages on each CPU.
            let long = Job { measured: Duration::from_millis(40), ..job(mechanism, 40, assumed) };
            simulated::simulate::<Assumptions>(&long).unwrap().slice.throughput()
        };
        let ratio = served(THREAD) / served(IN_PLACE);
        // Nineteen CPUs compute pages, wherever the calls are.
        assert!((0.85..1.15).contains(&ratio), "{ratio}");
    }

    #[test]
    fn what_is_moved_stays_in_the_package() {
        // The channel's lines move between packages in any case. So the test compares the moves
        // that sockets with more lines add.
        let crossed = |mechanism, socket| {
            let mut assumed = Assumptions::default();
            assumed.lines.socket = socket;
            finding(mechanism, 8, assumed).sight["transfers_1"]
        };
        let more = |mechanism| crossed(mechanism, 128) - crossed(mechanism, 16);
        let (moved, in_place) = (more(THREAD), more(IN_PLACE));
        assert!(in_place > 30.0 && moved < 0.3 * in_place, "{moved} of {in_place}");
    }

    #[test]
    fn the_same_seed_gives_the_same() {
        let finding = || finding(THREAD, 24, Assumptions::default());
        assert_eq!(finding(), finding());
    }
}
