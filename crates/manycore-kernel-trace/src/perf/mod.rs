//! Perf events of tracepoints, read one by one, where the kernel permits no BPF programs.

mod contention;
mod cpu;
mod files;
mod futexes;
mod pairs;
mod returns;
mod ring;
mod tasks;

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use perf_event_open_sys::bindings::{
    PERF_RECORD_LOST, PERF_RECORD_SAMPLE, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_RAW, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_TRACEPOINT, perf_event_attr,
};
use perf_event_open_sys::ioctls;

use crate::Scope;
use crate::event;
use crate::tracefs::Tracefs;
use files::Raised;
use ring::Ring;

pub use contention::Contention;
pub use cpu::Sampler;
pub use futexes::FutexCalls;

/// Calls of a stack that are kept.
const CALLS: u16 = 48;
/// Numbers above this are marks of contexts within a stack.
const MARKS: u64 = -4096_i64 as u64;

/// An event that is wanted.
struct Wanted {
    attributes: perf_event_attr,
    /// A filter for its records: an expression over the tracepoint's fields, for the kernel.
    filter: Option<CString>,
}

/// Why a buffer may not be mapped: a user may pin a limited amount of memory, except for root and
/// processes with the right.
const NO_BUFFER: &str = "the kernel does not permit so much memory for buffers: run as root, grant CAP_IPC_LOCK (beside \
    CAP_PERFMON), or raise kernel.perf_event_mlock_kb";

/// Open events, which write to a buffer for each CPU.
#[derive(Debug)]
struct Rings {
    rings: Vec<Ring>,
    /// Others that write to these.
    _events: Vec<OwnedFd>,
    /// Records for which there was no room.
    lost: u64,
}

impl Rings {
    /// Opens all events for every CPU; and for every thread, if only one process is observed.
    fn open(scope: Scope, wanted: &[Wanted]) -> Result<Self, String> {
        let raised = files::as_many_as_permitted();
        let opened = open(scope, wanted, &raised, ring::room);
        drop(raised);
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "the kernel does not permit it: run as root, or grant CAP_PERFMON, or set \
                 kernel.perf_event_paranoid to -1"
                    .to_owned()
            }
            io::ErrorKind::NotFound => "there is no such process".to_owned(),
            _ if error.raw_os_error() == Some(libc::EMFILE) => {
                "it takes an open file for each event, thread and CPU, and this many are not permitted: raise the limit, \
                 ulimit -H -n 1048576"
                    .to_owned()
            }
            _ => error.to_string(),
        })
    }

    /// Empties the buffers: calls `each` with the type, the subtype and the fields of each record.
    ///
    /// Where records are missing, calls `gap` with the time at which the gap begins, and with the
    /// time at which it ends. A thread that was in the middle of something at either time may have
    /// ended it, and begun anew, unseen.
    fn read(&mut self, mut each: impl FnMut(u32, u16, &mut Record<'_>), mut gap: impl FnMut(u64)) {
        let Self { rings, lost, .. } = self;
        for ring in rings {
            let (mut last, mut lost_at) = (0, None);
            let is_full = ring.read(|kind, misc, record| {
                let mut record = Record(record);
                last = record.time(kind);
                // The kernel writes a record of losses just before the first record for which there
                // is room again, but its time is later than that record's.
                if let Some(at) = lost_at.take() {
                    gap(last.min(at).saturating_sub(1));
                }
                if kind == PERF_RECORD_LOST {
                    record.long();
                    *lost += record.long();
                    lost_at = Some(last);
                } else {
                    each(kind, misc, &mut record);
                }
            });
            if is_full || lost_at.is_some() {
                gap(last);
            }
        }
    }
}

/// The number and the format of a tracepoint.
fn tracefs() -> Result<Tracefs, String> {
    Tracefs::open().map_err(|error| match error.raw_os_error() {
        Some(libc::EACCES) => format!("tracefs may not be read ({error}): run as root"),
        _ => format!(
            "there is no tracefs ({error}): mount -t tracefs tracefs /sys/kernel/tracing, and run as root"
        ),
    })
}

/// How often a process is inspected again because it makes threads while its threads are listed.
const PROBES: usize = 8;

/// Opens them. `room` returns the size of each buffer for a number of buffers.
fn open(
    scope: Scope,
    wanted: &[Wanted],
    raised: &Raised,
    room: impl Fn(usize) -> usize,
) -> io::Result<Rings> {
    let open = |tasks: &[i32]| open_tasks(scope, tasks, wanted, raised, &room);
    let pid = match scope {
        Scope::System => return open(&[-1]),
        Scope::Command => return open(&[0]),
        Scope::Process(pid) => pid,
    };
    let mut tasks = threads(pid)?;
    for _ in 1..PROBES {
        let rings = open(&tasks)?;
        // None if it has ended meanwhile.
        let now = threads(pid).unwrap_or_default();
        if now.iter().all(|task| tasks.contains(task)) {
            return Ok(rings);
        }
        // The thread was made by one that was not watched yet, or not on all CPUs. Everything is
        // restarted, because the new thread may be watched on some CPUs.
        tasks = now;
    }
    open(&tasks)
}

fn open_tasks(
    scope: Scope,
    tasks: &[i32],
    wanted: &[Wanted],
    raised: &Raised,
    room: impl Fn(usize) -> usize,
) -> io::Result<Rings> {
    let (mut rings, mut others) = (Vec::new(), Vec::new());
    let cpus = online();
    let room = room(cpus.len());
    for cpu in cpus {
        let mut ring: Option<Ring> = None;
        for task in tasks {
            for Wanted { attributes, filter } in wanted {
                let mut attributes = *attributes;
                attributes.set_inherit((scope != Scope::System).into());
                // The children of a process that runs already are not counted.
                attributes.set_inherit_thread(matches!(scope, Scope::Process(_)).into());
                let opened = match event::open(&attributes, *task, cpu) {
                    // A thread that has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) && tasks.len() > 1 => {
                        continue;
                    }
                    opened => raised.out_of_the_way(opened?),
                };
                if let Some(filter) = filter {
                    set_filter(&opened, filter)?;
                }
                match &ring {
                    None => ring = Some(buffer(opened, room)?),
                    Some(ring) => {
                        ring.take_in(&opened)?;
                        others.push(opened);
                    }
                }
            }
        }
        rings.extend(ring);
    }
    Ok(Rings { rings, _events: others, lost: 0 })
}

fn buffer(event: OwnedFd, room: usize) -> io::Result<Ring> {
    Ring::new(event, room).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => io::Error::other(NO_BUFFER),
        _ => error,
    })
}

fn set_filter(event: &OwnedFd, filter: &CString) -> io::Result<()> {
    // SAFETY: the kernel reads a text that ends in zero, and does not keep it.
    let failed = unsafe { ioctls::SET_FILTER(event.as_raw_fd(), filter.as_ptr().cast_mut()) };
    if failed < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Selects a tracepoint by its number. Each event has the task, the time, this many calls and the
/// tracepoint's fields.
fn attributes(id: u64, calls: u16) -> perf_event_attr {
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
    attributes.set_use_clockid(1);
    // So that all other records have their time, too.
    attributes.set_sample_id_all(1);
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

/// The fields of a record, one after the other; zero beyond its end.
struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
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

    /// The time at which it was written: after the task in a sample, at the end of other records.
    fn time(&self, kind: u32) -> u64 {
        let at = if kind == PERF_RECORD_SAMPLE { 8 } else { self.0.len().saturating_sub(8) };
        self.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |time| u64::from_ne_bytes(*time))
    }

    /// The calls of a sample, without marks.
    fn calls(&mut self) -> Vec<u64> {
        // No more than there can be, whatever the record says.
        let calls = (self.long() as usize).min(self.0.len() / 8);
        (0..calls).map(|_| self.long()).filter(|call| *call < MARKS).collect()
    }

    /// The tracepoint's own fields; `None` if the record is cut off.
    fn raw(&mut self) -> Option<Raw<'a>> {
        let length = self.int() as usize;
        let (raw, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Raw(raw))
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((first, rest)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = rest;
        *first
    }
}

/// A tracepoint's fields.
struct Raw<'a>(&'a [u8]);

impl Raw<'_> {
    /// The number of the tracepoint, which each begins with.
    fn id(&self) -> Option<u64> {
        self.number(0, 2)
    }

    /// A number of `size` bytes, eight at most.
    fn number(&self, at: usize, size: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        bytes.get_mut(..size)?.copy_from_slice(self.0.get(at..at + size)?);
        Some(u64::from_ne_bytes(bytes))
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
    fn records_have_their_time_at_the_front_or_at_the_end() {
        let bytes: Vec<u8> = [1_u64, 2, 3].iter().flat_map(|n| n.to_ne_bytes()).collect();
        assert_eq!(Record(&bytes).time(PERF_RECORD_SAMPLE), 2);
        assert_eq!(Record(&bytes).time(PERF_RECORD_LOST), 3);
        assert_eq!(Record(&bytes[..4]).time(PERF_RECORD_LOST), 0);
        let many = [u64::MAX, 5].map(u64::to_ne_bytes).concat();
        assert_eq!(Record(&many).calls(), [5], "as many as there are");
    }

    #[test]
    fn what_is_cut_off_is_no_number() {
        let raw = Raw(&[1, 2, 3, 4]);
        assert_eq!((raw.number(0, 2), raw.number(2, 4), raw.number(0, 9)), (Some(513), None, None));
        let mut record = Record(&[9, 0, 0, 0, 1]);
        assert!(record.raw().is_none());
    }
}
