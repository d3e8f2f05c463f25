//! Waits read event by event, where the kernel permits no BPF programs.

mod pairs;
mod ring;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings::{
    PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_SAMPLE,
    PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_RAW, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
    PERF_TYPE_TRACEPOINT, perf_event_attr,
};
use rustix::time::{ClockId, clock_gettime};

use crate::event;
use crate::kallsyms::Kallsyms;
use crate::tracefs::Tracefs;
use crate::waits::{Totals, Waits};
use crate::{Request, Scope};
use pairs::{Event, Pairs};
use ring::Ring;

/// Calls of a stack that are kept.
const CALLS: u16 = 48;
/// Contexts within a stack are marked by numbers above this.
const MARKS: u64 = -4096_i64 as u64;

/// Open events, and what has been read of them.
#[derive(Debug)]
pub struct Events {
    /// One for each CPU.
    rings: Vec<Ring>,
    /// Others that write to these.
    _events: Vec<OwnedFd>,
    layout: Layout,
    pairs: Pairs,
    /// Read, and too young to be sure that no older ones come.
    young: Vec<Event>,
    lost: u64,
    limits: Vec<String>,
}

/// Where things are in a tracepoint's record.
#[derive(Clone, Copy, Debug)]
struct Layout {
    begin: u64,
    /// Of `contention_begin`.
    lock: usize,
    flags: usize,
    /// Of `contention_end`.
    lock_at_end: usize,
}

impl Events {
    /// Begins to count.
    pub fn start(request: &Request, symbols: &Kallsyms) -> Result<Self, String> {
        let tracefs = Tracefs::open().map_err(|error| {
            format!("there is no tracefs ({error}): mount -t tracefs tracefs /sys/kernel/tracing, and run as root")
        })?;
        let tracepoint = |name: &str| {
            tracefs.id(name).map_err(|error| {
                format!("no tracepoint {name} ({error}): Linux 5.19 and root have it")
            })
        };
        let [begin, end] = ["lock/contention_begin", "lock/contention_end"].map(tracepoint);
        let (begin, end) = (begin?, end?);
        let field = |name, field| tracefs.field(name, field).map(|(offset, _)| offset);
        let layout = (|| {
            io::Result::Ok(Layout {
                begin,
                lock: field("lock/contention_begin", "lock_addr")?,
                flags: field("lock/contention_begin", "flags")?,
                lock_at_end: field("lock/contention_end", "lock_addr")?,
            })
        })()
        .map_err(|error| format!("the tracepoint's format is not known: {error}"))?;
        let (rings, events) =
            open(request.scope, begin, end).map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "the kernel does not permit it: run as root, or grant CAP_PERFMON, or set \
                     kernel.perf_event_paranoid to -1"
                        .to_owned()
                }
                io::ErrorKind::NotFound => "there is no such process".to_owned(),
                _ => error.to_string(),
            })?;
        let limits = vec![
            "each wait was read by itself: this slows the program more than BPF does".to_owned(),
            "owners of locks have no stacks without BPF".to_owned(),
        ];
        let own = (request.scope == Scope::Command).then(std::process::id);
        let pairs = Pairs::new(symbols.image(), own);
        Ok(Self { rings, _events: events, layout, pairs, young: Vec::new(), lost: 0, limits })
    }

    /// Reads what has come.
    pub fn read(&mut self) {
        let now = clock_gettime(ClockId::Monotonic);
        self.read_until(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64);
    }

    /// Takes events in the order of their time, up to a time at which all have been written.
    fn read_until(&mut self, time: u64) {
        let Self { rings, layout, pairs, young, lost, .. } = self;
        for ring in rings {
            ring.read(|kind, record| {
                let mut record = Record(record);
                match kind {
                    PERF_RECORD_SAMPLE => young.extend(layout.event(&mut record)),
                    PERF_RECORD_LOST => {
                        record.long();
                        *lost += record.long();
                    }
                    PERF_RECORD_COMM => {
                        let (_, task) = (record.int(), record.int());
                        pairs.name(task, record.text());
                    }
                    PERF_RECORD_FORK => {
                        let (_, _, task, parent) =
                            (record.int(), record.int(), record.int(), record.int());
                        pairs.fork(task, parent);
                    }
                    _ => {}
                }
            });
        }
        young.sort_by_key(|event| event.time);
        let old = young.partition_point(|event| event.time < time);
        young.drain(..old).for_each(|event| pairs.take(event));
    }

    /// Stops counting; gives what was counted, and what was not.
    pub fn finish(mut self) -> (Vec<Waits>, Totals, Vec<String>) {
        self.read_until(u64::MAX);
        let (waits, mut totals) = self.pairs.finish();
        // A wait has two events: at most so many are lost.
        totals.waits += self.lost;
        totals.dropped += self.lost;
        (waits, totals, self.limits)
    }
}

impl Layout {
    fn event(&self, record: &mut Record<'_>) -> Option<Event> {
        let (process, task, time) = (record.int(), record.int(), record.long());
        let calls = record.long() as usize;
        let calls: Vec<u64> =
            (0..calls).map(|_| record.long()).filter(|call| *call < MARKS).collect();
        let length = record.int() as usize;
        let raw = record.0.get(..length)?;
        let number = |at: usize, size: usize| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(raw.get(at..at + size)?);
            Some(u64::from_ne_bytes(bytes))
        };
        let begins = number(0, 2)? == self.begin;
        let lock = number(if begins { self.lock } else { self.lock_at_end }, 8)?;
        let flags = if begins { Some(number(self.flags, 4)? as u32) } else { None };
        Some(Event { time, process, task, lock, flags, calls })
    }
}

/// Opens both events for every CPU, and for every thread if it is one process that counts.
fn open(scope: Scope, begin: u64, end: u64) -> io::Result<(Vec<Ring>, Vec<OwnedFd>)> {
    let tasks = match scope {
        Scope::System => vec![-1],
        Scope::Command => vec![0],
        Scope::Process(pid) => threads(pid)?,
    };
    let inherits = scope != Scope::System;
    let (mut rings, mut others) = (Vec::new(), Vec::new());
    for cpu in online() {
        let mut ring: Option<Ring> = None;
        for task in &tasks {
            for (id, calls) in [(begin, CALLS), (end, 1)] {
                let opened = match event::open(&attributes(id, calls, inherits), *task, cpu) {
                    // A thread that has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) && tasks.len() > 1 => {
                        continue;
                    }
                    opened => opened?,
                };
                match &ring {
                    None => ring = Some(Ring::new(opened)?),
                    Some(ring) => {
                        ring.take_in(&opened)?;
                        others.push(opened);
                    }
                }
            }
        }
        rings.extend(ring);
    }
    Ok((rings, others))
}

fn attributes(id: u64, calls: u16, inherits: bool) -> perf_event_attr {
    let sample = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW;
    let mut attributes = perf_event_attr {
        type_: PERF_TYPE_TRACEPOINT,
        size: size_of::<perf_event_attr>() as u32,
        config: id,
        sample_type: u64::from(sample),
        sample_max_stack: calls,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_period = 1;
    attributes.set_inherit(inherits.into());
    attributes.set_use_clockid(1);
    attributes.set_exclude_callchain_user(1);
    attributes.set_comm(1);
    attributes.set_task(1);
    attributes
}

fn threads(pid: u32) -> io::Result<Vec<i32>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    Ok(tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect())
}

/// The CPUs' numbers, which may have gaps.
fn online() -> Vec<i32> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    cpus(&list)
}

/// A list as the kernel writes it: `0-3,8`.
fn cpus(list: &str) -> Vec<i32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<i32>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// A record's fields, one after the other; zero beyond its end.
struct Record<'a>(&'a [u8]);

impl Record<'_> {
    fn int(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn long(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    fn text(&self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((first, rest)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = rest;
        *first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_may_have_gaps() {
        assert_eq!(cpus("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(cpus("0"), [0]);
        assert_eq!(cpus(""), [0; 0]);
    }

    #[test]
    fn an_event_is_read_from_its_record() {
        let layout = Layout { begin: 408, lock: 8, flags: 16, lock_at_end: 8 };
        let mut bytes = Vec::new();
        bytes.extend([7_u32, 9].iter().flat_map(|n| n.to_ne_bytes()));
        bytes.extend([1000_u64, 2, MARKS, 0x100].iter().flat_map(|n| n.to_ne_bytes()));
        bytes.extend(20_u32.to_ne_bytes());
        bytes.extend(408_u16.to_ne_bytes());
        bytes.extend([0; 6]);
        bytes.extend(0xffff_8880_u64.to_ne_bytes());
        bytes.extend(32_u32.to_ne_bytes());
        let event = layout.event(&mut Record(&bytes)).unwrap();
        assert_eq!((event.process, event.task, event.time), (7, 9, 1000));
        assert_eq!((event.lock, event.flags), (0xffff_8880, Some(32)));
        assert_eq!(event.calls, [0x100]);
        assert!(layout.event(&mut Record(&bytes[..60])).is_none());
    }
}
