//! Threads: a kernel stack, and what runs on it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::sched;
use crate::arch::cpu;
use crate::arch::msr;
use crate::arch::switch::StackPointer;
use crate::mm::stacks::{self, Stack};
use crate::sync::order::Held;

/// What a thread does now.
pub mod state {
    /// It runs.
    pub const RUNNING: u8 = 0;
    /// It waits for a CPU.
    pub const RUNNABLE: u8 = 1;
    /// It sleeps.
    pub const SLEEPING: u8 = 2;
    /// It has ended.
    pub const ENDED: u8 = 3;
}

/// A thread.
pub struct Thread {
    /// No other thread has this number while it lives.
    pub number: u32,
    /// Nothing for the threads that CPUs begin with.
    stack: Option<Stack>,
    /// Where it has left its stack.
    pub stack_pointer: StackPointer,
    /// See [`state`].
    pub state: AtomicU8,
    /// Whether a CPU is on its stack.
    pub on_cpu: AtomicBool,
    /// The CPU that runs it, or did last.
    pub cpu: AtomicU32,
    /// The CPUs that may.
    pub affinity: AtomicU64,
    /// Whether a signal ends its sleep.
    pub hears_signals: AtomicBool,
    /// The sleeping locks that it has.
    pub held: Held,
    /// Its program in user mode; `None` for the kernel's own threads.
    pub user: Option<super::user::User>,
}

// SAFETY: `held` and the stack pointer are used by the thread itself and by the CPU that switches
// to it; all else is atomic or says itself.
unsafe impl Sync for Thread {}
// SAFETY: a thread's record is reached by address from any CPU, and no field depends on the CPU or
// the thread that made it.
unsafe impl Send for Thread {}

/// Threads have numbers from here on. Lower ones identify pinned code, by its CPU.
const FIRST_NUMBER: u32 = cpu::MOST as u32 + 1;
static NUMBERS: AtomicU32 = AtomicU32::new(FIRST_NUMBER);

/// A number that no thread has had.
pub fn next_number() -> u32 {
    NUMBERS.fetch_add(1, Ordering::Relaxed) // Relaxed: a number
}

impl Thread {
    fn new(number: u32, stack: Option<Stack>, stack_pointer: StackPointer) -> Self {
        Self {
            number,
            stack,
            stack_pointer,
            state: AtomicU8::new(state::SLEEPING),
            on_cpu: AtomicBool::new(false),
            cpu: AtomicU32::new(cpu::number()),
            affinity: AtomicU64::new(u64::MAX),
            hears_signals: AtomicBool::new(false),
            held: Held::new(),
            user: None,
        }
    }

    /// A CPU's idle thread, which it runs when there is no other.
    pub fn of_cpu() -> Arc<Self> {
        let thread = Self::new(next_number(), None, StackPointer::running());
        thread.state.store(state::RUNNING, Ordering::Relaxed); // Relaxed, both: not shared yet
        thread.on_cpu.store(true, Ordering::Relaxed);
        Arc::new(thread)
    }

    /// The end of its kernel stack, where system calls start.
    pub fn stack_top(&self) -> u64 {
        self.stack.as_ref().map_or(0, Stack::top)
    }
}

/// The running thread. The reference is valid as long as that thread runs: do not store it.
pub fn current() -> &'static Thread {
    // SAFETY: the CPU has a reference to the thread that it runs.
    unsafe { &*cpu::current() }
}

/// A reference to the running thread that may be stored.
pub fn current_arc() -> Arc<Thread> {
    let thread = cpu::current();
    // SAFETY: the pointer came from `Arc::into_raw`, in `go_to`, and the CPU keeps that reference
    // while the thread runs, which is now.
    unsafe {
        Arc::increment_strong_count(thread);
        Arc::from_raw(thread)
    }
}

/// Makes a thread of the kernel's and lets it run, on the CPUs of the set.
pub fn spawn_on(affinity: u64, run: impl FnOnce() + Send + 'static) -> Arc<Thread> {
    let run: Box<Box<dyn FnOnce() + Send>> = Box::new(Box::new(run));
    let stack = stacks::take();
    let argument = Box::into_raw(run).expose_provenance();
    let pointer = StackPointer::beginning(stack.top(), begin, argument);
    let thread = Thread::new(next_number(), Some(stack), pointer);
    thread.affinity.store(affinity, Ordering::Relaxed); // Relaxed: not shared yet
    let thread = Arc::new(thread);
    sched::wake(&thread);
    thread
}

/// On any CPU.
pub fn spawn(run: impl FnOnce() + Send + 'static) -> Arc<Thread> {
    spawn_on(u64::MAX, run)
}

extern "C" fn begin(argument: usize) -> ! {
    sched::has_switched();
    cpu::unpin();
    msr::interrupts_enable();
    let run: *mut Box<dyn FnOnce() + Send> = core::ptr::with_exposed_provenance_mut(argument);
    // SAFETY: `spawn_on` has made the box and has passed its address as the argument of this thread
    // only.
    let run = unsafe { Box::from_raw(run) };
    run();
    sched::end()
}

/// A thread that leaves the kernel by `frame` when it first runs.
pub fn for_user(user: super::user::User, frame: &crate::arch::frame::Frame) -> Arc<Thread> {
    let stack = stacks::take();
    let place = stack.top() - size_of_val(frame) as u64;
    // SAFETY: the stack is new, this is within it, and no thread uses it before `spawn_on` or
    // `wake` starts this one.
    unsafe { (place as *mut crate::arch::frame::Frame).write(frame.clone()) };
    let pointer = StackPointer::beginning(place, begin_user, place as usize);
    let mut thread = Thread::new(user.number(), Some(stack), pointer);
    thread.user = Some(user);
    Arc::new(thread)
}

extern "C" fn begin_user(frame: usize) -> ! {
    sched::has_switched();
    cpu::unpin();
    let frame: *mut crate::arch::frame::Frame = core::ptr::with_exposed_provenance_mut(frame);
    // SAFETY: `for_user` has put it at the top of this stack; interrupts are off since the switch.
    unsafe {
        crate::arch::trap::before_user(&mut *frame);
        crate::arch::switch::leave_by(frame)
    }
}
