//! The scheduler: a queue for each CPU, slices of 10 ms, and CPUs without work that take some.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::thread::{self, Thread, state};
use super::user;
use crate::arch::cpu::{self, Cpu};
use crate::arch::frame::Frame;
use crate::arch::{apic, gdt, msr, switch};
use crate::sync::once::Once;
use crate::sync::order::Rank;
use crate::sync::pin::{pin, with_interrupts_off};
use crate::sync::spin::IrqSpin;
use crate::task::timer;
use crate::watch::counters::{Event, count};

/// A CPU's part.
pub struct Local {
    queue: IrqSpin<VecDeque<Arc<Thread>>>,
    /// The length of the queue, for CPUs that search for threads.
    length: AtomicUsize,
    /// What it runs when there is nothing else.
    idle: Once<Arc<Thread>>,
    /// The thread that it has just left.
    previous: AtomicPtr<Thread>,
}

impl Default for Local {
    fn default() -> Self {
        Self::new()
    }
}

impl Local {
    /// Nothing to do.
    pub const fn new() -> Self {
        Self {
            queue: IrqSpin::new(Rank::Queue, VecDeque::new()),
            length: AtomicUsize::new(0),
            idle: Once::new(),
            previous: AtomicPtr::new(core::ptr::null_mut()),
        }
    }
}

/// Timer ticks in a slice; measured at boot.
static SLICE: AtomicU32 = AtomicU32::new(0);

/// The length of a time slice, in ticks of the CPUs' timers.
pub fn set_slice(timer_ticks: u32) {
    SLICE.store(timer_ticks, Ordering::Relaxed); // Relaxed: before other CPUs start
}

/// Makes the calling code the CPU's idle thread. Interrupts remain on.
pub fn adopt() {
    let cpu = cpu::this();
    let idle = Thread::of_cpu();
    cpu.current.store(Arc::into_raw(idle.clone()).cast_mut(), Ordering::Relaxed); // Relaxed: own
    cpu.local.idle.set(idle);
    apic::start_timer(SLICE.load(Ordering::Relaxed)); // Relaxed: constant since boot
    cpu::unpin();
    msr::interrupts_enable();
}

/// Calls [`adopt`], and then runs threads for ever.
pub fn begin() -> ! {
    adopt();
    idle()
}

/// Looks for threads to run, for ever.
pub fn idle() -> ! {
    let cpu = cpu::this();
    loop {
        msr::interrupts_off();
        // Polls its own threads or others'; for others' threads only at each interrupt: CPUs that
        // poll all the time take the lock of the CPU that has threads from it.
        run_next();
        cpu.is_idle.store(true, Ordering::SeqCst); // SeqCst: then the look; partner of `wake`
        if cpu.local.length.load(Ordering::SeqCst) == 0 {
            // SeqCst: after that; partner of `put`
            msr::wait_for_interrupt();
        }
        cpu.is_idle.store(false, Ordering::Relaxed); // Relaxed: a hint from here on
        msr::interrupts_enable();
    }
}

/// The CPU with the longest queue except this one, as seen in one pass.
fn busiest(this: &Cpu) -> Option<&'static Cpu> {
    let length = |cpu: &Cpu| cpu.local.length.load(Ordering::Relaxed); // Relaxed: a hint
    let others = cpu::all().iter().filter(|cpu| !core::ptr::eq(*cpu, this) && length(cpu) > 0);
    others.max_by_key(|cpu| length(cpu))
}

/// Takes half of the longest queue, of the threads that may run here. Returns one of them.
fn steal(this: &Cpu) -> Option<Arc<Thread>> {
    let victim = busiest(this)?;
    let mut loot = None;
    let mut more = 0;
    while let Some(thread) = take_from(victim, this) {
        count(Event::Steals);
        if loot.is_none() {
            loot = Some(thread);
        } else {
            put(this, thread);
        }
        more += 1;
        if victim.local.length.load(Ordering::Relaxed) <= more {
            // Relaxed: a hint
            break;
        }
    }
    loot
}

fn take_from(victim: &Cpu, this: &Cpu) -> Option<Arc<Thread>> {
    let mut queue = victim.local.queue.lock();
    let place = queue.iter().position(|thread| {
        // Acquire: partner of `has_switched`: its stack is no longer in use. Relaxed: a setting.
        !thread.on_cpu.load(Ordering::Acquire)
            && thread.affinity.load(Ordering::Relaxed) & 1 << this.number() != 0
    })?;
    victim.local.length.store(queue.len() - 1, Ordering::SeqCst); // SeqCst: partner of `idle`
    queue.remove(place)
}

fn put(cpu: &Cpu, thread: Arc<Thread>) {
    let mut queue = cpu.local.queue.lock();
    queue.push_back(thread);
    cpu.local.length.store(queue.len(), Ordering::SeqCst); // SeqCst: partner of `idle`
}

/// A CPU on which the thread may run: its last one; or, if that is busy, an idle one.
fn choose(thread: &Thread) -> &'static Cpu {
    let allowed = thread.affinity.load(Ordering::Relaxed); // Relaxed: a setting
    let may = |cpu: &&Cpu| allowed & 1 << cpu.number() != 0;
    let is_idle = |cpu: &&Cpu| cpu.is_idle.load(Ordering::Relaxed); // Relaxed: a hint
    let last = cpu::by_number(thread.cpu.load(Ordering::Relaxed) as usize); // Relaxed: a hint
    if may(&last) && is_idle(&last) {
        return last;
    }
    let all = || cpu::all().iter().filter(may);
    let idle = all().find(is_idle);
    idle.or_else(|| may(&last).then_some(last)).or_else(|| all().next()).unwrap_or(last)
}

/// Makes a thread run that sleeps or has not run yet; returns whether it did so.
pub fn wake(thread: &Arc<Thread>) -> bool {
    // SeqCst: what woke it was written before; partner of `prepare_to_sleep`.
    let woken = thread.state.compare_exchange(
        state::SLEEPING,
        state::RUNNABLE,
        Ordering::SeqCst,
        Ordering::Relaxed,
    );
    if woken.is_err() {
        return false;
    }
    let pin = pin();
    let target = choose(thread);
    put(target, thread.clone());
    if core::ptr::eq(target, pin.cpu()) {
        // In an interrupt that has come while there was nothing to do.
        if is_idle_thread(target, cpu::current()) {
            target.is_due.store(true, Ordering::Relaxed); // Relaxed: the CPU's own
        }
    } else if target.is_idle.load(Ordering::SeqCst) {
        // SeqCst: after `put`; partner of `idle`
        count(Event::WakeInterrupts);
        target.interrupt(apic::RESCHEDULE);
    }
    true
}

fn is_idle_thread(cpu: &Cpu, thread: *const Thread) -> bool {
    cpu.local.idle.find().is_some_and(|idle| Arc::as_ptr(idle) == thread)
}

/// Announces that the running thread, which is pinned, will sleep. The order is: this call; then
/// the thread enters a list of threads to be woken; then it checks whether there is a reason not to
/// sleep; then it [sleeps](sleep) or [stays](stay).
///
/// If it entered the list first, another thread could take it off the list without waking it,
/// because it does not sleep yet. If there were still no reason to stay, it would then sleep on no
/// list, and no thread would wake it.
pub fn prepare_to_sleep(this: &Thread, hears_signals: bool) {
    this.hears_signals.store(hears_signals, Ordering::Relaxed); // Relaxed: before the next
    this.state.store(state::SLEEPING, Ordering::SeqCst); // SeqCst: then the look; partner of `wake`
}

/// Ends the announcement without a sleep; returns whether no thread has woken it meanwhile. If one
/// has, it must call [`sleep`], which returns immediately.
pub fn stay(this: &Thread) -> bool {
    this.state
        .compare_exchange(state::SLEEPING, state::RUNNING, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok() // Relaxed: the thread's own business
}

/// Others run until a thread wakes the thread.
pub fn sleep() {
    with_interrupts_off(|| {
        assert!(cpu::pins() == 1, "a thread that sleeps has the pin of its wait only");
        switch_pinned();
    });
}

/// Yields the CPU to a waiting thread, if there is one.
pub fn give_way() {
    with_interrupts_off(run_next);
}

/// Switches to another thread if that is due, unless the thread is pinned. Interrupts are off.
pub fn preempt_if_due() {
    // Relaxed: the CPU's own.
    while cpu::pins() == 0 && cpu::this().is_due.load(Ordering::Relaxed) {
        count(Event::Preemptions);
        run_next();
    }
}

fn run_next() {
    cpu::pin();
    switch_pinned();
    cpu::unpin();
}

/// Called when the CPUs that the thread may use have changed. If it runs on a CPU that it may not
/// use any more, moves it.
pub fn move_if_needed(thread: &Arc<Thread>) {
    // Relaxed, both: a setting, and a hint.
    let allowed = thread.affinity.load(Ordering::Relaxed);
    let is_here = core::ptr::eq(Arc::as_ptr(thread), cpu::current());
    while is_here && allowed & 1 << cpu::number() == 0 {
        give_way();
    }
}

/// Ends the running thread. What it owns must have been dropped.
pub fn end() -> ! {
    cpu::pin();
    msr::interrupts_off();
    thread::current().state.store(state::ENDED, Ordering::Relaxed); // Relaxed: its own
    switch_pinned();
    unreachable!("a thread runs that has ended")
}

/// Switches the CPU to the next thread; returns when this thread runs again. Interrupts are off.
/// The thread has one pin, which passes to the next one.
fn switch_pinned() {
    let cpu = cpu::this();
    cpu.is_due.store(false, Ordering::Relaxed); // Relaxed, all here: the CPU's own, or the thread's
    let this = cpu::current();
    let is_idle = is_idle_thread(cpu, this);
    // SAFETY: the CPU has a reference to the thread that it runs.
    let running = unsafe { &*this };
    let goes_on = running.state.load(Ordering::Relaxed) == state::RUNNING;
    if goes_on && !is_idle {
        running.state.store(state::RUNNABLE, Ordering::Relaxed);
        let allowed = running.affinity.load(Ordering::Relaxed);
        let home = if allowed & 1 << cpu.number() != 0 { cpu } else { choose(running) };
        put(home, thread::current_arc());
    }
    let next =
        next(cpu, this).or_else(|| steal(cpu)).unwrap_or_else(|| cpu.local.idle.get().clone());
    if Arc::as_ptr(&next) == this {
        running.state.store(state::RUNNING, Ordering::Relaxed);
        return;
    }
    next.state.store(state::RUNNING, Ordering::Relaxed);
    go_to(cpu, running, next);
    has_switched();
}

/// The first thread of the CPU's queue that no other CPU is about to leave. It must not wait for
/// such a thread: each of two CPUs could wait for the thread that the other one is leaving.
fn next(cpu: &Cpu, this: *const Thread) -> Option<Arc<Thread>> {
    let mut queue = cpu.local.queue.lock();
    let place = queue.iter().position(|thread| {
        // Acquire: partner of `has_switched`: its stack is no longer in use, nor its state.
        Arc::as_ptr(thread) == this || !thread.on_cpu.load(Ordering::Acquire)
    });
    let thread = place.and_then(|place| queue.remove(place));
    cpu.local.length.store(queue.len(), Ordering::SeqCst); // SeqCst: partner of `idle`
    thread
}

fn go_to(cpu: &Cpu, from: &Thread, to: Arc<Thread>) {
    count(Event::Switches);
    to.on_cpu.store(true, Ordering::Relaxed); // Relaxed, all: the CPU's own
    to.cpu.store(cpu.number() as u32, Ordering::Relaxed);
    cpu.kernel_stack.store(to.stack_top(), Ordering::Relaxed);
    // SAFETY: interrupts are off, so that this CPU has that number until the switch, below, to the
    // thread with this stack.
    unsafe { gdt::set_kernel_stack(cpu.number(), to.stack_top()) };
    user::switch(cpu, from.user.as_ref(), to.user.as_ref());
    cpu.local.previous.store(core::ptr::from_ref(from).cast_mut(), Ordering::Relaxed);
    let to = Arc::into_raw(to);
    cpu.current.store(to.cast_mut(), Ordering::Relaxed);
    // SAFETY: this thread is the running one; the other one is this CPU's since it was taken from
    // a queue, and no CPU is on its stack.
    unsafe { switch::switch(&from.stack_pointer, &(*to).stack_pointer) };
}

/// Called when the CPU has switched to another thread: from now on the earlier one may run
/// elsewhere, or may be freed.
pub fn has_switched() {
    let previous = cpu::this().local.previous.load(Ordering::Relaxed); // Relaxed: the CPU's own
    // SAFETY: `go_to` has put it there, and the CPU still has the reference of when it ran.
    let previous = unsafe { Arc::from_raw(previous.cast_const()) };
    // Release: partner of the Acquires in `next` and `take_from`: its stack is as it left it.
    previous.on_cpu.store(false, Ordering::Release);
}

/// A tick of the CPU's timer.
pub fn tick(frame: &Frame) {
    count(Event::Ticks);
    let cpu = cpu::this();
    if cpu.number() == 0 {
        crate::drive::uart::poll();
    }
    timer::expire();
    crate::watch::sampler::tick(frame);
    if cpu.local.length.load(Ordering::Relaxed) > 0 {
        // Relaxed: a hint
        cpu.is_due.store(true, Ordering::Relaxed); // Relaxed: the CPU's own
    }
}
