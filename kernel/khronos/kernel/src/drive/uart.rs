//! The serial port: the kernel's output, and the console's bytes in both directions.

use core::fmt::{self, Write};

use crate::arch::msr::{inb, outb};
use crate::sync::order::Rank;
use crate::sync::spin::IrqSpin;

const PORT: u16 = 0x3f8;
const LINE_STATUS: u16 = PORT + 5;
const HAS_BYTE: u8 = 1;
const TAKES_BYTE: u8 = 1 << 5;

/// One writer at a time, so that lines stay whole.
static OUTPUT: IrqSpin<Uart> = IrqSpin::new(Rank::Print, Uart);

struct Uart;

/// Sets the port up: 115,200 baud, 8 bits, queues on, no interrupts.
pub fn start() {
    for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 0xc7), (4, 0x0b)] {
        outb(PORT + register, value);
    }
}

fn send(byte: u8) {
    while inb(LINE_STATUS) & TAKES_BYTE == 0 {
        core::hint::spin_loop();
    }
    outb(PORT, byte);
}

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                send(b'\r');
            }
            send(byte);
        }
        Ok(())
    }
}

/// Prints for the kernel.
pub fn print(arguments: fmt::Arguments) {
    let _ = OUTPUT.lock().write_fmt(arguments); // it never fails
}

/// Prints without the lock: the CPU that has it may be stopped.
pub fn print_in_panic(arguments: fmt::Arguments) {
    let _ = Uart.write_fmt(arguments); // it never fails
}

/// Sends bytes as they are.
pub fn write(bytes: &[u8]) {
    let _held = OUTPUT.lock();
    bytes.iter().for_each(|&byte| send(byte));
}

/// Passes received bytes on. Called at the ticks of one CPU: a hundred times a second, for 16 bytes
/// at most. QEMU waits while the queue is full.
pub fn poll() {
    while inb(LINE_STATUS) & HAS_BYTE != 0 {
        crate::vfs::console::receive(inb(PORT));
    }
}

/// Prints a line for the kernel.
#[macro_export]
macro_rules! println {
    ($($argument:tt)*) => {
        $crate::drive::uart::print(format_args!("{}\n", format_args!($($argument)*)))
    };
}
