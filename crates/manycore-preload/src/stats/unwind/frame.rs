//! One call on the stack.

use core::arch::asm;

/// A call under way: where it goes on, and its registers there.
#[derive(Clone, Copy)]
pub struct Frame {
    /// The address of the next instruction.
    pub next: usize,
    /// The stack pointer.
    pub stack: usize,
    /// The frame pointer, or whatever the function keeps in that register.
    pub base: usize,
    /// Whether a signal has interrupted the call there. Otherwise it has called another function,
    /// perhaps as the last instruction of all.
    pub is_interrupted: bool,
}

impl Frame {
    /// The function that this is inlined into.
    #[inline(always)]
    pub fn here() -> Self {
        let (next, stack, base): (usize, usize, usize);
        // SAFETY: copies three registers into others, and accesses no memory.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
                out(reg) next, out(reg) stack, out(reg) base,
                options(nomem, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                "adr {}, .", "mov {}, sp", "mov {}, x29",
                out(reg) next, out(reg) stack, out(reg) base,
                options(nomem, nostack, preserves_flags),
            );
        }
        Self { next, stack, base, is_interrupted: true }
    }
}

/// An address to return to, of which the processor may have signed the upper bits.
pub fn without_signature(address: usize) -> usize {
    #[cfg(target_arch = "aarch64")]
    {
        let plain: usize;
        // SAFETY: changes the one register that it says, and does nothing on a processor that does
        // not sign (xpaclri).
        unsafe {
            asm!("hint #7", inout("x30") address => plain, options(nomem, nostack, preserves_flags));
        }
        plain
    }
    #[cfg(target_arch = "x86_64")]
    address
}
