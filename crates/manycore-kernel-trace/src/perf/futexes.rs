//! Waits for words of the program's own, by the tracepoints of the futex call.
//!
//! The BPF programs see a sleep itself; here it is derived from the call around it: a thread waits
//! from the call until its return. A call that returned because the word had changed did not sleep,
//! and is no wait.

use std::collections::HashMap;
use std::ffi::CString;

use manycore_profile::analyze::futex::{Count, FutexWaits, Futexes};
use perf_event_open_sys::bindings::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_SAMPLE,
};

use super::returns::{self, Returns};
use super::{CALLS, Record, Rings, Wanted, attributes, tracefs};
use crate::asleep::{Asleep, CLOCK_REALTIME, PRIVATE, SLEEPING, asleep, waits_for_event};
use crate::clock::now;
use crate::sleepers::{Numbers, PROCESSES, Sleepers, calls};
use crate::sum::Sum;
use crate::waits::Totals;
use crate::{Request, Scope};

/// The most sums that are kept, as by the BPF programs.
const SUMS_MAX: usize = 8192;

const ENTER: &str = "syscalls/sys_enter_futex";
const EXIT: &str = "syscalls/sys_exit_futex";

/// Open events, and what has been read of them.
#[derive(Debug)]
pub struct FutexCalls {
    rings: Rings,
    layout: Layout,
    young: Vec<Event>,
    sleeps: Sleeps,
    sleepers: Sleepers,
    places: Numbers<WaitSite>,
}

/// The offsets and sizes of fields in the tracepoints' records.
#[derive(Clone, Copy, Debug)]
struct Layout {
    enter: u64,
    word: (usize, usize),
    operation: (usize, usize),
    value: (usize, usize),
    result: (usize, usize),
}

#[derive(Debug, PartialEq)]
struct Event {
    time: u64,
    process: u32,
    task: u32,
    what: What,
}

#[derive(Debug, PartialEq)]
enum What {
    /// A thread makes a call. `leaf` is where a function without a frame has its return address.
    Calls { word: u64, is_event: bool, calls: Vec<u64>, leaf: u64 },
    /// The call returns.
    Returns { has_slept: bool },
    /// The thread is gone, out of whatever call.
    Exits,
    /// Its process has become another program.
    Replaced,
    /// Records are missing here.
    Lost,
}

impl FutexCalls {
    /// Begins to count.
    pub fn start(request: &Request) -> Result<Self, String> {
        let tracefs = tracefs()?;
        let tracepoint = |name: &str| {
            tracefs.id(name).map_err(|error| {
                format!("no tracepoint {name} ({error}): a kernel with FTRACE_SYSCALLS, and root, have it")
            })
        };
        let (enter, exit) = (tracepoint(ENTER)?, tracepoint(EXIT)?);
        let field = |name, field| {
            tracefs
                .field(name, field)
                .map_err(|error| format!("the format of {name} is not known: {error}"))
        };
        let layout = Layout {
            enter,
            word: field(ENTER, "uaddr")?,
            operation: field(ENTER, "op")?,
            value: field(ENTER, "val")?,
            result: field(EXIT, "ret")?,
        };
        let mut calls = Wanted { attributes: attributes(enter, CALLS), filter: Some(filter()) };
        returns::ask(&mut calls.attributes);
        calls.attributes.set_exclude_callchain_kernel(1);
        calls.attributes.set_comm(1);
        calls.attributes.set_comm_exec(1);
        calls.attributes.set_task(1);
        // For the events of threads that wake others: as short as possible, with a number of calls
        // that is zero.
        let mut returns = Wanted { attributes: attributes(exit, 1), filter: None };
        returns.attributes.set_exclude_callchain_kernel(1);
        returns.attributes.set_exclude_callchain_user(1);
        let rings = Rings::open(request.scope, &[calls, returns])?;
        let own = (request.scope == Scope::Command).then(std::process::id);
        let mut sleeps = Sleeps { own, ..Sleeps::default() };
        if let Scope::Process(process) = request.scope {
            sleeps.begin(process, now());
        }
        let (sleepers, places) = (Sleepers::default(), Numbers::default());
        Ok(Self { rings, layout, young: Vec::new(), sleeps, sleepers, places })
    }

    /// Reads what has come.
    pub fn read(&mut self) {
        self.read_until(now());
        for (process, programs) in &self.sleeps.processes {
            self.sleepers.sample(*process, *programs, 0);
        }
    }

    fn read_until(&mut self, time: u64) {
        let Self { rings, layout, young, sleeps, .. } = self;
        let mut gaps = Vec::new();
        let each = |kind, misc: u16, record: &mut Record<'_>| {
            young.extend(match kind {
                PERF_RECORD_SAMPLE => layout.event(record),
                PERF_RECORD_EXIT => Some(exit(record)),
                PERF_RECORD_COMM if u32::from(misc) & PERF_RECORD_MISC_COMM_EXEC != 0 => {
                    Some(replaced(record))
                }
                _ => None,
            });
        };
        rings.read(each, |time| gaps.push(time));
        // After records of the same time: the sort leaves these in their order.
        young.extend(gaps.into_iter().map(lost));
        young.sort_by_key(|event| event.time);
        let old = young.partition_point(|event| event.time < time);
        young.drain(..old).for_each(|event| sleeps.take(event));
    }

    /// The totals of each place, as far as events have been read.
    pub fn counts(&mut self) -> Vec<Count> {
        let count = |(place, (waits, total_ns))| {
            Some(Count { number: self.places.of(place)?, waits, total_ns })
        };
        self.sleeps.counts(now()).into_iter().filter_map(count).collect()
    }

    /// The waits until now, by word, and their totals.
    pub fn futexes(&mut self) -> (Futexes, Totals) {
        self.read_until(now());
        for (process, programs) in &self.sleeps.processes {
            self.sleepers.look_again(*process, *programs, 0);
        }
        let (sums, mut totals) = self.sleeps.until(now());
        let waits = sums.into_iter().map(|(place, sum)| {
            let number = self.places.of(&place);
            let WaitSite { process, program, word, is_event, calls } = place;
            sum.of_futex(FutexWaits {
                process,
                program,
                number,
                word,
                is_event,
                calls,
                ..FutexWaits::default()
            })
        });
        let waits = waits.collect();
        totals.unread = self.sleeps.returns.refused();
        // A wait has two events: at most this many are lost.
        totals.waits += self.rings.lost;
        totals.dropped += self.rings.lost;
        (self.sleepers.futexes(waits), totals)
    }
}

/// Only calls that may sleep: most others wake a thread.
fn filter() -> CString {
    let flags = [0, PRIVATE, CLOCK_REALTIME, PRIVATE | CLOCK_REALTIME];
    let operations = SLEEPING.iter().flat_map(|operation| flags.map(|flags| operation | flags));
    let terms: Vec<String> = operations.map(|operation| format!("op == {operation}")).collect();
    CString::new(terms.join(" || ")).expect("no zero is in it")
}

impl Layout {
    fn event(&self, record: &mut Record<'_>) -> Option<Event> {
        let (process, task, time) = (record.int(), record.int(), record.long());
        let calls = record.calls();
        let raw = record.raw()?;
        let number = |(at, size)| raw.number(at, size);
        if raw.id()? != self.enter {
            let what = What::Returns { has_slept: has_slept(number(self.result)? as i64) };
            return Some(Event { time, process, task, what });
        }
        // Both are 32 bits wide, whatever their registers have above.
        let [operation, value] = [number(self.operation)?, number(self.value)?].map(|it| it as u32);
        let is_event = waits_for_event(operation.into(), value)?;
        let word = number(self.word)?;
        let leaf = returns::answer(record);
        Some(Event { time, process, task, what: What::Calls { word, is_event, calls, leaf } })
    }
}

/// Whether a call with this result has slept: it was woken, it timed out, or a signal arrived.
fn has_slept(result: i64) -> bool {
    /// The kernel-internal results of calls that have to be repeated.
    const RESTART: std::ops::RangeInclusive<i64> = 512..=516;
    let error = -result;
    result >= 0
        || error == i64::from(libc::ETIMEDOUT)
        || error == i64::from(libc::EINTR)
        || RESTART.contains(&error)
}

fn exit(record: &mut Record<'_>) -> Event {
    let (process, _, task, _) = (record.int(), record.int(), record.int(), record.int());
    Event { time: record.long(), process, task, what: What::Exits }
}

/// A record was lost; it belongs to no thread.
fn lost(time: u64) -> Event {
    Event { time, process: u32::MAX, task: u32::MAX, what: What::Lost }
}

fn replaced(record: &mut Record<'_>) -> Event {
    let time = record.time(PERF_RECORD_COMM);
    let (process, task) = (record.int(), record.int());
    Event { time, process, task, what: What::Replaced }
}

/// Calls under way, and the sums of those that have slept.
#[derive(Debug, Default)]
struct Sleeps {
    /// Whose waits do not count: ours.
    own: Option<u32>,
    begun: HashMap<u32, Sleep>,
    sums: HashMap<WaitSite, Sum>,
    /// Processes that have made such calls, and the number of programs that each has executed
    /// since.
    processes: HashMap<u32, u32>,
    returns: Returns,
    totals: Totals,
}

#[derive(Debug)]
struct Sleep {
    place: WaitSite,
    began: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WaitSite {
    process: u32,
    /// Which of its programs.
    program: u32,
    word: u64,
    is_event: bool,
    calls: Vec<u64>,
}

impl Sleeps {
    /// Notes the threads that sleep already: their waits begin now.
    fn begin(&mut self, process: u32, time: u64) {
        for Asleep { thread, word, is_event, ip } in asleep(process) {
            let what = What::Calls { word, is_event, calls: vec![ip], leaf: 0 };
            self.take(Event { time, process, task: thread, what });
        }
    }

    /// The number of waits that have ended in each place, and the time that threads have waited
    /// there, including waits that are under way.
    fn counts(&self, now: u64) -> HashMap<&WaitSite, (u64, u64)> {
        let ended = self.sums.iter().map(|(place, sum)| (place, (sum.waits, sum.total_ns)));
        let mut counts: HashMap<_, _> = ended.collect();
        for Sleep { place, began } in self.begun.values() {
            counts.entry(place).or_default().1 += now.saturating_sub(*began);
        }
        counts
    }

    /// All waits. A wait that is under way counts with its time until now.
    fn until(&self, now: u64) -> (HashMap<WaitSite, Sum>, Totals) {
        let (mut sums, mut totals) = (self.sums.clone(), self.totals);
        for Sleep { place, began } in self.begun.values() {
            let (word, ns) = (place.word, now.saturating_sub(*began));
            sums.entry(place.clone()).or_default().count(word, ns, 0);
        }
        totals.under_way = self.begun.len() as u64;
        totals.waits += totals.under_way;
        (sums, totals)
    }

    /// Adds an event. Events come in the order of their time.
    fn take(&mut self, event: Event) {
        let Event { time, process, task, what } = event;
        if self.own == Some(process) {
            return;
        }
        match what {
            What::Calls { word, is_event, calls: stack, leaf } => {
                let caller = if self.returns.has(process, leaf) { leaf } else { 0 };
                let ip = stack.first().copied().unwrap_or(0);
                let calls = calls(ip, caller, &stack);
                if self.processes.len() < PROCESSES as usize {
                    self.processes.entry(process).or_default();
                }
                let program = self.processes.get(&process).copied().unwrap_or(0);
                let place = WaitSite { process, program, word, is_event, calls };
                self.begun.insert(task, Sleep { place, began: time });
            }
            What::Returns { has_slept } => {
                if let Some(sleep) = self.begun.remove(&task).filter(|_| has_slept) {
                    self.count(sleep, time);
                }
            }
            What::Exits => {
                if let Some(sleep) = self.begun.remove(&task) {
                    self.count(sleep, time);
                }
                if task == process {
                    self.returns.forget(process);
                }
            }
            What::Replaced => {
                self.returns.forget(process);
                self.processes.entry(process).and_modify(|programs| *programs += 1);
            }
            // A call that has begun may have returned since, and its thread may be in another.
            What::Lost => {
                let begun = self.begun.drain().count() as u64;
                self.totals.waits += begun;
                self.totals.dropped += begun;
            }
        }
    }

    fn count(&mut self, sleep: Sleep, end: u64) {
        let Sleep { place, began } = sleep;
        self.totals.without_maps += u64::from(!self.processes.contains_key(&place.process));
        self.totals.waits += 1;
        if self.sums.len() >= SUMS_MAX && !self.sums.contains_key(&place) {
            self.totals.dropped += 1;
            return;
        }
        let word = place.word;
        self.sums.entry(place).or_default().count(word, end.saturating_sub(began), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::MARKS;
    use super::*;

    const LAYOUT: Layout =
        Layout { enter: 500, word: (16, 8), operation: (24, 8), value: (32, 8), result: (16, 8) };

    #[cfg(target_arch = "x86_64")]
    const LEAF: &[u64] = &[8, 0x150, 8];
    #[cfg(target_arch = "x86_64")]
    const NO_LEAF: &[u64] = &[8, 0x150, 0];
    #[cfg(target_arch = "aarch64")]
    const LEAF: &[u64] = &[2, 0x150];
    #[cfg(target_arch = "aarch64")]
    const NO_LEAF: &[u64] = &[0];

    fn sample(raw: &[u64], id: u16, stack: &[u64]) -> Vec<u8> {
        let mut bytes: Vec<u8> = [7_u32, 9].iter().flat_map(|n| n.to_ne_bytes()).collect();
        bytes.extend([1000, 3, MARKS, 0x100, 0x200].iter().flat_map(|n: &u64| n.to_ne_bytes()));
        bytes.extend((16 + raw.len() as u32 * 8).to_ne_bytes());
        bytes.extend(id.to_ne_bytes());
        bytes.extend([0; 14]);
        bytes.extend(raw.iter().chain(stack).flat_map(|n| n.to_ne_bytes()));
        bytes
    }

    #[test]
    fn calls_and_returns_are_read_from_their_records() {
        let read = |bytes: Vec<u8>| LAYOUT.event(&mut Record(&bytes));
        let event = read(sample(&[0xa000, PRIVATE, 2], 500, LEAF)).unwrap();
        assert_eq!((event.process, event.task, event.time), (7, 9, 1000));
        let calls = vec![0x100, 0x200];
        assert_eq!(event.what, What::Calls { word: 0xa000, is_event: false, calls, leaf: 0x150 });
        // Nothing of the stack could be read.
        let event = read(sample(&[0xa000, 0, 1], 500, NO_LEAF)).unwrap();
        assert!(matches!(event.what, What::Calls { is_event: true, leaf: 0, .. }));
        assert!(read(sample(&[0xa000, PRIVATE | 1, 1], 500, &[8, 0, 8])).is_none(), "a wake-up");
        let event = read(sample(&[-11_i64 as u64], 501, &[])).unwrap();
        assert_eq!(event.what, What::Returns { has_slept: false });
    }

    #[test]
    fn the_kernel_is_asked_for_calls_that_sleep() {
        assert_eq!(filter().to_str().unwrap().matches("op == ").count(), 20);
    }

    #[test]
    fn results_tell_who_has_slept() {
        assert_eq!([0, -110, -4, -512, -516].map(has_slept), [true; 5]);
        assert_eq!([-11, -14, -22, -38].map(has_slept), [false; 4]);
    }

    fn event(time: u64, task: u32, what: What) -> Event {
        Event { time, process: 7, task, what }
    }

    fn calls_for(word: u64) -> What {
        What::Calls { word, is_event: false, calls: vec![0x100, 0x200], leaf: 0 }
    }

    #[test]
    fn waits_are_those_that_slept() {
        let mut sleeps = Sleeps { own: Some(1), ..Sleeps::default() };
        let returns = |has_slept| What::Returns { has_slept };
        sleeps.take(event(100, 8, calls_for(0xa000)));
        sleeps.take(event(150, 9, calls_for(0xa000)));
        sleeps.take(event(200, 9, returns(false)));
        sleeps.take(event(600, 8, returns(true)));
        sleeps.take(event(600, 8, returns(true)));
        sleeps.take(event(700, 9, calls_for(0xa000)));
        sleeps.take(event(900, 9, What::Exits));
        sleeps.take(Event { process: 1, ..event(1000, 3, calls_for(0xa000)) });
        sleeps.take(Event { process: 1, ..event(1100, 3, returns(true)) });
        let [sum] = &sleeps.sums.values().collect::<Vec<_>>()[..] else { panic!("{sleeps:?}") };
        assert_eq!((sum.waits, sum.total_ns, sum.max_ns), (2, 700, 500));
        assert_eq!((sleeps.totals.waits, sleeps.totals.dropped), (2, 0));
        assert!(sleeps.begun.is_empty());
    }

    #[test]
    fn a_wait_that_has_not_ended_counts_until_now() {
        let mut sleeps = Sleeps::default();
        sleeps.take(event(100, 8, calls_for(0xa000)));
        let counts = |sleeps: &Sleeps, now| sleeps.counts(now).into_values().collect::<Vec<_>>();
        assert_eq!(counts(&sleeps, 400), [(0, 300)]);
        let waited = |(sums, totals): (HashMap<WaitSite, Sum>, Totals)| {
            let sum = sums.into_values().next().unwrap();
            (sum.waits, sum.total_ns, totals.waits, totals.under_way)
        };
        assert_eq!(waited(sleeps.until(400)), (1, 300, 1, 1));
        sleeps.take(event(500, 8, What::Returns { has_slept: true }));
        assert_eq!(waited(sleeps.until(900)), (1, 400, 1, 0));
        assert_eq!(counts(&sleeps, 900), [(1, 400)]);
    }

    #[test]
    fn waits_are_those_of_the_program_that_it_was() {
        let mut sleeps = Sleeps::default();
        for what in [calls_for(0xa000), What::Returns { has_slept: true }, What::Replaced] {
            sleeps.take(event(100, 8, what));
        }
        sleeps.take(event(200, 8, calls_for(0xa000)));
        let (sums, _) = sleeps.until(300);
        let mut programs: Vec<u32> = sums.keys().map(|place| place.program).collect();
        programs.sort_unstable();
        assert_eq!(programs, [0, 1]);
    }

    #[test]
    fn two_waits_whose_middle_is_lost_are_not_one() {
        let mut sleeps = Sleeps { own: Some(0), ..Sleeps::default() };
        let returns = || What::Returns { has_slept: true };
        sleeps.take(event(100, 8, calls_for(0xa000)));
        sleeps.take(event(150, 9, calls_for(0xb000)));
        sleeps.take(lost(200));
        sleeps.take(event(9000, 8, returns()));
        sleeps.take(event(9100, 8, calls_for(0xa000)));
        sleeps.take(event(9150, 8, returns()));
        let [sum] = &sleeps.sums.values().collect::<Vec<_>>()[..] else { panic!("{sleeps:?}") };
        assert_eq!((sum.waits, sum.total_ns), (1, 50));
        assert_eq!((sleeps.totals.waits, sleeps.totals.dropped), (3, 2));
    }

    #[test]
    fn a_program_is_another_from_its_record_on() {
        let mut bytes: Vec<u8> = [7_u32, 9].iter().flat_map(|n| n.to_ne_bytes()).collect();
        bytes.extend(b"name\0\0\0\0");
        bytes.extend([7_u32, 9].iter().flat_map(|n| n.to_ne_bytes()));
        bytes.extend(4711_u64.to_ne_bytes());
        assert_eq!(replaced(&mut Record(&bytes)), event(4711, 9, What::Replaced));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut sleeps = Sleeps::default();
        for word in 0..SUMS_MAX as u64 + 3 {
            sleeps.take(event(word, 8, calls_for(word)));
            sleeps.take(event(word + 1, 8, What::Returns { has_slept: true }));
        }
        assert_eq!((sleeps.sums.len(), sleeps.totals.dropped), (SUMS_MAX, 3));
    }
}
