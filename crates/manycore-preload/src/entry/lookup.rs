//! `dlsym`, `dlvsym` and `dlmopen`: where a program looks up a lock function by name, and would
//! find glibc's.
//!
//! Language runtimes and interfaces to foreign functions look names up in libc's own handle.
//! Wrappers that are preloaded in front ask for the next function, often by version, and only glibc
//! has versions. Each such answer would be a function that does not know the state that the others
//! have given the object; so the answer is replaced by this library's function. All other requests
//! go on to glibc, by a jump, since the answer depends on the caller.

use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_void};

use manycore_interpose::message::refuse;
use manycore_interpose::next::Function;
use manycore_interpose::objects::{self, Object};

use super::EXPORTS;
use crate::stats;

static DLSYM: Function = Function::of_any_library(c"dlsym");
static DLVSYM: Function = Function::of_any_library(c"dlvsym");
static DLMOPEN: Function = Function::of_any_library(c"dlmopen");

/// The caller's result, an address; or the address of a function with the same signature, to which
/// the call is passed on.
#[repr(C)]
struct Answer {
    address: usize,
    function: usize,
}

impl Answer {
    fn address(address: usize) -> Self {
        Self { address, function: 0 }
    }

    fn of(next: &Function) -> Self {
        Self { address: 0, function: next.address() }
    }
}

/// `name: function that answers, with the caller's address behind the arguments`.
macro_rules! answered {
    ($($(#[$doc:meta])* $name:ident: $answer:path;)*) => {
        $(
            $(#[$doc])*
            #[unsafe(naked)]
            pub extern "C" fn $name() {
                // SAFETY: pushes and pops keep the arguments, and the odd number of pushes aligns
                // the stack for the call; the answering function has the arguments of this
                // function's caller, which keeps its contract. The jump leaves everything as the
                // caller set it.
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    "push rdi", "push rsi", "push rdx",
                    "call {answer}",
                    "mov r11, rdx",
                    "pop rdx", "pop rsi", "pop rdi",
                    "test r11, r11",
                    "jz 2f",
                    "jmp r11",
                    "2:",
                    "ret",
                    answer = sym $answer,
                );
                #[cfg(target_arch = "aarch64")]
                // SAFETY: loads and stores keep the registers with arguments, and the stack pointer
                // stays a multiple of 16; the answering function has the arguments of this
                // function's caller, which keeps its contract. The jump leaves everything as the
                // caller set it.
                naked_asm!(
                    "stp x29, x30, [sp, #-48]!",
                    "stp x0, x1, [sp, #16]", "str x2, [sp, #32]",
                    "bl {answer}",
                    "cbz x1, 2f",
                    "mov x16, x1",
                    "ldp x0, x1, [sp, #16]", "ldr x2, [sp, #32]",
                    "ldp x29, x30, [sp], #48",
                    "br x16",
                    "2:",
                    "ldp x29, x30, [sp], #48",
                    "ret",
                    answer = sym $answer,
                )
            }
        )*
    };
}

answered! {
    /// `dlsym`.
    dlsym: answer;
    /// `dlvsym`.
    dlvsym: answer_by_version;
    /// `dlmopen`.
    dlmopen: allow_namespace;
}

/// # Safety
///
/// `dlsym` could be called with this handle and name.
unsafe extern "C" fn answer(handle: *mut c_void, name: *const c_char, caller: usize) -> Answer {
    type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> usize;
    // SAFETY: the name is null or a string (contract of this function).
    let Some(lock_function) = (unsafe { lock_function(name) }) else {
        return Answer::of(&DLSYM);
    };
    answer_for(lock_function, handle, caller, &DLSYM, || {
        // SAFETY: `DLSYM` has the address of the next function of this name, which has this
        // signature.
        let dlsym: Dlsym = unsafe { core::mem::transmute(DLSYM.address()) };
        // SAFETY: handle and name are those of a call of `dlsym` (contract of this function).
        unsafe { dlsym(handle, name) }
    })
}

/// # Safety
///
/// `dlvsym` could be called with this handle, name and version.
unsafe extern "C" fn answer_by_version(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: usize,
) -> Answer {
    type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> usize;
    // SAFETY: the name is null or a string (contract of this function).
    let Some(lock_function) = (unsafe { lock_function(name) }) else {
        return Answer::of(&DLVSYM);
    };
    answer_for(lock_function, handle, caller, &DLVSYM, || {
        // SAFETY: `DLVSYM` has the address of the next function of this name, which has this
        // signature.
        let dlvsym: Dlvsym = unsafe { core::mem::transmute(DLVSYM.address()) };
        // SAFETY: handle, name and version are those of a call of `dlvsym` (contract of this
        // function).
        unsafe { dlvsym(handle, name, version) }
    })
}

/// The result for a lock function: that of `next`, or this library's function instead of glibc's.
fn answer_for(
    name: &CStr,
    handle: *mut c_void,
    caller: usize,
    next: &Function,
    ask: impl FnOnce() -> usize,
) -> Answer {
    if handle == libc::RTLD_NEXT {
        return Answer::address(next_after(caller, name));
    }
    match ask() {
        // The caller repeats the request, so it finds the reason where it expects it.
        0 => Answer::of(next),
        address => Answer::address(own_for_glibcs(name, address)),
    }
}

/// The name, if this library replaces the function because of its objects' state. Programs may call
/// its other exports in glibc directly.
///
/// # Safety
///
/// Null, or a string.
unsafe fn lock_function(name: *const c_char) -> Option<&'static CStr> {
    const PREFIXES: [&[u8]; 4] = [b"pthread_", b"__pthread_", b"mtx_", b"cnd_"];
    if name.is_null() {
        return None;
    }
    // SAFETY: the name is not null, and so a string (contract of this function).
    let name = unsafe { CStr::from_ptr(name) };
    let starts = |prefix: &&[u8]| name.to_bytes().starts_with(prefix);
    if !PREFIXES.iter().any(starts) || name == c"pthread_create" {
        return None;
    }
    EXPORTS.iter().copied().find(|export| *export == name)
}

/// The address, or this library's function if the address is that of glibc's.
fn own_for_glibcs(name: &CStr, address: usize) -> usize {
    let is_glibcs = |object: Object| object.is_glibc() && object.defines_at(name, address);
    if objects::in_search_order().any(is_glibcs) { own(name) } else { address }
}

/// What follows the object that contains this code.
fn next_after(caller: usize, name: &CStr) -> usize {
    let Some(object) = object_of(caller) else { return own(name) };
    let next = objects::find(objects::after(object), name);
    next.filter(|(object, _)| !object.is_glibc()).map_or_else(|| own(name), |(_, address)| address)
}

/// This library's function.
fn own(name: &CStr) -> usize {
    // 0 never: the name is one of the exports.
    objects::own().and_then(|own| own.definition(name)).unwrap_or(0)
}

/// The object that contains this code, if it was loaded when the program started.
fn object_of(code: usize) -> Option<Object> {
    const RTLD_DL_LINKMAP: c_int = 2;
    unsafe extern "C" {
        /// glibc's `dladdr`, with more to tell.
        fn dladdr1(
            address: *const c_void,
            info: *mut libc::Dl_info,
            entry: *mut *const (),
            flags: c_int,
        ) -> c_int;
    }
    // SAFETY: the structure consists of pointers, for which zero is a value.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let mut entry = core::ptr::null();
    // SAFETY: `dladdr1` takes any address, and writes to both places, which are of the types that
    // it expects with this flag. It takes the same locks as `dlsym`, and allocates nothing.
    let known =
        unsafe { dladdr1(code as *const c_void, &raw mut info, &raw mut entry, RTLD_DL_LINKMAP) };
    if known == 0 { None } else { Object::of_link_map(entry) }
}

extern "C" fn allow_namespace(namespace: isize, _path: *const c_char, _flags: c_int) -> Answer {
    const LM_ID_BASE: isize = 0;
    if namespace != LM_ID_BASE {
        refuse(&[
            b"the program loads a library into a namespace of its own (dlmopen), which would bring glibc's locks with it: ",
            b"run the program with --lock glibc",
        ]);
    }
    Answer::of(&DLMOPEN)
}

static DLCLOSE: Function = Function::of_any_library(c"dlclose");

/// `dlclose`: afterwards other libraries may have addresses of unloaded ones.
///
/// # Safety
///
/// As of glibc's.
pub unsafe extern "C-unwind" fn dlclose<const STATS: bool>(handle: *mut c_void) -> i32 {
    // SAFETY: `DLCLOSE` has the address of the next function of this name, which has this
    // signature.
    let close: unsafe extern "C-unwind" fn(*mut c_void) -> i32 =
        unsafe { core::mem::transmute(DLCLOSE.address()) };
    // SAFETY: the handle is one that `dlclose` takes (contract of this function).
    let closed = unsafe { close(handle) };
    if STATS {
        stats::unloaded();
    }
    closed
}
