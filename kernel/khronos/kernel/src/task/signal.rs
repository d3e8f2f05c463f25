//! Signals.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use super::exit::end_process;
use super::process::{self, Process, Status};
use super::thread::Thread;
use super::user::{self, NO_MASK, User};
use super::{sched, sigframe};
use crate::arch::frame::Frame;
use crate::call::errno::{Errno, RESTART};
use crate::watch::counters::{Event, count};

/// Numbers that the kernel sends.
#[allow(missing_docs, reason = "Linux' names")]
mod numbers {
    pub const SIGINT: u32 = 2;
    pub const SIGILL: u32 = 4;
    pub const SIGTRAP: u32 = 5;
    pub const SIGFPE: u32 = 8;
    pub const SIGKILL: u32 = 9;
    pub const SIGSEGV: u32 = 11;
    pub const SIGPIPE: u32 = 13;
    pub const SIGALRM: u32 = 14;
    pub const SIGCHLD: u32 = 17;
    pub const SIGCONT: u32 = 18;
    pub const SIGSTOP: u32 = 19;
}
pub use numbers::*;

/// How many there are.
pub const MOST: u32 = 64;

/// The action of a signal, in the form of `rt_sigaction`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Action {
    /// 0 the default, 1 nothing, else a function.
    pub handler: u64,
    /// See [`sigframe`].
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: u64,
    /// Signals that are not taken meanwhile.
    pub mask: u64,
}

/// Flags of actions.
#[allow(missing_docs, reason = "Linux' names")]
pub mod action_flags {
    pub const NO_CHILD_WAIT: u64 = 2;
    pub const ON_STACK: u64 = 0x0800_0000;
    pub const RESTART: u64 = 0x1000_0000;
    pub const NO_DEFER: u64 = 0x4000_0000;
    pub const RESET: u64 = 0x8000_0000;
}

const DEFAULT: u64 = 0;
const IGNORE: u64 = 1;

/// Those of a process.
#[derive(Clone, Debug)]
pub struct Actions([Action; MOST as usize]);

impl Default for Actions {
    fn default() -> Self {
        Self([Action::default(); MOST as usize])
    }
}

impl Actions {
    /// That of a signal.
    pub fn of(&mut self, signal: u32) -> &mut Action {
        &mut self.0[signal as usize - 1]
    }

    /// Resets the actions for a new program: handlers are removed, ignored signals stay ignored.
    pub fn reset(&mut self) {
        for action in &mut self.0 {
            let handler = if action.handler == IGNORE { IGNORE } else { DEFAULT };
            *action = Action { handler, ..Action::default() };
        }
    }
}

/// The signal's bit in a set.
pub const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Those that nothing stops.
const ALWAYS: u64 = bit(SIGKILL) | bit(SIGSTOP);

/// Whether the default action is to do nothing. That also holds for the signals of job control,
/// which does not exist here: CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH.
fn is_ignored_by_default(signal: u32) -> bool {
    matches!(signal, SIGCHLD | SIGCONT | SIGSTOP | 20 | 21 | 22 | 23 | 28)
}

fn is_ignored(process: &Process, signal: u32) -> bool {
    match process.actions.lock().of(signal).handler {
        IGNORE => signal != SIGKILL,
        // The first process gets only signals for which it has a handler: it must not end.
        DEFAULT => process.number == 1 || is_ignored_by_default(signal),
        _ => false,
    }
}

/// Whether the process does not want to know how its children end.
pub fn ignores_children(process: &Process) -> bool {
    let action = *process.actions.lock().of(SIGCHLD);
    action.handler == IGNORE || action.flags & action_flags::NO_CHILD_WAIT != 0
}

/// Sends to a process. Interrupts may.
pub fn send(process: &Arc<Process>, signal: u32) {
    if is_ignored(process, signal) {
        return;
    }
    // SeqCst: before sleepers are woken; partner of the loads of `pending` before a thread sleeps.
    process.pending.fetch_or(bit(signal), Ordering::SeqCst);
    let threads = process.relations.lock().threads.clone();
    threads.iter().for_each(|thread| wake(thread, signal));
}

/// Sends to one thread.
pub fn send_to_thread(thread: &Arc<Thread>, signal: u32) {
    let Some(user) = &thread.user else { return };
    if signal != SIGKILL && is_ignored(&user.process, signal) {
        return;
    }
    user.pending.fetch_or(bit(signal), Ordering::SeqCst); // SeqCst: partner as in `send`
    wake(thread, signal);
}

fn wake(thread: &Arc<Thread>, signal: u32) {
    let Some(user) = &thread.user else { return };
    let is_masked = user.mask.load(Ordering::Relaxed) & bit(signal) & !ALWAYS != 0; // Relaxed: a setting
    // Relaxed: set before the state, which `wake` reads.
    if !is_masked && thread.hears_signals.load(Ordering::Relaxed) {
        sched::wake(thread);
    }
}

/// Sends to all processes of a group; returns their number.
pub fn send_to_group(group: u32, signal: u32) -> usize {
    let is_one = |process: &&Arc<Process>| process.group.load(Ordering::Relaxed) == group; // Relaxed: a setting
    let all = process::all();
    all.iter().filter(is_one).inspect(|process| send(process, signal)).count()
}

/// The running thread gets a signal.
pub fn raise(signal: u32) {
    if let Some(user) = user::current() {
        user.pending.fetch_or(bit(signal), Ordering::Relaxed); // Relaxed: the thread's own
    }
}

fn due(user: &User) -> u64 {
    // SeqCst: after the thread has said that it sleeps; partner of `send`.
    let pending = user.pending.load(Ordering::SeqCst) | user.process.pending.load(Ordering::SeqCst);
    pending & (!user.mask.load(Ordering::Relaxed) | ALWAYS) // Relaxed: the thread's own
}

/// Whether the running thread has a signal to take.
pub fn is_due() -> bool {
    user::current().is_some_and(|user| due(user) != 0)
}

/// Takes the first signal that is due.
fn take(user: &User) -> Option<u32> {
    let due = due(user);
    if due == 0 {
        return None;
    }
    // Those that end the thread first.
    let signal = if due & bit(SIGKILL) != 0 { SIGKILL } else { due.trailing_zeros() + 1 };
    // Relaxed: what was sent orders nothing but itself.
    let was_own = user.pending.fetch_and(!bit(signal), Ordering::Relaxed) & bit(signal) != 0;
    let was_common = !was_own
        && user.process.pending.fetch_and(!bit(signal), Ordering::Relaxed) & bit(signal) != 0; // as above
    (was_own || was_common).then_some(signal)
}

/// Does what the running thread's next signal asks for.
pub fn deliver(frame: &mut Frame) {
    let Some(user) = user::current() else { return };
    let Some(signal) = take(user) else { return };
    count(Event::Signals);
    let process = &user.process;
    let ending = *process.ending.lock();
    if let Some(status) = ending {
        end_process(status);
    }
    let mut actions = process.actions.lock();
    let action = *actions.of(signal);
    if action.flags & action_flags::RESET != 0 {
        *actions.of(signal) = Action::default();
    }
    drop(actions);
    match action.handler {
        _ if signal == SIGKILL => end_process(Status::killed(signal)),
        IGNORE => {}
        DEFAULT if is_ignored_by_default(signal) => {}
        DEFAULT => end_process(Status::killed(signal)),
        _ => {
            finish_call(frame, action.flags & action_flags::RESTART != 0);
            if sigframe::enter(frame, user, signal, &action).is_err() {
                end_process(Status::killed(SIGSEGV));
            }
        }
    }
}

/// Makes a call that a signal has ended restart or fail.
fn finish_call(frame: &mut Frame, begins_anew: bool) {
    const BY_CALL: u64 = 0x100;
    if frame.vector != BY_CALL || frame.rax != -i64::from(RESTART.0) as u64 {
        return;
    }
    if begins_anew {
        frame.rip -= 2;
        frame.rax = frame.error;
    } else {
        frame.rax = -i64::from(Errno::INTERRUPTED.0) as u64;
    }
}

/// Handles all due signals before the thread returns to user mode.
pub fn settle(frame: &mut Frame) {
    finish_call(frame, true);
    if let Some(user) = user::current() {
        let mask = user.mask_after.swap(NO_MASK, Ordering::Relaxed); // Relaxed, both: the thread's own
        if mask != NO_MASK {
            user.mask.store(mask, Ordering::Relaxed);
        }
    }
}

/// Sends the running program a signal for a fault. It gets the signal even if it ignores it.
pub fn fault(frame: &mut Frame, signal: u32, address: usize) {
    let Some(user) = user::current() else { panic!("a fault in user mode without a process") };
    let action = *user.process.actions.lock().of(signal);
    let is_masked = user.mask.load(Ordering::Relaxed) & bit(signal) != 0; // Relaxed: own
    crate::arch::msr::interrupts_enable();
    if is_masked || action.handler <= IGNORE {
        if crate::arch::boot::information().option("verbose").is_some() {
            crate::println!(
                "process {}: signal {signal}, address {address:#x}, instruction {:#x}",
                user.process.number,
                frame.rip
            );
        }
        end_process(Status::killed(signal));
    }
    if sigframe::enter_fault(frame, user, signal, &action, address as u64).is_err() {
        end_process(Status::killed(SIGSEGV));
    }
    crate::arch::msr::interrupts_off();
}
