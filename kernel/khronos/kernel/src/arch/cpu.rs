//! Each CPU's private data, at the base of the segment GS.

use core::arch::asm;
use core::cell::{Cell, UnsafeCell};
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use manycore::sync::CachePadded;

use crate::mm::frames::FrameCache;
use crate::mm::heap::Cache;
use crate::sync::order::Held;
use crate::task::sched::Local;
use crate::task::thread::Thread;
use crate::watch::counters::Counts;

/// CPUs at most: sets of them are words.
pub const MOST: usize = 64;

/// The data through which other CPUs request a CPU to flush translations.
pub struct Remote {
    /// Its interrupt controller's number.
    pub apic_id: AtomicU32,
    /// How often it was asked to.
    pub flushes_wanted: AtomicU64,
    /// How many of these it has done.
    pub flushes_done: AtomicU64,
}

/// A CPU's own.
#[repr(C, align(128))]
pub struct Cpu {
    this: AtomicPtr<Cpu>,
    /// The top of the stack that a system call uses; entry.s reads it at offset 8.
    pub kernel_stack: AtomicU64,
    /// entry.s briefly keeps the user's stack pointer here, at offset 16.
    scratch: AtomicU64,
    /// The number of pins and spin locks of the running thread. Above 0, the thread stays on the
    /// CPU.
    pins: Cell<u32>,
    /// Whether another thread is to run as soon as no pin is left.
    pub is_due: AtomicBool,
    /// The CPU's number, from 0.
    number: AtomicU32,
    /// The thread that runs.
    pub current: AtomicPtr<Thread>,
    /// Whether it sleeps for want of threads: then a wake-up needs an interrupt.
    pub is_idle: AtomicBool,
    /// The address space whose tables are loaded; 0 for the kernel's.
    pub space: AtomicU64,
    /// On a line of its own, because the CPU itself writes the other fields at each call.
    pub remote: CachePadded<Remote>,
    /// Events.
    pub counts: Counts,
    /// The locks that the running thread has while pinned.
    pub held: Held,
    /// Threads that are to run here.
    pub local: Local,
    /// Free frames.
    pub frames: UnsafeCell<FrameCache>,
    /// Free pieces of memory.
    pub heap: UnsafeCell<Cache>,
}

const _: () = assert!(offset_of!(Cpu, kernel_stack) == 8 && offset_of!(Cpu, scratch) == 16);
const PINS: usize = offset_of!(Cpu, pins);
const CURRENT: usize = offset_of!(Cpu, current);
const NUMBER: usize = offset_of!(Cpu, number);

// SAFETY: only the CPU itself uses the parts that are not atomic: `pins` by single instructions,
// and the caches with interrupts off.
unsafe impl Sync for Cpu {}

static CPUS: [Cpu; MOST] = [const {
    Cpu {
        this: AtomicPtr::new(core::ptr::null_mut()),
        kernel_stack: AtomicU64::new(0),
        scratch: AtomicU64::new(0),
        pins: Cell::new(1),
        is_due: AtomicBool::new(false),
        number: AtomicU32::new(0),
        current: AtomicPtr::new(core::ptr::null_mut()),
        is_idle: AtomicBool::new(false),
        space: AtomicU64::new(0),
        remote: CachePadded(Remote {
            apic_id: AtomicU32::new(0),
            flushes_wanted: AtomicU64::new(0),
            flushes_done: AtomicU64::new(0),
        }),
        counts: Counts::new(),
        held: Held::new(),
        local: Local::new(),
        frames: UnsafeCell::new(FrameCache::new()),
        heap: UnsafeCell::new(Cache::new()),
    }
}; MOST];

/// How many there are.
static COUNT: AtomicU32 = AtomicU32::new(1);

/// How many CPUs run.
pub fn count() -> usize {
    COUNT.load(Ordering::Relaxed) as usize // Relaxed: constant once the machine is up
}

/// All of them run now.
pub fn set_count(count: usize) {
    COUNT.store(count as u32, Ordering::Relaxed); // Relaxed: published by the start of threads
}

/// Those that run.
pub fn all() -> &'static [Cpu] {
    &CPUS[..count()]
}

/// The one with this number.
pub fn by_number(number: usize) -> &'static Cpu {
    &CPUS[number]
}

/// Gives the calling CPU its number. The CPU is pinned until its scheduler allows switches.
///
/// # Safety
///
/// Called once for each CPU, before any other use of it.
pub unsafe fn adopt(number: usize, apic_id: u8) {
    let cpu = &CPUS[number];
    let address = core::ptr::from_ref(cpu);
    cpu.this.store(address.cast_mut(), Ordering::Relaxed); // Relaxed, all: the CPU's own
    cpu.number.store(number as u32, Ordering::Relaxed);
    cpu.remote.apic_id.store(u32::from(apic_id), Ordering::Relaxed);
    // SAFETY: `cpu` is a static, and the kernel reads its address by GS from now on (contract of
    // this function).
    unsafe { super::msr::write(super::msr::GS_BASE, address as u64) };
}

/// The calling CPU. Unless the thread is pinned, it may be another one after the next instruction.
pub fn this() -> &'static Cpu {
    let cpu: *const Cpu;
    // SAFETY: reads the word at GS:0, which is `Cpu::this`: `adopt` has set GS to a `Cpu` before
    // any other code of the CPU.
    unsafe { asm!("mov {}, gs:[0]", out(reg) cpu, options(nostack, preserves_flags)) };
    // SAFETY: the address is that of one of `CPUS`, which are statics.
    unsafe { &*cpu }
}

/// The calling CPU's number, by one instruction.
pub fn number() -> u32 {
    let number: u32;
    // SAFETY: reads a field of the CPU's own structure, whose address `adopt` has put into GS.
    unsafe {
        asm!("mov {:e}, gs:[{}]", out(reg) number, const NUMBER, options(nostack, preserves_flags));
    }
    number
}

/// The running thread, by one instruction, so the result is right even if the thread moves to
/// another CPU.
pub fn current() -> *const Thread {
    let thread: *const Thread;
    // SAFETY: reads a field of the CPU's own structure, whose address `adopt` has put into GS.
    unsafe {
        asm!("mov {}, gs:[{}]", out(reg) thread, const CURRENT, options(nostack, preserves_flags));
    }
    thread
}

/// The running thread stays on its CPU.
pub fn pin() {
    // SAFETY: increments the CPU's own count; without `nomem`, so that later accesses stay behind
    // it.
    unsafe { asm!("inc dword ptr gs:[{}]", const PINS, options(nostack)) };
}

/// Ends a [`pin`]; returns whether it was the last one.
pub fn unpin() -> bool {
    let was_last: u8;
    // SAFETY: decrements the CPU's own count; without `nomem`, so that earlier accesses stay before
    // it.
    unsafe {
        asm!("dec dword ptr gs:[{}]", "setz {}", const PINS, out(reg_byte) was_last, options(nostack));
    }
    was_last != 0
}

/// How many pins the running thread has.
pub fn pins() -> u32 {
    let pins: u32;
    // SAFETY: reads the count of pins in the CPU's own `Cpu`, to which GS leads since `adopt`.
    unsafe { asm!("mov {:e}, gs:[{}]", out(reg) pins, const PINS, options(nostack)) };
    pins
}

/// Halts the CPU until an interrupt; for ever, if interrupts are off.
pub fn halt() {
    // SAFETY: halts the CPU; changes no memory and no register.
    unsafe { asm!("hlt", options(nomem, nostack)) };
}

impl Cpu {
    /// Its number.
    pub fn number(&self) -> usize {
        self.number.load(Ordering::Relaxed) as usize // Relaxed: constant
    }

    /// Interrupts it.
    pub fn interrupt(&self, vector: u8) {
        // Relaxed: constant.
        super::apic::send(self.remote.apic_id.load(Ordering::Relaxed) as u8, vector);
    }
}
