//! The properties of AArch64 and of its C library that other parts need, as in `machine.rs`.

use core::mem::offset_of;

use crate::memory;

/// The address of libc's data about the calling thread: they end there.
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the instruction reads the register that has the thread's own address.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, nomem, nostack));
    }
    pointer
}

/// Whether a handler's frame is around the word at `place`. A return address does not show it: that
/// is in a register when the handler starts. But the kernel puts the interrupted thread's vector
/// registers into the frame, behind a header that is always the same, and before them the other
/// registers, among them the stack pointer, which is above the frame.
///
/// # Safety
///
/// `place` is aligned, and is in a readable part of the calling thread's stack that ends at `end`.
pub unsafe fn is_frame(place: usize, end: usize, _returns: impl Fn(usize) -> bool) -> bool {
    /// `struct fpsimd_context` begins with its magic number, and its size.
    const HEADER: usize = 528 << 32 | 0x4650_8001;
    const MACHINE: usize = offset_of!(libc::ucontext_t, uc_mcontext);
    const STACK_POINTER: usize = MACHINE + offset_of!(libc::mcontext_t, sp);
    /// Behind three registers, aligned to 16.
    const VECTORS: usize = (STACK_POINTER + 3 * size_of::<usize>()).next_multiple_of(16);
    // SAFETY: the words are aligned and on the thread's own stack, each in a readable page: that of
    // `place` is (contract of this function), and that of the first one was asked for before any
    // other word is read.
    let word = |address: usize| unsafe {
        core::ptr::with_exposed_provenance::<usize>(address).read_volatile()
    };
    let begin = place - VECTORS;
    if !place.is_multiple_of(16) || word(place) != HEADER || !memory::is_readable(begin) {
        return false;
    }
    let above = word(begin + STACK_POINTER);
    word(begin + offset_of!(libc::ucontext_t, uc_link)) == 0 && above > place && above <= end
}

/// The words of a `jmp_buf` up to the stack pointer.
pub type JumpTarget = [usize; 14];

/// Words of a `jmp_buf`, with the mask of signals; rounded up.
const WORDS: usize = 48;

unsafe extern "C" {
    fn _setjmp(target: *mut [usize; WORDS]) -> core::ffi::c_int;
}

/// The stack pointer in a `jmp_buf`.
///
/// libc combines it with a secret, which it keeps where only its own functions find it. A stack
/// pointer that is known, and what `setjmp` makes of it, show the secret.
pub fn stack_pointer(target: &JumpTarget) -> usize {
    let mut own = [0; WORDS];
    let known: usize;
    // SAFETY: the function follows the ABI, writes no more than a `jmp_buf`, and returns once,
    // because no code jumps to this one.
    unsafe {
        core::arch::asm!(
            "mov x20, sp",
            "bl {setjmp}",
            setjmp = sym _setjmp,
            in("x0") &raw mut own,
            out("x20") known,
            clobber_abi("C"),
        );
    }
    target[13] ^ own[13] ^ known
}
