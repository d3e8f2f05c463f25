//! Reads that no cache had, counted by the processor for a program and all that it starts.

use std::io;

use manycore_profile::profile::CacheMisses;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event};
use perf_event::{Builder, Counter};

/// Reads that the last-level cache does not have.
const MISSES: Cache =
    Cache { which: CacheId::LL, operation: CacheOp::READ, result: CacheResult::MISS };

/// A count that goes on, or the reason why there is none.
pub struct Misses(Result<Counter, String>);

impl Misses {
    /// Begins to count: what this thread starts from now on, not this command itself.
    pub fn start() -> Self {
        Self(counter(MISSES).map_err(|error| why_not(&error)))
    }

    /// What was counted until now.
    pub fn finish(self) -> CacheMisses {
        let refused = |why| CacheMisses { reads: None, counted: None, refused: Some(why) };
        let mut counter = match self.0 {
            Ok(counter) => counter,
            Err(why) => return refused(why),
        };
        match counter.read_count_and_time() {
            Err(error) => refused(format!("the counter cannot be read: {error}")),
            Ok(read) if read.time_running == 0 => {
                refused("the counter never had its turn: others use it".to_owned())
            }
            Ok(read) => {
                let counted = read.time_running as f64 / read.time_enabled.max(1) as f64;
                let reads = (read.count as f64 / counted.max(f64::MIN_POSITIVE)) as u64;
                CacheMisses { reads: Some(reads), counted: Some(counted.min(1.0)), refused: None }
            }
        }
    }
}

/// A counter that this thread's children have from it. It counts in each from its first exec on, and in what that starts.
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

    /// By a counter that every machine has: a shell and what it starts are counted, this process is not.
    #[test]
    fn children_are_counted_and_nothing_else() {
        // As nobody, in a container that forbids it, under another kernel. Not by a macro: those the test harness would swallow.
        if let Err(error) = counter(Software::PAGE_FAULTS) {
            let said = format!("skipped: {}\n", why_not(&error));
            return io::stderr().write_all(said.as_bytes()).unwrap();
        }
        // A counter each, as a run has: it may move to a child with all that the kernel counts by, and end with it.
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
