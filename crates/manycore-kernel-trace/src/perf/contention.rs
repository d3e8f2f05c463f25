//! Waits for the kernel's locks.

use std::{io, mem};

use perf_event_open_sys::bindings::{PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_SAMPLE};

use super::pairs::{Event, Pairs};
use super::{CALLS, Record, Rings, Wanted, attributes, tracefs};
use crate::clock::now;
use crate::kallsyms::Kallsyms;
use crate::waits::{Totals, Waits};
use crate::{Request, Scope};

/// Open events, and what has been read of them.
#[derive(Debug)]
pub struct Contention {
    rings: Rings,
    layout: Layout,
    pairs: Pairs,
    /// Events that were read, but are so recent that older ones may still arrive.
    young: Vec<Event>,
    /// Times at which records are missing.
    gaps: Vec<u64>,
    /// The number of lost records when the sums were last taken.
    lost: u64,
}

/// Where things are in a tracepoint's record.
#[derive(Clone, Copy, Debug)]
struct Layout {
    begin: u64,
    /// The field of `contention_begin`.
    lock: usize,
    flags: usize,
    /// The field of `contention_end`.
    lock_at_end: usize,
}

impl Contention {
    /// Begins to count.
    pub fn start(request: &Request, symbols: &Kallsyms) -> Result<Self, String> {
        let tracefs = tracefs()?;
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
        let wanted = [(begin, CALLS), (end, 1)].map(|(id, calls)| {
            let mut attributes = attributes(id, calls);
            attributes.set_exclude_callchain_user(1);
            // Once is enough.
            attributes.set_comm((id == begin).into());
            attributes.set_task((id == begin).into());
            Wanted { attributes, filter: None }
        });
        let rings = Rings::open(request.scope, &wanted)?;
        let own = (request.scope == Scope::Command).then(std::process::id);
        let pairs = Pairs::new(symbols.image(), own);
        Ok(Self { rings, layout, pairs, young: Vec::new(), gaps: Vec::new(), lost: 0 })
    }

    /// Reads what has come.
    pub fn read(&mut self) {
        self.read_until(now());
    }

    /// Takes events in the order of their time, up to a time before which all have been written.
    fn read_until(&mut self, time: u64) {
        let Self { rings, layout, pairs, young, gaps, .. } = self;
        let each = |kind, _, record: &mut Record<'_>| match kind {
            PERF_RECORD_SAMPLE => young.extend(layout.event(record)),
            PERF_RECORD_COMM => {
                let (_, task) = (record.int(), record.int());
                pairs.name(task, record.text());
            }
            PERF_RECORD_FORK => {
                let (_, _, task, parent) = (record.int(), record.int(), record.int(), record.int());
                pairs.fork(task, parent);
            }
            _ => {}
        };
        rings.read(each, |at| gaps.push(at));
        young.sort_by_key(|event| event.time);
        gaps.sort_unstable();
        let mut missing = gaps.drain(..gaps.partition_point(|at| *at < time)).peekable();
        for event in young.drain(..young.partition_point(|event| event.time < time)) {
            while missing.next_if(|at| *at < event.time).is_some() {
                pairs.forget();
            }
            pairs.take(event);
        }
        missing.for_each(|_| pairs.forget());
    }

    /// Nothing counts that comes later.
    pub fn stop(&mut self) {
        self.read_until(u64::MAX);
    }

    /// The counts since the start or the last call.
    pub fn take(&mut self) -> (Vec<Waits>, Totals) {
        self.read();
        let (waits, mut totals) = self.pairs.drain();
        // A wait has two events: at most this many are lost.
        let lost = self.rings.lost - mem::replace(&mut self.lost, self.rings.lost);
        totals.waits += lost;
        totals.dropped += lost;
        (waits, totals)
    }
}

impl Layout {
    fn event(&self, record: &mut Record<'_>) -> Option<Event> {
        let (process, task, time) = (record.int(), record.int(), record.long());
        let calls = record.calls();
        let raw = record.raw()?;
        let begins = raw.id()? == self.begin;
        let lock = raw.number(if begins { self.lock } else { self.lock_at_end }, 8)?;
        let flags = if begins { Some(raw.number(self.flags, 4)? as u32) } else { None };
        Some(Event { time, process, task, lock, flags, calls })
    }
}

#[cfg(test)]
mod tests {
    use super::super::MARKS;
    use super::*;

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
