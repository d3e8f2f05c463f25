//! What a thread has in user mode.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::thread;
use crate::arch::cpu::Cpu;
use crate::arch::msr;
use crate::mm::space::Space;
use crate::mm::tables;
use crate::task::process::Process;

/// A thread's part of its process.
pub struct User {
    /// The process.
    pub process: Arc<Process>,
    number: u32,
    /// Signals that it does not take now.
    pub mask: AtomicU64,
    /// Signals for this thread.
    pub pending: AtomicU64,
    /// The mask that is restored after a call that has changed it for its duration; `u64::MAX` for
    /// none, which is no valid mask because it has SIGKILL.
    pub mask_after: AtomicU64,
    /// Where its thread-local storage is.
    pub fs_base: AtomicU64,
    /// Set to 0, and woken, when it ends.
    pub clear_when_over: AtomicU64,
    /// The stack for signals: where, and how large.
    pub signal_stack: [AtomicU64; 2],
    /// The row in which it notes its uses of the process' files.
    pub row: Option<usize>,
    /// The address space that it uses. The process has the reference.
    space: AtomicPtr<Space>,
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(row) = self.row {
            self.process.files.users().part(row);
        }
    }
}

/// No mask: it has SIGKILL in it.
pub const NO_MASK: u64 = u64::MAX;

impl User {
    /// Creates a thread of the process with this number, and with the settings of another thread.
    pub fn new(process: Arc<Process>, number: u32, like: Option<&User>) -> Self {
        let mask = like.map_or(0, |like| like.mask.load(Ordering::Relaxed)); // Relaxed: own
        let fs_base = like.map_or(0, |like| like.fs_base.load(Ordering::Relaxed)); // Relaxed: own
        let space = Arc::as_ptr(&process.space()).cast_mut();
        let row = process.files.users().join();
        Self {
            row,
            process,
            number,
            mask: AtomicU64::new(mask),
            pending: AtomicU64::new(0),
            mask_after: AtomicU64::new(NO_MASK),
            fs_base: AtomicU64::new(fs_base),
            clear_when_over: AtomicU64::new(0),
            signal_stack: [const { AtomicU64::new(0) }; 2],
            space: AtomicPtr::new(space),
        }
    }

    /// The thread's number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Switches the running thread to its process' present address space; or to none, if the thread
    /// ends.
    pub fn change_space(&self, to: Option<&Arc<Space>>) {
        let pin = crate::sync::pin::pin();
        crate::sync::pin::with_interrupts_off(|| {
            leave(pin.cpu(), self);
            let to = to.map_or(core::ptr::null_mut(), |space| Arc::as_ptr(space).cast_mut());
            self.space.store(to, Ordering::Relaxed); // Relaxed, here and below: the thread's own
            enter(pin.cpu(), self);
        });
    }

    /// Sets where its thread-local storage is.
    pub fn set_fs_base(&self, address: u64) {
        let _pin = crate::sync::pin::pin();
        self.fs_base.store(address, Ordering::Relaxed); // Relaxed: the thread's own
        // SAFETY: the kernel keeps its own data by GS and never uses FS, so that any address may be
        // there.
        unsafe { msr::write(msr::FS_BASE, address) };
    }

    /// The space that it uses.
    pub fn space(&self) -> Option<&Space> {
        let space = self.space.load(Ordering::Relaxed); // Relaxed: the thread's own
        // SAFETY: the thread's process has a reference to it until the thread has left it.
        unsafe { space.as_ref() }
    }
}

/// The running thread's data, if it is not one of the kernel's own.
pub fn current() -> Option<&'static User> {
    thread::current().user.as_ref()
}

fn bit(cpu: &Cpu) -> u64 {
    1 << cpu.number()
}

fn leave(cpu: &Cpu, user: &User) {
    if let Some(space) = user.space() {
        // SAFETY: these are the kernel's own tables, which map all of it.
        unsafe { msr::set_page_tables(tables::kernel()) };
        // SeqCst: after the tables are loaded; partner of `Space::forget`, which then leaves this
        // CPU out.
        space.cpus.fetch_and(!bit(cpu), Ordering::SeqCst);
    }
}

fn enter(cpu: &Cpu, user: &User) {
    if let Some(space) = user.space() {
        // SeqCst: before the tables are loaded; partner of `Space::forget`, which has changed them
        // before it reads this.
        space.cpus.fetch_or(bit(cpu), Ordering::SeqCst);
        // SAFETY: each space's upper half is the kernel's, so that its tables map all of it.
        unsafe { msr::set_page_tables(space.root()) };
    }
}

/// Switches the CPU from one thread to another. Interrupts are off.
pub fn switch(cpu: &Cpu, from: Option<&User>, to: Option<&User>) {
    // Relaxed: of threads that are this CPU's now.
    let space = |user: &User| user.space.load(Ordering::Relaxed);
    let is_same = from.zip(to).is_some_and(|(from, to)| space(from) == space(to));
    if !is_same {
        from.inspect(|from| leave(cpu, from));
        to.inspect(|to| enter(cpu, to));
    }
    if let Some(to) = to {
        // SAFETY: the kernel keeps its own data by GS and never uses FS. Relaxed: the thread is
        // this CPU's now.
        unsafe { msr::write(msr::FS_BASE, to.fs_base.load(Ordering::Relaxed)) };
    }
}
