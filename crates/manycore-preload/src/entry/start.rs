//! Starting: the choice of the lock, and the check that this library really receives every call.

use core::ffi::{CStr, c_int};

use core::sync::atomic::{AtomicU32, Ordering};
use manycore::lock::{self, PlainLock};
use manycore::sync::tuning::{self, GiveUp};
use manycore::sync::{hint, process, thread, time};
use manycore_interpose::bindings;
use manycore_interpose::counter;
use manycore_interpose::environment::environment;
use manycore_interpose::message::{self, refuse};

use super::{EXPORTS, choose};
use crate::{cond, glibc, owner, stats};

const NOT_STARTED: u32 = 0;
const STARTING: u32 = 1;
const STARTED: u32 = 2;
static PROGRESS: AtomicU32 = AtomicU32::new(NOT_STARTED);

/// Chooses the lock and fills in the table. The constructor or the first call does this, whichever
/// comes first.
pub extern "C" fn start() {
    // Acquire, on success for symmetry, on failure: partner of the Release below, so that a thread
    // that finds the library started also finds the table filled in.
    match PROGRESS.compare_exchange(NOT_STARTED, STARTING, Ordering::Acquire, Ordering::Acquire) {
        Ok(_) => {
            message::prepare();
            counter::prepare();
            choose_lock();
            owner::find();
            // Release: partner of the Acquires above and below.
            PROGRESS.store(STARTED, Ordering::Release);
        }
        Err(_) => {
            // Acquire: partner of the Release above.
            while PROGRESS.load(Ordering::Acquire) != STARTED {
                hint::yield_now();
            }
        }
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

extern "C" fn constructor() {
    start();
    if !bindings::is_first_copy(c"manycore_preload_copy", &manycore_preload_copy) {
        return;
    }
    bindings::check(EXPORTS);
    glibc::find_all();
    watch_forks();
    thread::prepare();
    // The first call asks the system for the time, which a sandbox may not allow later.
    time::now();
}

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// Makes [`in_child`] run in each child. After a fork by the C library, it runs before the
/// program's own handlers, which were registered later. After any other fork, it runs at the
/// child's first use of data that threads share.
fn watch_forks() {
    process::watch(in_child);
    // SAFETY: the handler is a function of this library, which is never unloaded.
    unsafe { pthread_atfork(None, None, Some(forked_by_libc)) };
}

extern "C" fn forked_by_libc() {
    thread::renumber();
    // Requested now: when the child takes its first lock, all such calls may be forbidden.
    thread::id();
    process::forked_by_libc();
}

extern "C" fn in_child() {
    thread::others_are_gone();
    cond::forked();
    stats::forked();
}

/// `MANYCORE_LOCK=NAME[:key=value]...`
fn choose_lock() {
    let specification = environment(c"MANYCORE_LOCK").map_or(DEFAULT.as_bytes(), CStr::to_bytes);
    let mut parts = specification.split(|byte| *byte == b':');
    let name = parts.next().unwrap_or_default();
    parts.for_each(set_parameter);
    let statistics = environment(c"MANYCORE_STATS");
    if let Some(directory) = statistics {
        stats::open(directory, name);
    }
    if !choose(name, statistics.is_some()) {
        refuse(&[b"no lock is called '", name, b"' (MANYCORE_LOCK); `manycore locks` lists them"]);
    }
}

const DEFAULT: &str = <lock::Futex as PlainLock>::INFO.name;

fn set_parameter(parameter: &[u8]) {
    let mut halves = parameter.splitn(2, |byte| *byte == b'=');
    let (key, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
    let number =
        || str::from_utf8(value).ok().and_then(|v| v.parse().ok()).filter(|n| *n <= 1_000_000);
    match (key, value, number()) {
        (b"rounds", _, Some(rounds)) => tuning::set_spin(rounds, tuning::delay()),
        (b"delay", _, Some(delay)) => tuning::set_spin(tuning::rounds(), delay),
        (b"few-cpus", _, Some(cpus)) => tuning::set_few_cpus(cpus),
        (b"give-up", b"sleep", _) => tuning::set_give_up(GiveUp::Sleep),
        (b"give-up", b"yield", _) => tuning::set_give_up(GiveUp::Yield),
        _ => refuse(&[
            b"cannot understand '",
            parameter,
            b"' in MANYCORE_LOCK; known are rounds=N, delay=N, few-cpus=N (at most 1000000) and give-up=sleep|yield",
        ]),
    }
}

/// Exists once in a process, however often the library is loaded: the copy whose exports are in use
/// finds its own.
#[unsafe(no_mangle)]
pub static manycore_preload_copy: u8 = 0;
