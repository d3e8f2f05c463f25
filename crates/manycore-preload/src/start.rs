//! Starting: which lock, and is this library really in the way of every call.

use core::ffi::{CStr, c_char, c_void};

use core::sync::atomic::{AtomicU32, Ordering};
use manycore::lock::{self, PlainLock};
use manycore::sync::hint;
use manycore::sync::tuning::{self, GiveUp};
use syscalls::{Sysno, raw_syscall};

use crate::{entry, fork, glibc, loading, stats};

const NOT_STARTED: u32 = 0;
const STARTING: u32 = 1;
const STARTED: u32 = 2;
static PROGRESS: AtomicU32 = AtomicU32::new(NOT_STARTED);

/// Chooses the lock and fills in the table: by the constructor or by the first call, whichever comes first.
pub extern "C" fn start() {
    // Acquire, on success for symmetry, on failure: partner of the Release below, so that whoever finds the library
    // started also finds the table filled in.
    match PROGRESS.compare_exchange(NOT_STARTED, STARTING, Ordering::Acquire, Ordering::Acquire) {
        Ok(_) => {
            loading::prepare();
            choose_lock();
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
    if !is_first_copy() {
        return;
    }
    check_bindings();
    glibc::find_all();
    fork::install();
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
    if !entry::choose(name, statistics.is_some()) {
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
        (b"give-up", b"sleep", _) => tuning::set_give_up(GiveUp::Sleep),
        (b"give-up", b"yield", _) => tuning::set_give_up(GiveUp::Yield),
        _ => refuse(&[
            b"cannot understand '",
            parameter,
            b"' in MANYCORE_LOCK; known are rounds=N, delay=N (at most 1000000) and give-up=sleep|yield",
        ]),
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
    /// Where the kernel left the stack: the number of arguments, the arguments, null, the variables, null.
    static __libc_stack_end: *const usize;
}

/// The process' variables. libc points to them from its constructor on, ahead of which a program's
/// `.preinit_array` may lock; then they are where the kernel left them.
fn variables() -> *const *const c_char {
    // SAFETY: both are libc's and the dynamic linker's, which sets the second one before it runs any code of others.
    unsafe {
        if environ.is_null() { __libc_stack_end.add(*__libc_stack_end + 2).cast() } else { environ }
    }
}

/// A variable's value. No libc function: those may be called too early here.
pub fn environment(name: &CStr) -> Option<&'static CStr> {
    let name = name.to_bytes();
    // SAFETY: a list of NUL-terminated strings, ended by null; at this time no thread changes it.
    unsafe {
        let mut variable = variables();
        while !variable.is_null() && !(*variable).is_null() {
            let entry = CStr::from_ptr(*variable).to_bytes_with_nul();
            if entry.len() > name.len() && entry.starts_with(name) && entry[name.len()] == b'=' {
                return CStr::from_bytes_with_nul(&entry[name.len() + 1..]).ok();
            }
            variable = variable.add(1);
        }
    }
    None
}

/// Present once in a process, however often the library is loaded: the copy whose exports are in use finds its own.
#[unsafe(no_mangle)]
pub static manycore_preload_copy: u8 = 0;

fn is_first_copy() -> bool {
    // SAFETY: a NUL-terminated name.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"manycore_preload_copy".as_ptr()) };
    first.is_null() || first == (&raw const manycore_preload_copy).cast_mut().cast::<c_void>()
}

/// A program in which only some functions come here would corrupt its locks: better not to run it.
///
/// A reference of any version binds to the first library that has the name without a version, so that it is enough to
/// ask for names.
fn check_bindings() {
    for (name, here) in entry::EXPORTS {
        // SAFETY: a NUL-terminated name.
        let bound = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if bound as usize != *here as usize {
            refuse(&[
                name.to_bytes(),
                b" is bound to another library: run without sanitizers and other preloaded libraries",
            ]);
        }
    }
}

/// Ends the program before it has begun, in one line.
pub fn refuse(message: &[&[u8]]) -> ! {
    say(message);
    // SAFETY: does not return.
    unsafe { raw_syscall!(Sysno::exit_group, 2) };
    unreachable!("exit_group does not return")
}

/// A line on standard error, in one system call.
pub fn say(message: &[&[u8]]) {
    let mut line = [0u8; 512];
    let mut length = 0;
    for part in [b"manycore: ".as_slice()].iter().chain(message).chain([&b"\n".as_slice()]) {
        let fits = part.len().min(line.len() - length);
        line[length..length + fits].copy_from_slice(&part[..fits]);
        length += fits;
    }
    // SAFETY: the bytes are ours.
    unsafe { raw_syscall!(Sysno::write, 2, line.as_ptr(), length) };
}
