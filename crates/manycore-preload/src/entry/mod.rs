//! The exported functions, and the table through which they jump.
//!
//! A program may call before any constructor has run, and it chooses the lock by an environment
//! variable; yet an uncontended lock has no time for questions. So the exports jump through a table
//! whose entries, at first, start the library and then jump again. The jump costs one load and is
//! always predicted.

mod lookup;
mod start;

use core::arch::naked_asm;
use core::ffi::CStr;
use core::mem::offset_of;

use core::sync::atomic::{AtomicPtr, Ordering};
use manycore::lock::{self, InlineLock, PlainLock};

use manycore_interpose::loading;

use crate::{c11, cond, mutex, restricted, rwlock, spin, threads};

/// `entry: [exported names] caller register => implementation;` for each function, as exports,
/// first targets and targets for a lock. The caller's address is passed in the first argument
/// register that the function itself does not use: that is how statistics know who asked, at the
/// price of one load.
macro_rules! entries {
    ($($entry:ident: [$($name:ident),*] $register:literal => $target:expr;)*) => {
        /// Where each exported function jumps to.
        #[repr(C)]
        pub struct Table {
            $($entry: AtomicPtr<()>,)*
        }

        /// The one table of this library.
        pub static TABLE: Table = Table {
            $($entry: AtomicPtr::new(first::$entry as *mut ()),)*
        };

        /// The code that is compiled for one lock.
        pub struct Targets {
            $($entry: *const (),)*
        }

        fn targets<L: InlineLock, const STATS: bool>() -> Targets {
            Targets { $($entry: $target as *const (),)* }
        }

        impl Table {
            fn fill(&self, targets: &Targets) {
                // Relaxed: the targets are code and constants, there before any thread. A thread
                // that still reads the first target starts the library, finds that done, and reads
                // again.
                $(self.$entry.store(targets.$entry.cast_mut(), Ordering::Relaxed);)*
            }
        }

        /// What the table holds before the library has started: start it, then jump again.
        mod first {
            use super::*;
            $(
                #[unsafe(naked)]
                pub extern "C" fn $entry() {
                    // SAFETY: pushes and pops keep the arguments, and the odd number of pushes
                    // aligns the stack for the call; the jump leaves everything as the caller set
                    // it, to code with the signature of this function.
                    naked_asm!(
                        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                        "call {start}",
                        "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                        "jmp qword ptr [rip + {table} + {offset}]",
                        start = sym start::start,
                        table = sym TABLE,
                        offset = const offset_of!(Table, $entry),
                    )
                }
            )*
        }

        mod exported {
            use super::*;
            $($(
                #[unsafe(naked)]
                #[unsafe(no_mangle)]
                pub extern "C" fn $name() {
                    // SAFETY: changes one argument register, which this function's signature does
                    // not use, and jumps to code with that signature.
                    naked_asm!(
                        ".cfi_startproc",
                        concat!("mov ", $register, ", qword ptr [rsp]"),
                        "jmp qword ptr [rip + {table} + {offset}]",
                        ".cfi_endproc",
                        table = sym TABLE,
                        offset = const offset_of!(Table, $entry),
                    )
                }
            )*)*
        }

        /// Every exported name.
        pub const EXPORTS: &[&CStr] = &[$($(name(concat!(stringify!($name), "\0")),)*)*];
    };
}

const fn name(with_nul: &str) -> &CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(name) => name,
        Err(_) => unreachable!(),
    }
}

entries! {
    mutex_init: [pthread_mutex_init, __pthread_mutex_init] "rdx" => mutex::init::<STATS>;
    mutex_destroy: [pthread_mutex_destroy, __pthread_mutex_destroy] "rsi" => mutex::destroy::<STATS>;
    mutex_lock: [pthread_mutex_lock, __pthread_mutex_lock] "rsi" => mutex::lock::<L, STATS>;
    mutex_trylock: [pthread_mutex_trylock, __pthread_mutex_trylock] "rsi" => mutex::trylock::<L, STATS>;
    mutex_timedlock: [pthread_mutex_timedlock] "rdx" => mutex::timedlock::<L, STATS>;
    mutex_clocklock: [pthread_mutex_clocklock] "rcx" => mutex::clocklock::<L, STATS>;
    mutex_unlock: [pthread_mutex_unlock, __pthread_mutex_unlock] "rsi" => mutex::unlock::<L, STATS>;

    cond_init: [pthread_cond_init] "rdx" => cond::init::<STATS>;
    cond_destroy: [pthread_cond_destroy] "rsi" => cond::destroy::<STATS>;
    cond_wait: [pthread_cond_wait] "rdx" => cond::wait::<L, STATS>;
    cond_timedwait: [pthread_cond_timedwait] "rcx" => cond::timedwait::<L, STATS>;
    cond_clockwait: [pthread_cond_clockwait] "r8" => cond::clockwait::<L, STATS>;
    cond_signal: [pthread_cond_signal] "rsi" => cond::signal::<STATS>;
    cond_broadcast: [pthread_cond_broadcast] "rsi" => cond::broadcast::<STATS>;

    rwlock_init: [pthread_rwlock_init, __pthread_rwlock_init] "rdx" => rwlock::init::<STATS>;
    rwlock_destroy: [pthread_rwlock_destroy, __pthread_rwlock_destroy] "rsi" => rwlock::destroy::<STATS>;
    rwlock_rdlock: [pthread_rwlock_rdlock, __pthread_rwlock_rdlock] "rsi" => rwlock::rdlock::<STATS>;
    rwlock_tryrdlock: [pthread_rwlock_tryrdlock, __pthread_rwlock_tryrdlock] "rsi" => rwlock::tryrdlock::<STATS>;
    rwlock_timedrdlock: [pthread_rwlock_timedrdlock] "rdx" => rwlock::timedrdlock::<STATS>;
    rwlock_clockrdlock: [pthread_rwlock_clockrdlock] "rcx" => rwlock::clockrdlock::<STATS>;
    rwlock_wrlock: [pthread_rwlock_wrlock, __pthread_rwlock_wrlock] "rsi" => rwlock::wrlock::<STATS>;
    rwlock_trywrlock: [pthread_rwlock_trywrlock, __pthread_rwlock_trywrlock] "rsi" => rwlock::trywrlock::<STATS>;
    rwlock_timedwrlock: [pthread_rwlock_timedwrlock] "rdx" => rwlock::timedwrlock::<STATS>;
    rwlock_clockwrlock: [pthread_rwlock_clockwrlock] "rcx" => rwlock::clockwrlock::<STATS>;
    rwlock_unlock: [pthread_rwlock_unlock, __pthread_rwlock_unlock] "rsi" => rwlock::unlock::<STATS>;

    spin_init: [pthread_spin_init] "rdx" => spin::init::<STATS>;
    spin_destroy: [pthread_spin_destroy] "rsi" => spin::destroy;
    spin_lock: [pthread_spin_lock] "rsi" => spin::lock::<STATS>;
    spin_trylock: [pthread_spin_trylock] "rsi" => spin::trylock::<STATS>;
    spin_unlock: [pthread_spin_unlock] "rsi" => spin::unlock::<STATS>;

    mtx_init: [mtx_init] "rdx" => c11::mtx_init::<STATS>;
    mtx_destroy: [mtx_destroy] "rsi" => c11::mtx_destroy::<STATS>;
    mtx_lock: [mtx_lock] "rsi" => c11::mtx_lock::<L, STATS>;
    mtx_trylock: [mtx_trylock] "rsi" => c11::mtx_trylock::<L, STATS>;
    mtx_timedlock: [mtx_timedlock] "rdx" => c11::mtx_timedlock::<L, STATS>;
    mtx_unlock: [mtx_unlock] "rsi" => c11::mtx_unlock::<L, STATS>;
    cnd_init: [cnd_init] "rsi" => c11::cnd_init::<STATS>;
    cnd_destroy: [cnd_destroy] "rsi" => c11::cnd_destroy::<STATS>;
    cnd_wait: [cnd_wait] "rdx" => c11::cnd_wait::<L, STATS>;
    cnd_timedwait: [cnd_timedwait] "rcx" => c11::cnd_timedwait::<L, STATS>;
    cnd_signal: [cnd_signal] "rsi" => c11::cnd_signal::<STATS>;
    cnd_broadcast: [cnd_broadcast] "rsi" => c11::cnd_broadcast::<STATS>;

    dlopen: [dlopen] "rdx" => loading::dlopen;
    dlclose: [dlclose] "rsi" => lookup::dlclose::<STATS>;
    dlmopen: [dlmopen] "rcx" => lookup::dlmopen;
    dlsym: [dlsym] "rdx" => lookup::dlsym;
    dlvsym: [dlvsym] "rcx" => lookup::dlvsym;
    thread_create: [pthread_create] "r8" => threads::create::<L>;

    prctl: [prctl] "rax" => restricted::prctl;
    syscall: [syscall] "rax" => restricted::syscall;
}

/// Points the exports at the code for the lock of this name; says whether there is one.
pub fn choose(name: &[u8], stats: bool) -> bool {
    macro_rules! choose {
        ($($lock:ident),* $(,)?) => {
            $(
                if name == <lock::$lock as PlainLock>::INFO.name.as_bytes() {
                    TABLE.fill(&if stats { targets::<lock::$lock, true>() } else { targets::<lock::$lock, false>() });
                    return true;
                }
            )*
        };
    }
    manycore::for_each_inline_lock!(choose);
    false
}
