//! glibc's own functions, for the objects that only glibc can own.
//!
//! Found on first use, see [`manycore_interpose::next`].

use core::ffi::{CStr, c_int, c_void};

use libc::{clockid_t, timespec};
use manycore_interpose::next::Function;

macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {
        /// Finds all functions now, so that no look-up is needed while the program holds a lock.
        pub fn find_all() {
            $(let _ = addresses::$name.address();)*
        }

        #[allow(non_upper_case_globals, reason = "named as the functions are")]
        mod addresses {
            use super::*;
            $(
                pub static $name: Function = Function::new(
                    match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => unreachable!(),
                    },
                );
            )*
        }

        $(
            #[doc = concat!("glibc's `", stringify!($name), "`.")]
            ///
            /// # Safety
            ///
            /// As the function's manual page says. The object is one that glibc initialised or may
            /// own.
            pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
                type Signature = unsafe extern "C-unwind" fn($($ty),*) -> c_int;
                // SAFETY: `Function` has the address of glibc's function of this name, which has
                // this signature.
                let f: Signature = unsafe { core::mem::transmute(addresses::$name.address()) };
                // SAFETY: the arguments are as the function's manual page asks, and the object is
                // glibc's (contract of this function).
                unsafe { f($($arg),*) }
            }
        )*
    };
}

functions! {
    pthread_mutex_init(m: *mut c_void, attr: *const libc::pthread_mutexattr_t);
    pthread_mutex_destroy(m: *mut c_void);
    pthread_mutex_lock(m: *mut c_void);
    pthread_mutex_trylock(m: *mut c_void);
    pthread_mutex_timedlock(m: *mut c_void, until: *const timespec);
    pthread_mutex_clocklock(m: *mut c_void, clock: clockid_t, until: *const timespec);
    pthread_mutex_unlock(m: *mut c_void);

    pthread_cond_init(c: *mut c_void, attr: *const libc::pthread_condattr_t);
    pthread_cond_destroy(c: *mut c_void);
    pthread_cond_wait(c: *mut c_void, m: *mut c_void);
    pthread_cond_timedwait(c: *mut c_void, m: *mut c_void, until: *const timespec);
    pthread_cond_clockwait(c: *mut c_void, m: *mut c_void, clock: clockid_t, until: *const timespec);
    pthread_cond_signal(c: *mut c_void);
    pthread_cond_broadcast(c: *mut c_void);

    pthread_rwlock_init(l: *mut c_void, attr: *const libc::pthread_rwlockattr_t);
    pthread_rwlock_destroy(l: *mut c_void);
    pthread_rwlock_rdlock(l: *mut c_void);
    pthread_rwlock_tryrdlock(l: *mut c_void);
    pthread_rwlock_clockrdlock(l: *mut c_void, clock: clockid_t, until: *const timespec);
    pthread_rwlock_wrlock(l: *mut c_void);
    pthread_rwlock_trywrlock(l: *mut c_void);
    pthread_rwlock_clockwrlock(l: *mut c_void, clock: clockid_t, until: *const timespec);
    pthread_rwlock_unlock(l: *mut c_void);
}
