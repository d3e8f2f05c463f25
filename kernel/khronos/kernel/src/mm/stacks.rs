//! Kernel stacks: 32 KB each, between pages that are never mapped.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::frames::{self, Frame};
use super::tables;
use crate::sync::order::Rank;
use crate::sync::spin::IrqSpin;

/// Where they are.
const START: u64 = 0xffff_8080_0000_0000;
/// From one to the next.
const STRIDE: u64 = 64 << 10;
/// The size of a stack. Rust's formatting without optimisation takes several KB.
pub const BYTES: u64 = 32 << 10;

/// Stacks that were used and are free. They stay mapped.
static FREE: IrqSpin<Vec<u64>> = IrqSpin::new(Rank::Stacks, Vec::new());
static MADE: AtomicU64 = AtomicU64::new(0);

/// A stack, which goes back when it is dropped.
pub struct Stack(u64);

/// The part of the address space is reserved.
pub fn start() {
    tables::reserve_kernel(START);
}

/// Takes one.
///
/// # Panics
///
/// If there is no memory.
pub fn take() -> Stack {
    if let Some(number) = FREE.lock().pop() {
        return Stack(number);
    }
    let number = MADE.fetch_add(1, Ordering::Relaxed); // Relaxed: a number
    let stack = Stack(number);
    for page in (stack.bottom()..stack.top()).step_by(frames::BYTES) {
        map(page);
    }
    stack
}

/// Tables of the kernel's half have one lock.
fn map(page: u64) {
    static TABLES: IrqSpin<()> = IrqSpin::new(Rank::Stacks, ());
    let frame = Frame::zeroed().expect("memory for a kernel stack");
    let _held = TABLES.lock();
    tables::map_kernel(page, frame);
}

impl Stack {
    /// The lowest address.
    pub fn bottom(&self) -> u64 {
        START + self.0 * STRIDE + (STRIDE - BYTES)
    }

    /// Behind the highest.
    pub fn top(&self) -> u64 {
        START + (self.0 + 1) * STRIDE
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        FREE.lock().push(self.0);
    }
}
