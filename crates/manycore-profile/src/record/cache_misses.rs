//! Reads that no cache had, counted by the processor for a program and all that it starts.

use std::io;

use crate::profile::{CacheMisses, OtherNodes};
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Raw};
use perf_event::{Builder, Counter};

use super::model_events::{ModelEvent, event};

/// Reads that the last-level cache does not have.
const MISSES: Cache =
    Cache { which: CacheId::LL, operation: CacheOp::READ, result: CacheResult::MISS };

/// Running counters, or the reasons why there are none.
pub struct CacheMissCounters {
    reads: Result<Counter, String>,
    /// The event, if one is known, and its counter.
    other_nodes: (Option<ModelEvent>, Result<Counter, String>),
}

/// A count, with the share of the time in which it was counted.
type Count = (u64, f64);

impl CacheMissCounters {
    /// Starts to count the programs that this thread starts from now on, but not this command
    /// itself.
    pub fn start() -> Self {
        let begin = |counter: io::Result<Counter>| counter.map_err(|error| why_not(&error));
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let other_nodes = match event(&cpuinfo) {
            Ok(event) => (Some(event), begin(counter(Raw::new(event.config)))),
            Err(why) => (None, Err(why)),
        };
        Self { reads: begin(counter(MISSES)), other_nodes }
    }

    /// What was counted until now.
    pub fn finish(self) -> CacheMisses {
        let (event, other_nodes) = self.other_nodes;
        let event = event.map(|event| event.name.to_owned());
        let (reads, counted, refused) = parts(self.reads.and_then(finished));
        let (lines, lines_counted, lines_refused) = parts(other_nodes.and_then(finished));
        let other_nodes =
            OtherNodes { event, lines, counted: lines_counted, refused: lines_refused };
        CacheMisses { reads, counted, refused, other_nodes: Some(other_nodes) }
    }
}

fn finished(mut counter: Counter) -> Result<Count, String> {
    match counter.read_count_and_time() {
        Err(error) => Err(format!("the counter cannot be read: {error}")),
        Ok(read) if read.time_running == 0 => {
            Err("the counter never had its turn: others use it".to_owned())
        }
        Ok(read) => {
            let counted = read.time_running as f64 / read.time_enabled.max(1) as f64;
            let count = (read.count as f64 / counted.max(f64::MIN_POSITIVE)) as u64;
            Ok((count, counted.min(1.0)))
        }
    }
}

fn parts(count: Result<Count, String>) -> (Option<u64>, Option<f64>, Option<String>) {
    match count {
        Ok((count, counted)) => (Some(count), Some(counted), None),
        Err(why) => (None, None, Some(why)),
    }
}

/// A counter that this thread's children inherit. In each child it counts from the first exec on,
/// and in the programs that the child starts.
fn counter(event: impl Event) -> io::Result<Counter> {
    Builder::new(event).any_cpu().inherit(true).enable_on_exec(true).build()
}

fn why_not(error: &io::Error) -> String {
    let unsupported = |name| format!("not supported ({name}): this machine has no such counter");
    match error.raw_os_error() {
        Some(libc::ENOENT) => unsupported("ENOENT"),
        Some(libc::EOPNOTSUPP) => unsupported("EOPNOTSUPP"),
        Some(libc::ENODEV) => unsupported("ENODEV"),
        Some(libc::ENOSYS) => unsupported("ENOSYS"),
        Some(libc::EACCES | libc::EPERM) => {
            "not permitted: run as root, or set kernel.perf_event_paranoid to 2 or less".to_owned()
        }
        _ => format!("the counter cannot be opened: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use perf_event::events::Software;

    use super::*;

    /// With a counter that every machine has: a shell and its children are counted, this process is
    /// not.
    #[test]
    fn children_are_counted_and_nothing_else() {
        // As the user nobody, in a container that forbids it, under another kernel. Not by a macro,
        // because the test harness would swallow that output.
        if let Err(error) = counter(Software::PAGE_FAULTS) {
            let said = format!("skipped: {}\n", why_not(&error));
            return io::stderr().write_all(said.as_bytes()).unwrap();
        }
        // One counter each, as a run has: it may move to a child together with the kernel's objects
        // for counting, and end with it.
        let started = |script: &str| {
            let mut counter = counter(Software::PAGE_FAULTS).unwrap();
            assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
            counter.read().unwrap()
        };
        let mut counter = counter(Software::PAGE_FAULTS).unwrap();
        let mut pages = vec![0_u8; 1 << 20];
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&pages);
        assert_eq!(counter.read().unwrap(), 0, "our own are none of the program's");
        let (alone, with_others) = (started(":"), started("sh -c :; sh -c :; :"));
        assert!(alone > 0 && with_others > 2 * alone, "{alone} and {with_others}");
    }

    #[test]
    fn a_missing_counter_has_its_reason() {
        let why = |code| why_not(&io::Error::from_raw_os_error(code));
        assert!(
            why(libc::ENOENT).contains("ENOENT") && why(libc::EOPNOTSUPP).contains("EOPNOTSUPP")
        );
        assert!(why(libc::EACCES).contains("perf_event_paranoid"));
        assert!(why(libc::ENOSYS).contains("not supported (ENOSYS)"));
        assert!(why(libc::EMFILE).starts_with("the counter cannot be opened: "));
    }
}
