//! Runs a simulation to its end, and cleans up after one that failed.

use std::any::Any;
use std::backtrace::Backtrace;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::NonNull;
use std::sync::Once;

use corosensei::{CoroutineResult, Yielder};

use super::account::{Phase, Times};
use super::events::{Id, Key};
use super::reads::Reads;
use super::thread::{Body, Thread};
use super::{Cause, Choice, ENGINE, Engine, Handle, Pending, Policy, State, ThreadId};
use crate::arena::global::{host, simulated};
use crate::machine::Cycles;

/// The most stacks that are kept of a simulation that got stuck: reading them takes long.
const STACKS_MAX: usize = 16;

/// The payload of the panic that unwinds the stack of a removed thread.
pub(crate) struct Killed;

/// Adds a simulated thread that is ready at the caller's time. If the caller is simulated, it
/// continues to run.
///
/// # Safety
///
/// The body's borrows outlive the thread, which ends with the simulation at the latest.
pub(crate) unsafe fn spawn<'a>(
    handle: Handle,
    body: impl FnOnce() + 'a,
    cpu: u32,
    pinned: bool,
) -> ThreadId {
    let id = handle.get().threads.len() as ThreadId;
    let body: Box<dyn FnOnce() + 'a> = Box::new(body);
    // SAFETY: the body's borrows outlive the thread (contract of this function), which drops the
    // body at its end.
    let body = unsafe { mem::transmute::<Box<dyn FnOnce() + 'a>, Box<dyn FnOnce()>>(body) };
    let body = move |yielder: &Yielder<(), ()>, ()| {
        handle.get().threads[id as usize].yielder = yielder;
        if let Err(panic) = panic::catch_unwind(AssertUnwindSafe(body)) {
            host(|| handle.get().panicked(id, &*panic));
        }
    };
    let stack = host(|| handle.get().lease.stack(id as usize));
    let body = Body::with_stack(stack, body);
    host(|| handle.get().add_thread(Box::new(body), cpu, pinned));
    id
}

/// Runs the simulation from its first thread until all threads have ended, or until it has failed.
pub(crate) fn run(engine: &mut Engine, main: impl FnOnce()) {
    print_panics_as_the_host();
    let handle = Handle(NonNull::from(engine));
    let first = handle.get().placement[0];
    // SAFETY: the body borrows from the caller's frame, and is gone when this returns.
    unsafe { spawn(handle, main, first, false) };
    // For speed, allocations in here are simulated by default; code of the engine that may allocate
    // runs as the host's.
    simulated(handle.heap(), || {
        while handle.get().failure.is_none() {
            match handle.get().step() {
                Step::Resume(thread) => resume(handle, thread),
                Step::Settled => {}
                Step::End => break,
            }
        }
        if handle.get().failure.is_some() {
            clear_away(handle);
        }
    });
    detach();
}

/// The next action for an event.
enum Step {
    /// This thread continues.
    Resume(ThreadId),
    /// The event is done.
    Settled,
    /// There is no event left.
    End,
}

fn resume(handle: Handle, thread: ThreadId) {
    let body = handle.get().threads[thread as usize].body.as_deref_mut();
    let body = std::ptr::from_mut(body.expect("it has not ended"));
    ENGINE.set(handle.0.as_ptr());
    // SAFETY: the body is in a box that stays until the thread has ended, and only this function
    // uses it. A reference to it does not outlive the call, during which the thread's own code
    // cannot reach it.
    let result = unsafe { (*body).resume(()) };
    if let CoroutineResult::Return(()) = result {
        host(|| handle.get().finished(thread));
    }
}

/// From here on, actions of this host thread are not part of a simulation.
pub(super) fn detach() {
    ENGINE.set(std::ptr::null_mut());
}

/// A simulated thread continues.
pub(super) fn resumed() {
    let handle = Handle::current().expect("only the engine resumes a thread");
    let engine = handle.get();
    if engine.killing {
        if engine.keeps_stacks() {
            let stack = host(|| Box::new(Backtrace::force_capture()));
            engine.threads[engine.current as usize].stack = Some(stack);
        }
        detach();
        panic::resume_unwind(Box::new(Killed));
    }
}

/// Unwinds the stacks of all threads that have not ended, the youngest first, because it may borrow
/// from older ones.
fn clear_away(handle: Handle) {
    handle.get().killing = true;
    host(|| handle.get().describe_threads());
    for thread in (0..handle.get().threads.len() as ThreadId).rev() {
        let engine = handle.get();
        let t = &mut engine.threads[thread as usize];
        if t.yielder.is_null() {
            // The thread has not begun.
            drop(engine.threads[thread as usize].body.take());
        } else if t.body.is_some() {
            engine.current = thread;
            engine.cpu = t.cpu;
            resume(handle, thread);
        }
    }
}

/// Makes the message of a panic in simulated code the host's, together with the caches that
/// printing it fills.
fn print_panics_as_the_host() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| host(|| print(panic))));
    });
}

impl Engine {
    fn add_thread(&mut self, body: Box<Body>, cpu: u32, pinned: bool) {
        let id = self.threads.len() as ThreadId;
        let now = if id == 0 { 0 } else { self.clock() };
        let mut stalls = self.stalls.iter().filter(|stall| stall.thread == id);
        self.threads.push(Thread {
            // As if the thread had been woken.
            state: State::Asleep(super::Why::Sleep),
            cpu,
            pinned,
            phase: Phase::default(),
            times: Times::default(),
            since: now,
            started: now,
            finished: 0,
            accesses: 0,
            pending: Pending::Nothing,
            safe_at: 0,
            last_load: None,
            guessed_wrong: false,
            stall: stalls.next().map(|stall| (stall.access, stall.cycles)),
            reads: Reads::default(),
            footprint: None,
            timed_out: false,
            words: [0; 2],
            joiners: Vec::new(),
            body: Some(body),
            yielder: std::ptr::null(),
            stack: None,
        });
        self.unfinished += 1;
        self.events.grow(self.cpus.len() + self.threads.len());
        self.watchers.grow(self.threads.len());
        self.make_ready(id, now);
    }

    /// Takes the next event.
    #[inline]
    fn step(&mut self) -> Step {
        let key = self.events.first();
        match self.plainly(key) {
            Some(thread) => self.let_run(key.id(), thread, self.events.second()),
            None => host(|| self.take_event()),
        }
    }

    /// If an event only lets a running thread continue, which is nearly always so, returns that
    /// thread.
    #[inline]
    fn plainly(&self, key: Key) -> Option<ThreadId> {
        let thread = self.cpus.get(key.id() as usize)?.current?;
        let in_patience = key.time() <= self.progress.saturating_add(self.patience);
        let runs = self.threads[thread as usize].state == State::Running;
        (runs && in_patience && !self.policy.explores()).then_some(thread)
    }

    fn take_event(&mut self) -> Step {
        let Some((time, id)) = self.next_event() else {
            if self.unfinished > 0 {
                self.failure = Some(Cause::Deadlock);
            }
            return Step::End;
        };
        if time > self.progress.saturating_add(self.patience) || self.steps_left == 0 {
            self.failure = Some(Cause::Livelock);
            return Step::End;
        }
        let Some(timer) = id.checked_sub(self.cpus.len() as u32) else {
            return self.go_on(id, time);
        };
        self.progress = self.progress.max(time);
        self.events.remove(id);
        self.time_out(timer, time);
        Step::Settled
    }

    fn next_event(&mut self) -> Option<(Cycles, Id)> {
        let Policy::Explored(explored) = &mut self.policy else {
            let first = self.events.first();
            return (first != Key::NEVER).then(|| (first.time(), first.id()));
        };
        if self.events.first() == Key::NEVER {
            return None;
        }
        self.steps_left -= 1;
        let cpus = self.cpus.len() as u32;
        let choices = self.events.all().iter().map(|key| match key.id().checked_sub(cpus) {
            Some(thread) => Choice { thread, timer: true },
            None => {
                let thread = self.cpus[key.id() as usize].current.expect("a CPU with an event");
                let parked = self.threads[thread as usize].state == State::Parked;
                Choice { thread, timer: parked }
            }
        });
        let chosen = explored.choose(choices);
        let thread = &self.threads[chosen.thread as usize];
        let asleep = matches!(thread.state, State::Asleep(_));
        let id = if asleep { cpus + chosen.thread } else { thread.cpu };
        let time = self.events.time_of(id).expect("a choice is an event");
        Some((time.max(self.latest), id))
    }

    /// Handles the event of the earliest CPU.
    fn go_on(&mut self, cpu: u32, time: Cycles) -> Step {
        let thread = self.cpus[cpu as usize].current.expect("a CPU with an event has a thread");
        let t = &self.threads[thread as usize];
        if t.state == State::Parked {
            if t.reads.limit.is_some_and(|limit| limit <= time) {
                self.unpark(thread, time);
            } else {
                self.preempt_parked(cpu, time);
            }
            return Step::Settled;
        }
        if self.policy.explores() {
            let clock = &mut self.cpus[cpu as usize].clock;
            *clock = time.max(*clock);
            self.latest = *clock;
            self.let_run(cpu, thread, Key::NEVER)
        } else {
            self.let_run(cpu, thread, self.events.second())
        }
    }

    /// Continues a thread: first its access, and then its code, until the horizon.
    #[inline]
    fn let_run(&mut self, cpu: u32, thread: ThreadId, horizon: Key) -> Step {
        self.cpu = cpu;
        self.current = thread;
        self.horizon = horizon;
        self.allocate_for(cpu);
        if self.advance() { Step::Resume(thread) } else { Step::Settled }
    }

    fn finished(&mut self, thread: ThreadId) {
        self.unfinished -= 1;
        self.threads[thread as usize].body = None;
        if self.killing || self.failure.is_some() {
            return;
        }
        self.note_progress();
        let now = self.clock();
        self.threads[thread as usize].finished = now;
        for joiner in std::mem::take(&mut self.threads[thread as usize].joiners) {
            self.make_ready(joiner, now);
        }
        self.leave(State::Finished);
    }

    fn panicked(&mut self, thread: ThreadId, panic: &(dyn Any + Send)) {
        if panic.is::<Killed>() || self.failure.is_some() {
            return;
        }
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        let message = message.unwrap_or_else(|| "a panic without a message".to_owned());
        self.failure = Some(Cause::Panic { thread, message });
    }

    /// Whether the stack of one more thread is to be kept.
    fn keeps_stacks(&self) -> bool {
        let kept = self.threads.iter().filter(|thread| thread.stack.is_some()).count();
        matches!(self.failure, Some(Cause::Deadlock | Cause::Livelock)) && kept < STACKS_MAX
    }
}
