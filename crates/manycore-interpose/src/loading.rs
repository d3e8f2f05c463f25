//! `dlopen`, without `RTLD_DEEPBIND`.
//!
//! A library that is loaded with that flag binds to its own dependencies first. So it binds to
//! glibc's lock functions and not to this library's, but the objects that it shares with the rest
//! of the program are ours. PHP loads its modules in this way. The flag is removed, as sanitizers
//! do it too.

use core::arch::naked_asm;

use crate::next::Function;

static DLOPEN: Function = Function::new(c"dlopen");

extern "C" fn next() -> usize {
    DLOPEN.address()
}

/// `dlopen`. A jump and not a call: glibc determines the caller's search path from the return
/// address.
#[unsafe(naked)]
pub extern "C" fn dlopen() {
    // SAFETY: pushes and pops keep the arguments, the second one without a flag, and the
    // subtraction aligns the stack for the call; the jump continues in glibc's function with the
    // same signature.
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "and esi, {others}",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {next}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        others = const !libc::RTLD_DEEPBIND,
        next = sym next,
    );
    #[cfg(target_arch = "aarch64")]
    // SAFETY: loads and stores keep the registers with arguments, and the stack pointer stays a
    // multiple of 16; the jump continues in glibc's function with the same signature.
    naked_asm!(
        "mov w16, #{others}",
        "and w1, w1, w16",
        "stp x29, x30, [sp, #-32]!",
        "stp x0, x1, [sp, #16]",
        "bl {next}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "br x16",
        others = const !libc::RTLD_DEEPBIND,
        next = sym next,
    )
}
