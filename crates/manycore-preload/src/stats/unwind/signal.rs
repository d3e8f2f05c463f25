//! The call that a signal has interrupted, where no table says so: a handler returns to code of the
//! kernel's that on AArch64 has none, and is known by its instructions.

use core::mem::offset_of;

use libc::{siginfo_t, ucontext_t};

use super::frame::Frame;
use super::memory::Memory;

/// `mov x8, #139` and `svc #0`: `rt_sigreturn`.
const RETURN: [u32; 2] = [0xd280_1168, 0xd400_0001];

/// Where the kernel has kept registers for that, from the stack pointer: behind what it says of the
/// signal.
const BASE: usize =
    size_of::<siginfo_t>() + offset_of!(ucontext_t, uc_mcontext.regs) + 29 * size_of::<u64>();
const STACK: usize = size_of::<siginfo_t>() + offset_of!(ucontext_t, uc_mcontext.sp);
const NEXT: usize = size_of::<siginfo_t>() + offset_of!(ucontext_t, uc_mcontext.pc);

/// The interrupted call, if `frame` is that code's.
pub fn interrupted(frame: &Frame, memory: &mut Memory) -> Option<Frame> {
    let code = [instruction(frame.next, memory)?, instruction(frame.next + 4, memory)?];
    if code != RETURN {
        return None;
    }
    let mut kept = |offset: usize| memory.word(frame.stack.wrapping_add(offset));
    Some(Frame { next: kept(NEXT)?, stack: kept(STACK)?, base: kept(BASE)?, is_interrupted: true })
}

fn instruction(address: usize, memory: &mut Memory) -> Option<u32> {
    let half = address % size_of::<usize>();
    Some((memory.word(address - half)? >> (8 * half)) as u32)
}
