//! Functions that spin for a lock, known by their names.

use crate::analyze::names::wrapper_frames::{plain_path, words};
use crate::profile::{Frame, Part};

/// Functions that do nothing but wait on the CPU for a lock or another thread, and their libraries,
/// by the end of the path.
const SPINNING: &[(&str, &str)] = &[
    ("ut_delay", "InnoDB"),
    ("rw_lock_s_lock_spin", "InnoDB until MySQL 8.0, MariaDB 10.5"),
    ("rw_lock_x_lock_wait_func", "the same"),
    ("srw_mutex_impl::wait_and_lock", "InnoDB of MariaDB 10.6 and later"),
    ("ssux_lock_impl::rd_wait", "the same"),
    ("ssux_lock_impl::wr_wait", "the same"),
    ("s_lock", "PostgreSQL"),
    ("perform_spin_delay", "PostgreSQL"),
    ("runtime.procyield", "Go"),
    ("runtime.procyieldAsm", "Go 1.25 and later"),
    ("runtime.lock2", "Go"),
    ("sync.runtime_doSpin", "Go"),
    ("Backoff::spin", "crossbeam"),
    ("Backoff::snooze", "crossbeam"),
    ("AbslInternalSpinLockDelay", "Abseil"),
    ("malloc_mutex_lock_slow", "jemalloc"),
    ("je_malloc_mutex_lock_slow", "jemalloc"),
    ("gomp_mutex_lock_slow", "libgomp"),
    ("atomic_backoff::pause", "oneTBB"),
    ("pl_wait_unlock_long", "HAProxy"),
    ("ck_backoff_eb", "Concurrency Kit"),
    ("ObjectMonitor::TrySpin", "HotSpot"),
];

/// Functions that a waiting loop calls, by the end of their names. The caller of such a function is
/// the one to report.
const PAUSES: &[&str] = &[
    "hint::spin_loop",
    "_mm_pause",
    "cpu_relax",
    "my_cpu_relax",
    "machine_pause",
    "AsmVolatilePause",
    "SpinPause",
    "ut_relax_cpu",
];

/// A name with `spin` and one of these words is that of a function that waits for a lock, such as
/// `pthread_spin_lock`, `Mutex::spin` or `SpinLock::SpinLoop`. `flip_spin` is none.
const WAITING: &[&str] = &[
    "acquire", "backoff", "delay", "latch", "lock", "loop", "mutex", "pause", "rdlock", "rwlock",
    "until", "wait", "wrlock",
];
/// Unless it has one of these.
const OTHERWISE: &[&str] =
    &["create", "destroy", "drop", "init", "new", "release", "unlock", "unlocked"];

/// Spinning functions of the kernel, by the beginning of the name: the compiler appends to some.
const OF_KERNEL: &[&str] = &[
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "resilient_queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    "virt_spin_lock",
    "osq_lock",
    "mutex_spin_on_owner",
    "mutex_optimistic_spin",
    "rwsem_spin_on_owner",
    "rwsem_optimistic_spin",
    "rtmutex_spin_on_owner",
    "kvm_wait",
];
/// A hypervisor's spinning functions call helpers of the kernel: this many calls, from the
/// innermost, are searched for one that spins.
const KERNEL_CALLS: usize = 4;

/// Words in the names of the preloaded library's functions that wait.
const OF_LIBRARY: &[&str] = &["contended", "pause", "sleep", "snooze", "spin", "wait"];

/// The activity of a thread that is inside these calls, and the call that shows it. Calls in the
/// kernel come first.
pub fn part(kernel: &[Frame], user: &[Frame], library: Option<&str>) -> (Part, usize) {
    let of = |frame: &Frame, test: fn(&str) -> bool| frame.function.as_deref().is_some_and(test);
    if !kernel.is_empty() {
        let spins = kernel.iter().take(KERNEL_CALLS).position(|frame| of(frame, spins_in_kernel));
        return spins.map_or((Part::Kernel, 0), |at| (Part::SpinKernel, at));
    }
    let Some(first) = user.first() else { return (Part::Program, 0) };
    // The innermost call, with what was inlined into it.
    let inlined = user.iter().take_while(|frame| frame.address == first.address).count();
    let (innermost, outermost) = (&user[..inlined], inlined - 1);
    if library == Some(&first.module) {
        let waits = innermost.iter().any(|frame| of(frame, waits_in_library));
        return (if waits { Part::SpinLibrary } else { Part::Program }, outermost);
    }
    for (at, frame) in innermost.iter().enumerate() {
        if of(frame, is_pause) {
            return (Part::SpinProgram, (at + 1).min(user.len() - 1));
        }
        if of(frame, spins) {
            return (Part::SpinProgram, at);
        }
    }
    (Part::Program, outermost)
}

fn spins_in_kernel(function: &str) -> bool {
    OF_KERNEL.iter().any(|name| function.starts_with(name))
}

fn waits_in_library(function: &str) -> bool {
    let path = plain_path(function);
    path.last().is_some_and(|name| words(name).iter().any(|word| is_in(OF_LIBRARY, word)))
}

fn is_pause(function: &str) -> bool {
    let path = plain_path(function).join("::");
    PAUSES.iter().any(|name| ends(&path, name))
}

fn spins(function: &str) -> bool {
    let path = plain_path(function);
    let whole = path.join("::");
    // The name of a clone, without what the compiler has appended.
    let plain = whole.split('.').next().unwrap_or_default();
    if SPINNING.iter().any(|(name, _)| ends(&whole, name) || ends(plain, name)) {
        return true;
    }
    let said: Vec<_> = path.iter().rev().take(2).flat_map(|name| words(name)).collect();
    let has = |list: &[&str]| said.iter().any(|word| is_in(list, word));
    let both = has(&["spin"]) && has(WAITING);
    (both || has(&["spinlock", "spinloop", "spinning", "spinwait"])) && !has(OTHERWISE)
}

fn is_in(list: &[&str], word: &str) -> bool {
    list.contains(&word)
}

/// Whether a path is this one, or ends with it.
fn ends(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(module: &str, address: u64, function: &str) -> Frame {
        Frame {
            module: module.to_owned(),
            address,
            function: Some(function.to_owned()),
            offset: None,
            file: None,
            line: None,
        }
    }

    #[test]
    fn functions_that_spin_are_told_from_those_that_are_called_alike() {
        for name in [
            "ut_delay",
            "ut_delay(unsigned long)",
            "s_lock.part.0",
            "runtime.procyield",
            "<std::sys::sync::mutex::futex::Mutex>::spin",
            "std::sys::sync::rwlock::futex::RwLock::spin_until",
            "pthread_spin_lock",
            "parking_lot_core::spinwait::SpinWait::spin",
            "absl::base_internal::SpinLock::SlowLock()",
            "srw_mutex_impl<true>::wait_and_lock()",
            "<spin::mutex::spin::SpinMutex<T, R>>::lock",
            "__wt_spin_lock",
            "spin_until_free",
        ] {
            assert!(spins(name), "{name}");
        }
        for name in [
            "flip_spin",
            "Lattice::spin",
            "pthread_spin_unlock",
            "spin_lock_init",
            "locks_lock",
            "runtime.mallocgc",
            "pgss_lock",
        ] {
            assert!(!spins(name), "{name}");
        }
    }

    #[test]
    fn the_innermost_call_says_what_a_thread_does() {
        let (waits, works) = (call("a", 9, "ut_delay"), call("a", 9, "work"));
        let (far, pause) =
            (call("a", 5, "pthread_spin_lock"), call("a", 9, "core::hint::spin_loop"));
        let of = |user: &[Frame]| part(&[], user, Some("libx.so"));
        assert_eq!(of(&[works.clone(), far.clone()]), (Part::Program, 0));
        assert_eq!(of(&[waits.clone(), works.clone()]), (Part::SpinProgram, 0));
        // A spinning function that was inlined into another one, or that calls one that pauses.
        assert_eq!(of(&[works.clone(), waits]), (Part::SpinProgram, 1));
        assert_eq!(of(&[pause.clone(), works.clone(), far]), (Part::SpinProgram, 1));
        assert_eq!(of(&[pause]), (Part::SpinProgram, 0));
        assert_eq!(of(&[]), (Part::Program, 0));
        assert_eq!(of(&[call("libx.so", 1, "l::Patience::pause")]), (Part::SpinLibrary, 0));
        assert_eq!(of(&[call("libx.so", 1, "l::mutex::unlock")]), (Part::Program, 0));
        let kernel =
            ["__raw_callee_save___kvm_vcpu_is_preempted", "osq_lock", "__mutex_lock.constprop.0"];
        let kernel = kernel.map(|name| call("kernel", 1, name));
        assert_eq!(part(&kernel, std::slice::from_ref(&works), None), (Part::SpinKernel, 1));
        assert_eq!(part(&kernel[2..], &[works], None), (Part::Kernel, 0));
    }
}
