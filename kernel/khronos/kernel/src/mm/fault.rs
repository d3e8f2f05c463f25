//! Page faults.

use super::{space, user};

unsafe extern "C" {
    static copy_user_at: u8;
    static copy_user_end: u8;
    static copy_user_fault: u8;
}

/// Whether the instruction copies from or to user memory. Then a fault is not an error of the
/// kernel's.
pub fn is_user_copy(instruction: u64) -> bool {
    let range = (&raw const copy_user_at).addr() as u64..(&raw const copy_user_end).addr() as u64;
    range.contains(&instruction)
}

/// Where a copy goes on that cannot.
pub fn copy_exit() -> u64 {
    (&raw const copy_user_fault).addr() as u64
}

const WRITE: u64 = 1 << 1;
const EXECUTE: u64 = 1 << 4;

/// Maps the page on which the running process has faulted, if the process may use it.
pub fn mend(address: usize, error: u64) -> bool {
    let address = address as u64;
    address < user::END
        && space::current()
            .is_some_and(|space| space.fault(address, error & WRITE != 0, error & EXECUTE != 0))
}

/// Reads where nothing is mapped, on purpose.
pub fn provoke() {
    // SAFETY: it is not safe: the address is not mapped, and the fault stops the kernel, which the
    // caller tests.
    unsafe { (16 as *const u64).read_volatile() };
}
