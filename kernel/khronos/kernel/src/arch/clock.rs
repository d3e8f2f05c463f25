//! The time of day, from the machine's battery-driven clock.

use super::msr::{inb, outb};
use crate::sync::once::Once;

static AT_BOOT: Once<u64> = Once::new();

fn register(number: u8) -> u64 {
    outb(0x70, number);
    u64::from(inb(0x71))
}

/// All fields: seconds, minutes, hours, day, month, year of the century.
fn fields() -> [u64; 6] {
    const UPDATING: u64 = 0x80;
    while register(0x0a) & UPDATING != 0 {
        core::hint::spin_loop();
    }
    [0, 2, 4, 7, 8, 9].map(register)
}

/// Days from 1970 to a date.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years that begin in March have their leap day last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// Reads the clock, once.
pub fn start() {
    const BINARY: u64 = 4;
    let mut read = fields();
    loop {
        let again = fields();
        if again == read {
            break;
        }
        read = again;
    }
    let decimal = |field: u64| (field >> 4) * 10 + (field & 15);
    let [second, minute, hour, day, month, year] =
        if register(0x0b) & BINARY != 0 { read } else { read.map(decimal) };
    let days = days(2000 + year, month.max(1), day.max(1));
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    AT_BOOT.set((seconds * 1_000_000_000).saturating_sub(super::tsc::now()));
}

/// Nanoseconds from 1970 to the boot.
pub fn at_boot_ns() -> u64 {
    *AT_BOOT.get()
}
