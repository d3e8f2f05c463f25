//! From one kernel stack to another.

use core::cell::UnsafeCell;

unsafe extern "C" {
    #[link_name = "switch"]
    fn switch_stacks(save: *mut u64, load: u64);
    static thread_begin: u8;
    static leave: u8;
}

/// The stack pointer of a thread that does not run.
pub struct StackPointer(UnsafeCell<u64>);

// SAFETY: used by the CPU that switches from or to the thread only; the scheduler sees to it that
// this is one at a time.
unsafe impl Sync for StackPointer {}

impl StackPointer {
    /// The state of a thread that calls `begin(argument)` on the stack that ends at `top`.
    pub fn beginning(top: u64, begin: extern "C" fn(usize) -> !, argument: usize) -> Self {
        let at = (top - 72) as *mut u64;
        let words = [
            0,
            0,
            argument as u64,       // r13
            begin as usize as u64, // r12
            0,
            0, // rbp: backtraces end
            (&raw const thread_begin).addr() as u64,
            0,
            0, // the stack is aligned at the call
        ];
        // SAFETY: the nine words below `top` are on a new stack, which no thread uses yet (all
        // callers have just taken it).
        unsafe { at.cast::<[u64; 9]>().write(words) };
        Self(UnsafeCell::new(at as u64))
    }

    /// The place for a thread that runs now.
    pub const fn running() -> Self {
        Self(UnsafeCell::new(0))
    }
}

/// Switches from the running thread to another, and returns when a thread switches back to the
/// first.
///
/// # Safety
///
/// `from` is the running thread's. `to` is that of a thread that does not run and that the caller
/// may run.
pub unsafe fn switch(from: &StackPointer, to: &StackPointer) {
    // SAFETY: `from` is the running thread's, and `to` that of a thread that does not run (contract
    // of this function).
    unsafe { switch_stacks(from.0.get(), *to.0.get()) };
}

/// Leaves the kernel by this frame, and uses the stack from there on.
///
/// # Safety
///
/// The frame is at the top of the running thread's kernel stack, and interrupts are off.
pub unsafe fn leave_by(frame: *const super::frame::Frame) -> ! {
    // SAFETY: the frame is at the top of the running thread's stack, and interrupts are off
    // (contract of this function), so that nothing else is written there before `leave` has
    // restored the registers.
    unsafe {
        core::arch::asm!("mov rsp, {}", "jmp {}", in(reg) frame, in(reg) &raw const leave, options(noreturn))
    }
}
