//! Starts the other CPUs, and waits for all that firmware names.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::{acpi, apic, cpu, gdt, idt, tsc};
use crate::mm::{direct_map, stacks};
use crate::println;

const TRAMPOLINE: u64 = 0x8000;

/// The longest wait for a CPU, in nanoseconds. A virtual machine's CPUs may have to wait for one of
/// the host's.
const PATIENCE_NS: u64 = 20_000_000_000;

/// The next CPU's number, less one; boot.s takes numbers from it.
#[unsafe(no_mangle)]
static ap_tickets: AtomicU32 = AtomicU32::new(0);
#[unsafe(no_mangle)]
static ap_stacks: AtomicPtr<u64> = AtomicPtr::new(core::ptr::null_mut());
#[unsafe(no_mangle)]
static ap_stack_count: AtomicU32 = AtomicU32::new(0);
/// Those that have arrived.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
/// Whether those that have arrived may begin to schedule.
static GATE: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
}

static STACKS: [core::sync::atomic::AtomicU64; cpu::MOST] =
    [const { core::sync::atomic::AtomicU64::new(0) }; cpu::MOST];

/// Starts them.
///
/// # Panics
///
/// If one does not come in 20 seconds.
pub fn start() {
    let own = apic::id();
    let cpus = acpi::cpus(own);
    let others: u32 = cpus.count as u32 - 1;
    for stack in &STACKS[..others as usize] {
        let new = core::mem::ManuallyDrop::new(stacks::take()); // the CPU keeps it
        stack.store(new.top(), Ordering::Relaxed); // Relaxed: published below
    }
    ap_stacks.store(STACKS.as_ptr().cast_mut().cast(), Ordering::Relaxed);
    // Release: partner of boot.s, which a CPU executes only after the interrupt below: it sees the
    // stacks.
    ap_stack_count.store(others, Ordering::Release);
    let (from, to) = (&raw const trampoline_start, &raw const trampoline_end);
    // SAFETY: the page at TRAMPOLINE is below 1 MB, where no frames are handed out.
    unsafe {
        direct_map::physical(TRAMPOLINE).copy_from_nonoverlapping(from, to.addr() - from.addr());
    }
    let ids = cpus.apic_ids[..cpus.count].iter().filter(|&&id| id != own);
    ids.clone().for_each(|&id| apic::send_init(id));
    delay(10_000_000);
    for _ in 0..2 {
        ids.clone().for_each(|&id| apic::send_startup(id, (TRAMPOLINE >> 12) as u8));
        delay(200_000);
    }
    let start = tsc::now();
    while ARRIVED.load(Ordering::Acquire) < others {
        // Acquire: partner of `ap_main`'s Release
        core::hint::spin_loop();
        assert!(
            tsc::now() - start < PATIENCE_NS,
            "firmware names {} CPUs, and {} came in 20 s",
            cpus.count,
            ARRIVED.load(Ordering::Relaxed) + 1, // Relaxed: a number to print
        );
    }
    cpu::set_count(cpus.count);
    println!("cpus: {} of {}", others + 1, cpus.count);
}

/// Those that have arrived go on.
pub fn open_gate() {
    GATE.store(1, Ordering::Release); // Release: partner of the Acquire in `ap_main`
}

fn delay(nanoseconds: u64) {
    let start = tsc::now();
    while tsc::now() - start < nanoseconds {
        core::hint::spin_loop();
    }
}

/// Where boot.s leads the CPU with this ticket.
#[unsafe(no_mangle)]
extern "C" fn ap_main(ticket: u32) -> ! {
    let number = ticket as usize + 1;
    // SAFETY: boot.s gives each CPU another ticket, from 0 on, and CPU 0 is the first one: so the
    // number is this CPU's only.
    unsafe {
        cpu::adopt(number, apic::id());
        gdt::load(number);
    }
    idt::load();
    apic::enable();
    ARRIVED.fetch_add(1, Ordering::Release); // Release: partner of the Acquire in `start`
    while GATE.load(Ordering::Acquire) == 0 {
        // Acquire: partner of `open_gate`
        core::hint::spin_loop();
    }
    crate::task::sched::begin()
}
