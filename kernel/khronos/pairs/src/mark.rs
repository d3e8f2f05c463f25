//! Instructions that tell the plugin where a call begins and ends. Elsewhere they do nothing.
//!
//! `plugin/share.c` has the same numbers.

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The first call begins on this CPU.
    First,
    /// The second.
    Second,
    /// The call that began on this CPU has ended.
    End,
    /// Both have: what is shared is written down.
    Report,
}

/// `nop dword ptr [rax + 0x4b52d000 + mark]`, seven bytes.
#[cfg(target_arch = "x86_64")]
macro_rules! mark {
    ($number:literal) => {
        // SAFETY: the instruction does nothing; the address is not used. Earlier writes stay before
        // it, because the compiler is not told otherwise.
        unsafe {
            core::arch::asm!(
                ".byte 0x0f, 0x1f, 0x80",
                ".long 0x4b52d000 + {}",
                const $number,
                options(nostack, preserves_flags),
            )
        }
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! mark {
    ($number:literal) => {};
}

/// Makes a mark.
#[inline(always)]
pub fn make(mark: Mark) {
    match mark {
        Mark::First => mark!(1),
        Mark::Second => mark!(2),
        Mark::End => mark!(3),
        Mark::Report => mark!(4),
    }
}

fn digit(value: u32) {
    match value & 15 {
        0 => mark!(16),
        1 => mark!(17),
        2 => mark!(18),
        3 => mark!(19),
        4 => mark!(20),
        5 => mark!(21),
        6 => mark!(22),
        7 => mark!(23),
        8 => mark!(24),
        9 => mark!(25),
        10 => mark!(26),
        11 => mark!(27),
        12 => mark!(28),
        13 => mark!(29),
        14 => mark!(30),
        _ => mark!(31),
    }
}

/// Sets the number of the next report.
pub fn number(number: u32) {
    (0..8).rev().for_each(|place| digit(number >> (4 * place)));
}
