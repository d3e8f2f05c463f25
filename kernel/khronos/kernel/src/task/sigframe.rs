//! What a signal handler finds on the stack: Linux' `rt_sigframe`.

use core::sync::atomic::Ordering;

use super::signal::{Action, action_flags, bit};
use super::user::{NO_MASK, User};
use crate::arch::frame::{Frame, INITIAL_FLAGS, USER_CODE, USER_DATA};
use crate::call::errno::{Errno, Result};
use crate::mm::user as memory;

/// The number of words of the frame after its return address: `ucontext`, which ends with the mask.
const CONTEXT_WORDS: usize = 38;
const CONTEXT_BYTES: u64 = CONTEXT_WORDS as u64 * 8;
const INFO_BYTES: u64 = 128;
const FPU_BYTES: u64 = 512;
/// Programs may use this many bytes below the stack pointer.
const RED_ZONE: u64 = 128;
/// Flags that a program may change: arithmetic flags and the direction flag.
const FLAGS: u64 = 0x40dd5;

/// Where things are in the context, in words.
mod place {
    pub const STACK: usize = 2;
    pub const REGISTERS: usize = 5;
    pub const SEGMENTS: usize = 23;
    pub const FPU: usize = 28;
    pub const MASK: usize = 37;
}

fn registers(frame: &Frame) -> [u64; 18] {
    [
        frame.r8,
        frame.r9,
        frame.r10,
        frame.r11,
        frame.r12,
        frame.r13,
        frame.r14,
        frame.r15,
        frame.rdi,
        frame.rsi,
        frame.rbp,
        frame.rbx,
        frame.rdx,
        frame.rax,
        frame.rcx,
        frame.rsp,
        frame.rip,
        frame.flags,
    ]
}

/// Makes the thread run its handler when it returns to user mode.
pub fn enter(frame: &mut Frame, user: &User, signal: u32, action: &Action) -> Result<()> {
    put(frame, user, signal, action, 0, 0)
}

/// The same for a fault at an address.
pub fn enter_fault(
    frame: &mut Frame,
    user: &User,
    signal: u32,
    action: &Action,
    address: u64,
) -> Result<()> {
    put(frame, user, signal, action, 1, address)
}

fn put(
    frame: &mut Frame,
    user: &User,
    signal: u32,
    action: &Action,
    code: u32,
    address: u64,
) -> Result<()> {
    // Relaxed, all here: the thread's own.
    let [stack, stack_bytes] =
        user.signal_stack.each_ref().map(|word| word.load(Ordering::Relaxed));
    let uses_stack = action.flags & action_flags::ON_STACK != 0
        && stack_bytes > 0
        && !(stack..stack + stack_bytes).contains(&frame.rsp);
    let top = if uses_stack { stack + stack_bytes } else { frame.rsp - RED_ZONE };
    let fpu = (top - FPU_BYTES) & !63;
    let start = ((fpu - CONTEXT_BYTES - INFO_BYTES) & !15) - 8;
    let mask = user.mask.load(Ordering::Relaxed);
    let after = user.mask_after.swap(NO_MASK, Ordering::Relaxed);

    let mut context = [0; CONTEXT_WORDS];
    context[place::STACK] = stack;
    context[place::STACK + 2] = stack_bytes;
    context[place::REGISTERS..place::SEGMENTS].copy_from_slice(&registers(frame));
    context[place::SEGMENTS] = USER_CODE | USER_DATA << 48;
    context[place::FPU] = fpu;
    context[place::MASK] = if after == NO_MASK { mask } else { after };
    let mut info = [0u64; INFO_BYTES as usize / 8];
    info[0] = u64::from(signal);
    info[1] = u64::from(code);
    info[2] = address;
    memory::write_bytes(fpu, &frame.fpu)?;
    memory::write(start, &action.restorer)?;
    memory::write_list(start + 8, &context)?;
    memory::write_list(start + 8 + CONTEXT_BYTES, &info)?;

    let own = if action.flags & action_flags::NO_DEFER != 0 { 0 } else { bit(signal) };
    user.mask.store(mask | action.mask | own, Ordering::Relaxed);
    frame.rip = action.handler;
    frame.rsp = start;
    frame.rdi = u64::from(signal);
    frame.rsi = start + 8 + CONTEXT_BYTES;
    frame.rdx = start + 8;
    frame.rax = 0;
    frame.flags = INITIAL_FLAGS;
    frame.vector = 0; // what a call is to return is in the context
    Ok(())
}

/// Called when the handler has returned: the thread continues where the signal interrupted it.
pub fn leave(frame: &mut Frame, user: &User) -> Result<()> {
    let context = memory::read_list::<u64>(frame.rsp, CONTEXT_WORDS)?;
    let mut fpu = [0; 512];
    if context[place::FPU] != 0 {
        memory::read_bytes(context[place::FPU], &mut fpu)?;
        fpu[26..28].fill(0); // reserved bits of MXCSR fault
        frame.fpu = fpu;
    }
    let [r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags] =
        core::array::from_fn(|word| context[place::REGISTERS + word]);
    if rip >= memory::END {
        return Err(Errno::FAULT); // the CPU would find out in the kernel
    }
    let kept = core::mem::replace(frame, Frame::user(rip, rsp));
    frame.fpu = kept.fpu;
    frame.flags = INITIAL_FLAGS | flags & FLAGS;
    (frame.r8, frame.r9, frame.r10, frame.r11) = (r8, r9, r10, r11);
    (frame.r12, frame.r13, frame.r14, frame.r15) = (r12, r13, r14, r15);
    (frame.rdi, frame.rsi, frame.rbp, frame.rbx) = (rdi, rsi, rbp, rbx);
    (frame.rdx, frame.rax, frame.rcx) = (rdx, rax, rcx);
    user.mask.store(context[place::MASK], Ordering::Relaxed); // Relaxed: the thread's own
    Ok(())
}
