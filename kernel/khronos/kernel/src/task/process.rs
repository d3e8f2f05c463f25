//! Processes: a space, files, and threads.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::signal::{self, Actions};
use super::thread::Thread;
use super::timer::{self, Target, Timer};
use super::user;
use manycore::sync::CachePadded;

use crate::mm::space::Space;
use crate::sync::order::Rank;
use crate::sync::sleep::Sleep;
use crate::sync::spin::IrqSpin;
use crate::sync::wait::WaitQueue;
use crate::vfs::table::Table;
use crate::vfs::tree::Held;

/// How a process has ended, as `wait` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// By itself.
    pub fn exited(code: u64) -> Self {
        Self((code as u32 & 0xff) << 8)
    }

    /// By a signal.
    pub fn killed(signal: u32) -> Self {
        Self(signal & 0x7f)
    }
}

/// Data that other processes may change, or for which they may wait. Interrupts do so as well.
pub struct Relations {
    /// Its parent.
    pub parent: Weak<Process>,
    /// Its children, including those that have ended and were not waited for.
    pub children: Vec<Arc<Process>>,
    /// Its threads.
    pub threads: Vec<Arc<Thread>>,
    /// How it has ended.
    pub status: Option<Status>,
}

/// A process. The fields that its threads write while they run have lines of their own, because all
/// threads read the other fields at each call.
pub struct Process {
    /// Its number: that of its first thread.
    pub number: u32,
    /// The group, to which the terminal sends signals.
    pub group: AtomicU32,
    /// The session.
    pub session: AtomicU32,
    space: CachePadded<IrqSpin<Option<Arc<Space>>>>,
    /// Its open files.
    pub files: Table,
    /// Where relative paths begin.
    pub directory: CachePadded<Sleep<Held>>,
    /// Bits that new files do not get.
    pub file_mask: AtomicU32,
    /// What signals do.
    pub actions: CachePadded<IrqSpin<Actions>>,
    /// Signals for any of its threads.
    pub pending: AtomicU64,
    /// See [`Relations`].
    pub relations: CachePadded<IrqSpin<Relations>>,
    /// Its children tell it here that they have ended.
    pub children_changed: WaitQueue,
    /// Whether its parent waits until it has a space of its own (`vfork`).
    pub borrows_space: AtomicBool,
    /// That has changed.
    pub space_given_back: WaitQueue,
    /// How it has to end. Its threads end when they see it.
    pub ending: IrqSpin<Option<Status>>,
    /// Threads that have not ended.
    pub live_threads: AtomicU32,
    /// The program's path, and its arguments, for `/proc`.
    pub program: Sleep<(Vec<u8>, Vec<u8>)>,
    /// The alarm, and its interval in nanoseconds.
    alarm: IrqSpin<(Option<Timer>, u64)>,
    /// Nanoseconds since boot when it began.
    pub began: u64,
}

static PROCESSES: IrqSpin<BTreeMap<u32, Arc<Process>>> = IrqSpin::new(Rank::Pids, BTreeMap::new());

impl Process {
    /// One without threads, the child of another.
    pub fn new(number: u32, parent: Option<&Arc<Process>>, space: Arc<Space>) -> Arc<Self> {
        let like = parent.map(|parent| &**parent);
        let setting = |of: fn(&Process) -> &AtomicU32, or: u32| {
            AtomicU32::new(like.map_or(or, |like| of(like).load(Ordering::Relaxed))) // Relaxed: a setting
        };
        let relations = Relations {
            parent: parent.map_or(Weak::new(), Arc::downgrade),
            children: Vec::new(),
            threads: Vec::new(),
            status: None,
        };
        let directory = like.map_or_else(Held::root, |like| like.directory.lock().again());
        let program = like.map_or_else(Default::default, |like| like.program.lock().clone());
        let actions = like.map_or_else(Actions::default, |like| like.actions.lock().clone());
        Arc::new(Self {
            number,
            group: setting(|like| &like.group, number),
            session: setting(|like| &like.session, number),
            space: CachePadded(IrqSpin::new(Rank::Signals, Some(space))),
            files: like.map_or_else(Table::new, |like| like.files.copy()),
            directory: CachePadded(Sleep::new(Rank::Directory, directory)),
            file_mask: setting(|like| &like.file_mask, 0o022),
            actions: CachePadded(IrqSpin::new(Rank::Signals, actions)),
            pending: AtomicU64::new(0),
            relations: CachePadded(IrqSpin::new(Rank::Signals, relations)),
            children_changed: WaitQueue::new(),
            borrows_space: AtomicBool::new(false),
            space_given_back: WaitQueue::new(),
            ending: IrqSpin::new(Rank::Signals, None),
            live_threads: AtomicU32::new(0),
            program: Sleep::new(Rank::Process, program),
            alarm: IrqSpin::new(Rank::Signals, (None, 0)),
            began: crate::arch::tsc::now(),
        })
    }

    /// Its space.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn space(&self) -> Arc<Space> {
        self.find_space().expect("a process that runs has a space")
    }

    /// Its space, unless it has ended.
    pub fn find_space(&self) -> Option<Arc<Space>> {
        self.space.lock().clone()
    }

    /// Replaces its address space by another one, or by none; returns the old one.
    pub fn set_space(&self, space: Option<Arc<Space>>) -> Option<Arc<Space>> {
        core::mem::replace(&mut *self.space.lock(), space)
    }

    /// Makes the process known by its number, and to its parent.
    pub fn publish(self: &Arc<Self>) {
        PROCESSES.lock().insert(self.number, self.clone());
        let parent = self.relations.lock().parent.upgrade();
        if let Some(parent) = parent {
            parent.relations.lock().children.push(self.clone());
        }
    }

    /// It is forgotten.
    pub fn withdraw(&self) {
        PROCESSES.lock().remove(&self.number);
    }

    /// It no longer uses its parent's space.
    pub fn give_space_back(&self) {
        // Release: partner of the Acquire in `fork`, whose thread goes on with the space.
        if self.borrows_space.swap(false, Ordering::Release) {
            self.space_given_back.wake_all();
        }
    }

    /// Sets the alarm, in nanoseconds since boot, and the interval after which it repeats; 0 for
    /// none. Returns the remaining time of the earlier alarm, and its interval.
    pub fn set_alarm(self: &Arc<Self>, deadline: u64, interval: u64) -> (u64, u64) {
        let timer = (deadline > 0).then(|| timer::set(deadline, Target::Alarm(self.clone())));
        let before = core::mem::replace(&mut *self.alarm.lock(), (timer, interval));
        if let (Some(timer), _) = before {
            timer::withdraw(timer);
        }
        let left = |timer: Timer| timer.0.saturating_sub(crate::arch::tsc::now());
        (before.0.map_or(0, left), before.1)
    }

    /// The remaining time of the alarm, and its interval, in nanoseconds.
    pub fn alarm(&self) -> (u64, u64) {
        let (timer, interval) = *self.alarm.lock();
        (timer.map_or(0, |timer| timer.0.saturating_sub(crate::arch::tsc::now())), interval)
    }

    /// The alarm's time has come.
    pub fn alarm_is_due(self: &Arc<Self>, now: u64) {
        let interval = self.alarm.lock().1;
        let next = (interval > 0).then(|| timer::set(now + interval, Target::Alarm(self.clone())));
        self.alarm.lock().0 = next;
        signal::send(self, signal::SIGALRM);
    }
}

/// The running process, if the thread is not one of the kernel's own.
pub fn current() -> Option<&'static Arc<Process>> {
    user::current().map(|user| &user.process)
}

/// The process with this number.
pub fn find(number: u32) -> Option<Arc<Process>> {
    PROCESSES.lock().get(&number).cloned()
}

/// All processes.
pub fn all() -> Vec<Arc<Process>> {
    PROCESSES.lock().values().cloned().collect()
}
