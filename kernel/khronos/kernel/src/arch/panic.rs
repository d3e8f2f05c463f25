//! The end after a broken invariant: all CPUs stop and say where they are.

use core::arch::asm;
use core::fmt::Arguments;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::arch::trap::STOPPING;
use crate::arch::{apic, cpu, exit, msr, tsc};
use crate::drive::uart::print_in_panic;

/// Frames of a backtrace at most.
const DEPTH: usize = 24;
/// CPUs that have said where they are.
static STOPPED: AtomicU32 = AtomicU32::new(0);

macro_rules! say {
    ($($argument:tt)*) => { print_in_panic(format_args!("{}\n", format_args!($($argument)*))) };
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let frame: u64;
    // SAFETY: reads a register: the kernel is compiled with frame pointers.
    unsafe { asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack)) };
    match info.location() {
        Some(place) => stop_with(format_args!("{} at {place}", info.message()), 0, frame),
        None => stop_with(format_args!("{}", info.message()), 0, frame),
    }
}

/// Stops the machine: prints the reason and the backtraces of all CPUs.
pub fn stop_with(why: Arguments, instruction: u64, frame: u64) -> ! {
    msr::interrupts_off();
    if STOPPING.swap(true, Ordering::AcqRel) {
        // AcqRel: partner of the Acquire of other CPUs
        halt(); // another CPU was first, or the report itself has failed
    }
    let this = cpu::this();
    say!("\nPANIC on cpu {}: {why}", this.number());
    for (rank, lock) in this.held.iter() {
        say!("  holds {rank:?} at {lock:#x}");
    }
    backtrace(instruction, frame);
    for other in cpu::all().iter().filter(|other| other.number() != this.number()) {
        let before = STOPPED.load(Ordering::Acquire); // Acquire, both: partner of `stop_here`
        apic::send_nmi(other.remote.apic_id.load(Ordering::Relaxed) as u8); // Relaxed: constant
        let start = tsc::now();
        while STOPPED.load(Ordering::Acquire) == before && tsc::now() - start < 1_000_000_000 {
            core::hint::spin_loop();
        }
    }
    say!("khronos: FAILED: panic");
    exit::exit(false)
}

/// Another CPU has panicked: prints where this CPU is, and stops it.
pub fn stop_here(instruction: u64, frame: u64, is_user: bool) -> ! {
    say!("cpu {}:{}", cpu::number(), if is_user { " in user mode" } else { "" });
    if !is_user {
        backtrace(instruction, frame);
    }
    STOPPED.fetch_add(1, Ordering::Release); // Release: partner of the Acquire in `stop_with`
    halt()
}

fn halt() -> ! {
    loop {
        msr::interrupts_off();
        cpu::halt();
    }
}

unsafe extern "C" {
    static text_start: u8;
    static text_end: u8;
}

fn is_code(address: u64) -> bool {
    let text = (&raw const text_start).addr() as u64..(&raw const text_end).addr() as u64;
    text.contains(&address)
}

/// Prints the addresses of calls; `tools/symbols` or addr2line turns them into lines.
fn backtrace(instruction: u64, frame: u64) {
    if is_code(instruction) {
        say!("  at {instruction:#x}");
    }
    let mut frame = frame;
    for _ in 0..DEPTH {
        // Frames are above the kernel's stacks' begin, or in its image, and aligned.
        if frame < 0xffff_8000_0000_0000 || !frame.is_multiple_of(8) {
            return;
        }
        // SAFETY: a frame pointer of code that is compiled with them: two words of a stack.
        let [next, caller] = unsafe { (frame as *const [u64; 2]).read_volatile() };
        if !is_code(caller) {
            return;
        }
        say!("  at {caller:#x}");
        if next <= frame {
            return;
        }
        frame = next;
    }
}
