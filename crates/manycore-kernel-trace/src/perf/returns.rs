//! The caller of a function without a frame of its own, such as libc's `syscall`: the word on top
//! of its stack, or on Arm in the link register, if that is a return address. Frame pointers skip
//! this caller. `caller_if` in `bpf/futex.h` does the same in the kernel.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

#[cfg(target_arch = "aarch64")]
use perf_event_open_sys::bindings::PERF_SAMPLE_REGS_USER;
#[cfg(target_arch = "x86_64")]
use perf_event_open_sys::bindings::PERF_SAMPLE_STACK_USER;
use perf_event_open_sys::bindings::perf_event_attr;

use super::Record;

/// How many addresses are remembered.
const KNOWN_MAX: usize = 65_536;

/// For each process, whether addresses are return addresses of calls.
#[derive(Debug, Default)]
pub struct Returns {
    known: HashMap<u32, HashMap<u64, bool>>,
    number: usize,
    /// How many could not be looked at.
    refused: u64,
}

impl Returns {
    /// Whether the instruction before an address is a call.
    pub fn has(&mut self, process: u32, address: u64) -> bool {
        if let Some(known) = self.known.get(&process).and_then(|of| of.get(&address)) {
            return *known;
        }
        if self.number >= KNOWN_MAX {
            self.known.clear();
            self.number = 0;
        }
        let has = follows_a_call(process, address).unwrap_or_else(|_| {
            self.refused += 1;
            false
        });
        self.known.entry(process).or_default().insert(address, has);
        self.number += 1;
        has
    }

    /// A process has ended, or is another program.
    pub fn forget(&mut self, process: u32) {
        self.number -= self.known.remove(&process).map_or(0, |known| known.len());
    }

    /// The number of addresses that are taken for none because this process may not inspect the
    /// other one.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

/// The bytes of the stack that a record copies: its top.
#[cfg(target_arch = "x86_64")]
const STACK_BYTES: u32 = 8;

/// Asks that a function without a frame says in each record where it returns to.
#[cfg(target_arch = "x86_64")]
pub fn ask(attributes: &mut perf_event_attr) {
    attributes.sample_type |= u64::from(PERF_SAMPLE_STACK_USER);
    attributes.sample_stack_user = STACK_BYTES;
}

/// The same: by the link register.
#[cfg(target_arch = "aarch64")]
pub fn ask(attributes: &mut perf_event_attr) {
    const LINK_REGISTER: u32 = 30;
    attributes.sample_type |= u64::from(PERF_SAMPLE_REGS_USER);
    attributes.sample_regs_user = 1 << LINK_REGISTER;
}

/// What the rest of a record answers to [`ask`]; 0 if nothing could be read.
#[cfg(target_arch = "x86_64")]
pub fn answer(record: &mut Record<'_>) -> u64 {
    // A copy of the stack: the requested size, the bytes, and their number.
    let (_, top, copied) = (record.long(), record.long(), record.long());
    if copied == u64::from(STACK_BYTES) { top } else { 0 }
}

/// The same.
#[cfg(target_arch = "aarch64")]
pub fn answer(record: &mut Record<'_>) -> u64 {
    // The kind of program, which is 0 for a thread of the kernel, and the register.
    let (kind, register) = (record.long(), record.long());
    if kind != 0 { register } else { 0 }
}

/// The bytes of the longest call.
const LONGEST_CALL: usize = if cfg!(target_arch = "aarch64") { 4 } else { 6 };

/// Whether a call precedes the address. Also true if the process has ended: one call too many in a
/// stack is better than one too few, since the library's own waits are recognised by their callers.
/// An error concerns this process: it lacks the permission, or has too many files open.
fn follows_a_call(process: u32, address: u64) -> io::Result<bool> {
    let mut before = [0; LONGEST_CALL];
    let Some(start) = address.checked_sub(before.len() as u64).filter(|start| *start > 0) else {
        return Ok(false);
    };
    let is_gone = |error: &io::Error| {
        // The end of the file: a process that was not reaped, and without memory.
        error.kind() == ErrorKind::UnexpectedEof
            || matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
    };
    let memory = match File::open(format!("/proc/{process}/mem")) {
        Ok(memory) => memory,
        Err(error) if is_gone(&error) => return Ok(true),
        Err(error) => return Err(error),
    };
    match memory.read_exact_at(&mut before, start) {
        Ok(()) => Ok(is_call(&before)),
        // Else nothing is there: it is no address.
        Err(error) => Ok(is_gone(&error)),
    }
}

/// Whether the instruction is `bl`, or `blr` in one of its forms.
#[cfg(target_arch = "aarch64")]
fn is_call(before: &[u8; LONGEST_CALL]) -> bool {
    let instruction = u32::from_le_bytes(*before);
    instruction & 0xfc00_0000 == 0x9400_0000 || instruction & 0xfeff_f000 == 0xd63f_0000
}

/// Whether the bytes end with a near call, a call through a word relative to the instruction, or a
/// call through a register.
#[cfg(target_arch = "x86_64")]
fn is_call(before: &[u8; LONGEST_CALL]) -> bool {
    before[1] == 0xe8
        || (before[0] == 0xff && before[1] == 0x15)
        || (before[4] == 0xff && before[5] & 0xf8 == 0xd0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn calls_are_told_by_their_instruction() {
        let is_call = |instruction: u32| is_call(&instruction.to_le_bytes());
        assert!([0x97ff_ffff, 0xd63f_0100, 0xd73f_0901].into_iter().all(is_call));
        assert!(
            [0x1400_0001, 0xd61f_0100, 0xd65f_03c0, 0xd503_201f].into_iter().all(|it| !is_call(it))
        );
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_are_told_by_their_instruction() {
        assert!(is_call(&[0x90, 0xe8, 1, 2, 3, 4]) && is_call(&[0xff, 0x15, 1, 2, 3, 4]));
        assert!(is_call(&[0, 0, 0, 0, 0xff, 0xd0]) && !is_call(&[0x90; 6]));
    }

    #[test]
    fn of_a_process_that_is_gone_everything_is_one_but_what_is_no_address() {
        let mut returns = Returns::default();
        assert!(returns.has(u32::MAX, 0x1000) && !returns.has(u32::MAX, 0));
        assert_eq!((returns.number, returns.refused()), (2, 0));
        returns.forget(u32::MAX);
        assert_eq!(returns.number, 0);
    }

    #[test]
    fn a_process_is_read_while_it_lives() {
        #[cfg(target_arch = "x86_64")]
        let call = [0x90_u8, 0xe8, 0, 0, 0, 0, 0x90];
        #[cfg(target_arch = "aarch64")]
        let call = 0x9400_0000_u32.to_le_bytes();
        let after = call.as_ptr() as u64 + LONGEST_CALL as u64;
        let mut returns = Returns::default();
        assert!(returns.has(std::process::id(), after));
        assert!(!returns.has(std::process::id(), after - 1));
        assert!(!returns.has(std::process::id(), 0x1000), "nothing is there");
    }
}
