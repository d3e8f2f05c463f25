//! The exported functions, and the table through which they jump.
//!
//! A program may call before any constructor has run, and an environment variable chooses the lock;
//! yet an uncontended lock has no time for checks. So the exports jump through a table whose
//! entries, at first, start the library and then jump again. The jump costs one load and is always
//! predicted.

mod lookup;
mod start;

use core::arch::naked_asm;
use core::ffi::CStr;
use core::mem::offset_of;

use core::sync::atomic::{AtomicPtr, Ordering};
use manycore::lock::{self, InlineLock, PlainLock};

use manycore_interpose::loading;

use crate::{c11, cond, mutex, restricted, rwlock, spin, threads};

/// The register of an argument, by its number from 0.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
macro_rules! argument {
    (0) => { "rdi" };
    (1) => { "rsi" };
    (2) => { "rdx" };
    (3) => { "rcx" };
    (4) => { "r8" };
    // Nothing, for functions that take as many as there are registers.
    (none) => { "rax" };
}

/// The register of an argument, by its number from 0.
#[cfg(target_arch = "aarch64")]
#[rustfmt::skip]
macro_rules! argument {
    (0) => { "x0" };
    (1) => { "x1" };
    (2) => { "x2" };
    (3) => { "x3" };
    (4) => { "x4" };
    (none) => { "x17" };
}

/// `entry: [exported names] argument => implementation;` for each function. Defines the exports,
/// the first targets and the targets for a lock. The caller's address is passed as the first
/// argument that the function itself does not have: it tells statistics the caller, at the price of
/// one load.
macro_rules! entries {
    ($($entry:ident: [$($name:ident),*] $caller:tt => $target:expr;)*) => {
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

        /// The table's entries before the library has started. They start it, and then jump again.
        mod first {
            use super::*;
            $(
                #[unsafe(naked)]
                pub extern "C" fn $entry() {
                    // SAFETY: pushes and pops keep the arguments, and the odd number of pushes
                    // aligns the stack for the call; the jump leaves everything as the caller set
                    // it, to code with the signature of this function.
                    #[cfg(target_arch = "x86_64")]
                    naked_asm!(
                        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                        "call {start}",
                        "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                        "jmp qword ptr [rip + {table} + {offset}]",
                        start = sym start::start,
                        table = sym TABLE,
                        offset = const offset_of!(Table, $entry),
                    );
                    #[cfg(target_arch = "aarch64")]
                    // SAFETY: loads and stores keep the registers with arguments, and the stack
                    // pointer stays a multiple of 16; the jump leaves everything as the caller set
                    // it, to code with the signature of this function.
                    naked_asm!(
                        "stp x29, x30, [sp, #-96]!",
                        "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]",
                        "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]", "str x8, [sp, #80]",
                        "bl {start}",
                        "ldp x0, x1, [sp, #16]", "ldp x2, x3, [sp, #32]",
                        "ldp x4, x5, [sp, #48]", "ldp x6, x7, [sp, #64]", "ldr x8, [sp, #80]",
                        "ldp x29, x30, [sp], #96",
                        "adrp x16, {table} + {offset}",
                        "ldr x16, [x16, :lo12:{table} + {offset}]",
                        "br x16",
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
                    #[cfg(target_arch = "x86_64")]
                    naked_asm!(
                        ".cfi_startproc",
                        concat!("mov ", argument!($caller), ", qword ptr [rsp]"),
                        "jmp qword ptr [rip + {table} + {offset}]",
                        ".cfi_endproc",
                        table = sym TABLE,
                        offset = const offset_of!(Table, $entry),
                    );
                    // Two registers are free for use between a call and its target.
                    #[cfg(target_arch = "aarch64")]
                    // SAFETY: changes one argument register, which this function's signature does
                    // not use, and two that belong to no function between a call and its target;
                    // jumps to code with that signature.
                    naked_asm!(
                        ".cfi_startproc",
                        concat!("mov ", argument!($caller), ", x30"),
                        "adrp x16, {table} + {offset}",
                        "ldr x16, [x16, :lo12:{table} + {offset}]",
                        "br x16",
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
    mutex_init: [pthread_mutex_init, __pthread_mutex_init] 2 => mutex::init::<STATS>;
    mutex_destroy: [pthread_mutex_destroy, __pthread_mutex_destroy] 1 => mutex::destroy::<STATS>;
    mutex_lock: [pthread_mutex_lock, __pthread_mutex_lock] 1 => mutex::lock::<L, STATS>;
    mutex_trylock: [pthread_mutex_trylock, __pthread_mutex_trylock] 1 => mutex::trylock::<L, STATS>;
    mutex_timedlock: [pthread_mutex_timedlock] 2 => mutex::timedlock::<L, STATS>;
    mutex_clocklock: [pthread_mutex_clocklock] 3 => mutex::clocklock::<L, STATS>;
    mutex_unlock: [pthread_mutex_unlock, __pthread_mutex_unlock] 1 => mutex::unlock::<L, STATS>;

    cond_init: [pthread_cond_init] 2 => cond::init::<STATS>;
    cond_destroy: [pthread_cond_destroy] 1 => cond::destroy::<STATS>;
    cond_wait: [pthread_cond_wait] 2 => cond::wait::<L, STATS>;
    cond_timedwait: [pthread_cond_timedwait] 3 => cond::timedwait::<L, STATS>;
    cond_clockwait: [pthread_cond_clockwait] 4 => cond::clockwait::<L, STATS>;
    cond_signal: [pthread_cond_signal] 1 => cond::signal::<STATS>;
    cond_broadcast: [pthread_cond_broadcast] 1 => cond::broadcast::<STATS>;

    rwlock_init: [pthread_rwlock_init, __pthread_rwlock_init] 2 => rwlock::init::<STATS>;
    rwlock_destroy: [pthread_rwlock_destroy, __pthread_rwlock_destroy] 1 => rwlock::destroy::<STATS>;
    rwlock_rdlock: [pthread_rwlock_rdlock, __pthread_rwlock_rdlock] 1 => rwlock::rdlock::<STATS>;
    rwlock_tryrdlock: [pthread_rwlock_tryrdlock, __pthread_rwlock_tryrdlock] 1 => rwlock::tryrdlock::<STATS>;
    rwlock_timedrdlock: [pthread_rwlock_timedrdlock] 2 => rwlock::timedrdlock::<STATS>;
    rwlock_clockrdlock: [pthread_rwlock_clockrdlock] 3 => rwlock::clockrdlock::<STATS>;
    rwlock_wrlock: [pthread_rwlock_wrlock, __pthread_rwlock_wrlock] 1 => rwlock::wrlock::<STATS>;
    rwlock_trywrlock: [pthread_rwlock_trywrlock, __pthread_rwlock_trywrlock] 1 => rwlock::trywrlock::<STATS>;
    rwlock_timedwrlock: [pthread_rwlock_timedwrlock] 2 => rwlock::timedwrlock::<STATS>;
    rwlock_clockwrlock: [pthread_rwlock_clockwrlock] 3 => rwlock::clockwrlock::<STATS>;
    rwlock_unlock: [pthread_rwlock_unlock, __pthread_rwlock_unlock] 1 => rwlock::unlock::<STATS>;

    spin_init: [pthread_spin_init] 2 => spin::init::<STATS>;
    spin_destroy: [pthread_spin_destroy] 1 => spin::destroy;
    spin_lock: [pthread_spin_lock] 1 => spin::lock::<STATS>;
    spin_trylock: [pthread_spin_trylock] 1 => spin::trylock::<STATS>;
    spin_unlock: [pthread_spin_unlock] 1 => spin::unlock::<STATS>;

    mtx_init: [mtx_init] 2 => c11::mtx_init::<STATS>;
    mtx_destroy: [mtx_destroy] 1 => c11::mtx_destroy::<STATS>;
    mtx_lock: [mtx_lock] 1 => c11::mtx_lock::<L, STATS>;
    mtx_trylock: [mtx_trylock] 1 => c11::mtx_trylock::<L, STATS>;
    mtx_timedlock: [mtx_timedlock] 2 => c11::mtx_timedlock::<L, STATS>;
    mtx_unlock: [mtx_unlock] 1 => c11::mtx_unlock::<L, STATS>;
    cnd_init: [cnd_init] 1 => c11::cnd_init::<STATS>;
    cnd_destroy: [cnd_destroy] 1 => c11::cnd_destroy::<STATS>;
    cnd_wait: [cnd_wait] 2 => c11::cnd_wait::<L, STATS>;
    cnd_timedwait: [cnd_timedwait] 3 => c11::cnd_timedwait::<L, STATS>;
    cnd_signal: [cnd_signal] 1 => c11::cnd_signal::<STATS>;
    cnd_broadcast: [cnd_broadcast] 1 => c11::cnd_broadcast::<STATS>;

    dlopen: [dlopen] 2 => loading::dlopen;
    dlclose: [dlclose] 1 => lookup::dlclose::<STATS>;
    dlmopen: [dlmopen] 3 => lookup::dlmopen;
    dlsym: [dlsym] 2 => lookup::dlsym;
    dlvsym: [dlvsym] 3 => lookup::dlvsym;
    thread_create: [pthread_create] 4 => threads::create::<L>;

    prctl: [prctl] none => restricted::prctl;
    syscall: [syscall] none => restricted::syscall;
}

/// Makes the exports lead to the code for the lock of this name; returns whether there is one.
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
