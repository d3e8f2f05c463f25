//! The properties of x86-64 and of its C library that other parts need: the thread pointer, a
//! handler's frame, and the target of `longjmp`. `machine_arm.rs` has the same for AArch64.

use crate::memory;

const WORD: usize = size_of::<usize>();

/// The address of libc's data about the calling thread.
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the instruction reads the word of the thread's own block in which libc keeps its
    // address.
    unsafe {
        core::arch::asm!("mov {}, fs:0x10", out(reg) pointer, options(pure, readonly, nostack));
    }
    pointer
}

/// Whether the word at `place` begins a handler's frame: it is an address to which handlers return.
/// Behind it the kernel has put the interrupted thread's registers, among them the stack pointer,
/// which is above the frame.
///
/// # Safety
///
/// `place` is aligned, and is in a readable part of the calling thread's stack that ends at `end`.
pub unsafe fn is_frame(place: usize, end: usize, returns: impl Fn(usize) -> bool) -> bool {
    /// Words from the beginning of the frame: the return address is followed by a `ucontext_t`.
    const LINK: usize = 2;
    const REGISTERS: usize = 6;
    const STACK_POINTER: usize = REGISTERS + libc::REG_RSP as usize;
    const SEGMENTS: usize = REGISTERS + libc::REG_CSGSFS as usize;
    const USER_CODE: usize = 0x33;
    // SAFETY: the words are aligned and on the thread's own stack, each in a readable page: the
    // first one's is (contract of this function), and the last one's was asked for before any other
    // word is read.
    let word = |number: usize| unsafe {
        core::ptr::with_exposed_provenance::<usize>(place + number * WORD).read_volatile()
    };
    if !returns(word(0)) {
        return false;
    }
    let last = place + SEGMENTS * WORD;
    if last >= end || !memory::is_readable(last) {
        return false;
    }
    word(LINK) == 0 && word(SEGMENTS) & 0xFFFF == USER_CODE && word(STACK_POINTER) > last
}

/// The words of a `jmp_buf` up to the stack pointer.
pub type JumpTarget = [usize; 7];

/// The stack pointer in a `jmp_buf`.
pub fn stack_pointer(target: &JumpTarget) -> usize {
    let guard: usize;
    // SAFETY: the instruction reads the word of the thread's own block that has libc's secret for
    // such pointers.
    unsafe {
        core::arch::asm!("mov {}, fs:0x30", out(reg) guard, options(pure, readonly, nostack));
    }
    target[6].rotate_right(17) ^ guard
}
