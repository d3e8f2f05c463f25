//! The end of the machine.

use crate::arch::msr::{outb, outw};

/// Ends QEMU with exit status 1 if all went well, and 3 otherwise: its device for that turns `n`
/// into `2n + 1`. Without that device, turns the machine off or stops.
pub fn exit(went_well: bool) -> ! {
    outb(0xf4, u8::from(!went_well));
    power_off()
}

/// Turns the machine off, by the means of QEMU's two chip sets; stops if it stays on.
pub fn power_off() -> ! {
    outw(0x604, 0x2000);
    outw(0xb004, 0x2000);
    loop {
        crate::arch::msr::interrupts_off();
        crate::arch::cpu::halt();
    }
}

/// Starts the machine anew.
pub fn reset() -> ! {
    outb(0x64, 0xfe);
    power_off()
}
