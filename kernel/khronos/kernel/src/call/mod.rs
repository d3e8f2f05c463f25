//! System calls: those of Linux on x86-64, as far as the programs in the tests need them.

pub mod errno;
mod files;
mod ipc;
mod memory;
mod names;
mod processes;
mod signals;
mod status;
mod table;
pub mod time;
mod transfer;

use core::sync::atomic::{AtomicU64, Ordering};

use errno::{Errno, Result};

use crate::arch::frame::Frame;
use crate::println;

/// Arguments of a call.
pub type Arguments = [u64; 6];
/// A call.
pub type Call = fn(&mut Frame, Arguments) -> Result<u64>;

/// Executes the call of the frame, and stores its result there.
pub fn dispatch(frame: &mut Frame) {
    let number = frame.error;
    let arguments = [frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9];
    let result = match table::find(number) {
        Some((_, call)) => call(frame, arguments),
        None => {
            tell_once(number);
            Err(Errno::NO_CALL)
        }
    };
    crate::vfs::durable::relieve();
    // These put a whole frame in the place of their own.
    if result.is_ok() && matches!(number, table::SIGRETURN | table::EXECVE) {
        return;
    }
    frame.rax = match result {
        Ok(value) => value,
        Err(Errno(error)) => -i64::from(error) as u64,
    };
}

/// Reports a call of a number that is not implemented, once for each number.
fn tell_once(number: u64) {
    static TOLD: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
    let Some(word) = TOLD.get(number as usize / 64) else { return };
    let bit = 1 << (number % 64);
    // Relaxed: a set
    if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 && !table::is_refused_silently(number) {
        println!("khronos: no system call {number}");
    }
}
