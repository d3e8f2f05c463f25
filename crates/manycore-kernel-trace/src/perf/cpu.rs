//! Stacks of threads that are on a CPU, this many times in a second of their CPU time.

use std::io;
use std::time::Duration;

use manycore_profile::analyze::cpu_samples::Samples;
use manycore_profile::profile::SampleSource;
use manycore_profile::record::kernel_side::CpuSampler;
use perf_event_open_sys::bindings::{
    PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER, PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_CPU_CLOCK,
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_MISC_COMM_EXEC,
    PERF_RECORD_SAMPLE, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_PERIOD, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, perf_event_attr,
};

use super::tasks::{Event, Tasks};
use super::{MARKS, Record, Rings, Wanted, files, open, ring};
use crate::Scope;
use crate::clock::now;
use crate::kallsyms::Kallsyms;

/// The size of a CPU's buffer for samples, in bytes: half of the memory that every user may pin by
/// default. A power of two.
const ROOM: usize = 256 << 10;
/// Calls of a stack that are kept, of the kernel and the program together.
const DEPTH: u16 = 96;

/// Samples a command or a process.
#[derive(Debug)]
pub struct Sampler {
    rings: Rings,
    samples: Samples,
    begun: u64,
    /// Samples that were read, but are so recent that older ones may still arrive.
    young: Vec<(u64, Event)>,
    tasks: Tasks,
}

/// Whose events are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The events of all processes, of which the command's are selected. A new process then costs
    /// only a record.
    System,
    /// The events of the command: each new process gets an event for each CPU.
    Command,
    /// A process', and of its threads.
    Process(u32),
}

impl Sampler {
    /// Starts to sample the processes that this one starts from now on, or the threads of a
    /// process, `rate` times in a second of each thread's CPU time. It uses cycles or the clock,
    /// with the kernel or without it, whichever is permitted first.
    pub fn start(scope: Scope, rate: u32) -> Result<Self, String> {
        let reaches = match scope {
            Scope::Process(pid) => vec![Reach::Process(pid)],
            _ => vec![Reach::System, Reach::Command],
        };
        Self::start_with(&reaches, rate, ROOM)
    }

    fn start_with(reaches: &[Reach], rate: u32, room: usize) -> Result<Self, String> {
        let mut refused = io::Error::from_raw_os_error(libc::ENOSYS);
        for source in [SampleSource::Cycles, SampleSource::CpuClock] {
            for (reach, with_kernel) in reaches.iter().flat_map(|it| [(*it, true), (*it, false)]) {
                match rings(reach, &attributes(source, rate, with_kernel, reach), room) {
                    Ok(rings) => {
                        let samples = Samples::new(source, rate, with_kernel);
                        let tasks = match reach {
                            Reach::System => Tasks::started_by(std::process::id()),
                            _ => Tasks::default(),
                        };
                        return Ok(Self { rings, samples, begun: now(), young: Vec::new(), tasks });
                    }
                    Err(error) => refused = error,
                }
            }
        }
        Err(why(&refused, rate))
    }

    /// Reads the new data; call this several times a second, or some data may be lost.
    pub fn sample(&mut self) {
        self.look_until(now());
    }

    /// Takes events in the order of their time, up to a time before which all have been written.
    fn look_until(&mut self, time: u64) {
        let Self { rings, samples, begun, young, tasks } = self;
        let each = |kind, misc: u16, record: &mut Record<'_>| {
            let time = record.time(kind);
            young.extend(event(kind, misc, record).map(|event| (time, event)));
        };
        rings.read(each, |_| {});
        young.sort_by_key(|(time, _)| *time);
        let lost = std::mem::take(&mut rings.lost);
        if lost > 0 {
            tasks.doubt(samples);
            samples.lost += lost;
        }
        tasks.note_execs(young);
        let old = young.partition_point(|(at, _)| *at < time);
        for (time, event) in young.drain(..old) {
            let at = time.saturating_sub(*begun) / 1_000_000;
            tasks.take(event, u32::try_from(at).unwrap_or(u32::MAX), samples);
        }
    }

    /// Stops, so long after the run began.
    pub fn finish(mut self, run: Duration) -> Samples {
        let ended = now();
        self.look_until(u64::MAX);
        let Self { mut samples, begun, rings, .. } = self;
        // They sample until then.
        drop(rings);
        samples.start = ended.saturating_sub(begun) as f64 / 1e9 - run.as_secs_f64();
        let calls = samples.kernel_calls();
        if !calls.is_empty() {
            let symbols = Kallsyms::read();
            if !symbols.is_empty() {
                samples.kernel =
                    calls.into_iter().map(|call| (call, symbols.frame(call))).collect();
            }
        }
        samples
    }
}

impl CpuSampler for Sampler {
    fn sample(&mut self) {
        Sampler::sample(self);
    }

    fn finish(self: Box<Self>, run: Duration) -> Samples {
        Sampler::finish(*self, run)
    }
}

fn rings(reach: Reach, attributes: &perf_event_attr, room: usize) -> io::Result<Rings> {
    let wanted = [Wanted { attributes: *attributes, filter: None }];
    let (scope, room) = match reach {
        // With a record of each process of the machine; a user who may have these may have more
        // room.
        Reach::System => (Scope::System, 2 * room),
        Reach::Command => (Scope::Command, room),
        Reach::Process(pid) => (Scope::Process(pid), room),
    };
    open(scope, &wanted, &files::as_many_as_permitted(), |cpus| room.min(ring::room(cpus)))
}

fn attributes(source: SampleSource, rate: u32, with_kernel: bool, reach: Reach) -> perf_event_attr {
    let (type_, config) = match source {
        SampleSource::Cycles => (PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
        SampleSource::CpuClock => (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK),
    };
    let sample = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
    let mut attributes = perf_event_attr {
        type_,
        size: size_of::<perf_event_attr>() as u32,
        config: config.into(),
        sample_type: sample.into(),
        sample_max_stack: DEPTH,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_freq = rate.into();
    attributes.set_freq(1);
    attributes.set_exclude_kernel((!with_kernel).into());
    attributes.set_exclude_hv(1);
    attributes.set_use_clockid(1);
    // So that all other records have their time, too.
    attributes.set_sample_id_all(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_task(1);
    attributes.set_exclude_idle(1);
    // Not this process is meant, but the child that it forks.
    attributes.set_disabled((reach == Reach::Command).into());
    attributes.set_enable_on_exec((reach == Reach::Command).into());
    attributes
}

fn event(kind: u32, misc: u16, record: &mut Record<'_>) -> Option<Event> {
    match kind {
        PERF_RECORD_SAMPLE => {
            let (process, task, _) = (record.int(), record.int(), record.long());
            let weight = record.long() as f32;
            let (kernel, user) = calls(record);
            Some(Event::Sample { process, task, weight, kernel, user })
        }
        PERF_RECORD_COMM => {
            let (process, task) = (record.int(), record.int());
            let is_exec = u32::from(misc) & PERF_RECORD_MISC_COMM_EXEC != 0;
            Some(Event::Named { process, task, name: record.text(), is_exec })
        }
        PERF_RECORD_FORK | PERF_RECORD_EXIT => {
            let (process, maker, task, parent) =
                (record.int(), record.int(), record.int(), record.int());
            Some(match kind {
                PERF_RECORD_FORK => Event::Forked { process, maker, task, parent },
                _ => Event::Ended { process, task },
            })
        }
        _ => None,
    }
}

/// The calls in the kernel, and those in the program: each group follows a mark. The innermost
/// address of a group is the next instruction. It is converted to a return address like the others,
/// because names are looked up for the address before it.
fn calls(record: &mut Record<'_>) -> (Vec<u64>, Vec<u64>) {
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    let mut context = 0;
    // No more than there can be, whatever the record says.
    for _ in 0..record.long().min(record.0.len() as u64 / 8) {
        let call = record.long();
        if call >= MARKS {
            context = call;
            continue;
        }
        let list = match context {
            PERF_CONTEXT_KERNEL => &mut kernel,
            PERF_CONTEXT_USER => &mut user,
            _ => continue,
        };
        list.push(if list.is_empty() { call + 1 } else { call });
    }
    (kernel, user)
}

fn why(error: &io::Error, rate: u32) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "not permitted: run as root, or grant CAP_PERFMON, or set kernel.perf_event_paranoid to 2 or less".to_owned()
        }
        Some(libc::EINVAL) => format!(
            "the kernel does not take {rate} samples a second: it may have to be less, see kernel.perf_event_max_sample_rate"
        ),
        Some(libc::EMFILE) => {
            "it takes an open file for each thread and CPU, and this many are not permitted".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::io::Write;
    use std::time::Instant;

    use super::*;

    fn bytes(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    #[test]
    fn a_samples_calls_are_the_kernels_and_the_programs() {
        let (kernel, user) = (PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER);
        let ids = u64::from(7_u32) | u64::from(9_u32) << 32;
        let record = bytes(&[ids, 1000, 5, 6, kernel, 0x8001, 0x8002, user, 0x11, 0x22]);
        let taken = event(PERF_RECORD_SAMPLE, 0, &mut Record(&record)).unwrap();
        let expected = Event::Sample {
            process: 7,
            task: 9,
            weight: 5.0,
            kernel: vec![0x8002, 0x8002],
            user: vec![0x12, 0x22],
        };
        assert_eq!(taken, expected);
        // A record that claims to be longer than it is gives only the existing bytes.
        assert_eq!(calls(&mut Record(&bytes(&[u64::MAX, user, 5]))), (vec![], vec![6]));
    }

    /// A buffer of one page, which no thread reads.
    #[test]
    fn samples_without_room_are_counted() {
        let own = Reach::Process(std::process::id());
        let mut sampler = match Sampler::start_with(&[own], 4000, rustix::param::page_size()) {
            Ok(sampler) => sampler,
            // Not by a macro: those the test harness would swallow.
            Err(why) => {
                return io::stderr().write_all(format!("skipped: {why}\n").as_bytes()).unwrap();
            }
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        // Losses are reported with the next record for which there is room again.
        while sampler.samples.lost == 0 && Instant::now() < deadline {
            let mut sum = 0_u64;
            (0..200_000_000).for_each(|number| sum = black_box(sum + number));
            sampler.sample();
        }
        let samples = sampler.finish(Duration::ZERO);
        assert!(samples.lost > 0);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let said = |code| why(&io::Error::from_raw_os_error(code), 4000);
        assert!(said(libc::EACCES).contains("CAP_PERFMON"));
        assert!(said(libc::EINVAL).contains("4000"));
        assert!(said(libc::EMFILE).contains("open file"));
    }
}
