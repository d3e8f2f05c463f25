//! What a thread, and the child of a fork, have to be told of.
//!
//! A thread that uses the library for the first time makes two arrangements: its exit ends a session that is still open, and in a
//! child that it forks, the thread there learns that it is another one. Whether that was done is noted in the thread's own block.

use std::cell::RefCell;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use manycore::sync::thread;

use crate::{rcu, rlu};

/// To be called by a thread before it does something whose end it may not see.
#[inline]
pub fn prepare_thread() {
    holder();
}

/// The number of the calling thread among those of the process, from 1 on: who holds a lock. Unlike its id it is the same in a child that it
/// forks, which has the locks that it held.
#[inline]
pub fn holder() -> u32 {
    // In the first of the thread's two words.
    match thread::local().words.get()[0] {
        0 => prepare(),
        number => number as u32,
    }
}

#[cold]
fn prepare() -> u32 {
    static BEFORE: AtomicU32 = AtomicU32::new(0);
    static FORKS: Once = Once::new();
    FORKS.call_once(|| {
        // SAFETY: the handler is a function of this library, which is not unloaded: threads have
        // destructors in it.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    // Has its destructor run when the thread ends; if that has been, there is nothing that could be arranged for.
    _ = EXIT.try_with(|_| ());
    // Relaxed: only for a number of its own. After four thousand million threads they begin again.
    let number = BEFORE.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
    let words = &thread::local().words;
    words.set([number.into(), words.get()[1]]);
    number
}

/// In the child of a fork. The parent's domains are not the child's, which is not to wait for threads that it does not have.
///
/// # Safety
///
/// The calling thread is the child's only one, as pthreads has it for such handlers.
unsafe extern "C" fn in_child() {
    thread::forked();
    rlu::forked();
    _ = EXIT.try_with(|exit| exit.0.take());
}

thread_local! {
    static EXIT: Exit = const { Exit(RefCell::new(Vec::new())) };
}

/// The thread's registrations for RCU. Dropped when it ends, by whatever means but the end of the process.
struct Exit(RefCell<Vec<*mut rcu::Thread>>);

impl Drop for Exit {
    fn drop(&mut self) {
        rlu::thread_ends();
        // SAFETY: they are this thread's, and on its list until they are unregistered.
        unsafe { rcu::Thread::end_with_thread(self.0.take()) };
    }
}

/// The registration ends with the calling thread, if not before.
pub fn at_exit(thread: *mut rcu::Thread) {
    prepare_thread();
    _ = EXIT.try_with(|exit| exit.0.borrow_mut().push(thread));
}

/// The registration ends now.
pub fn not_at_exit(thread: *mut rcu::Thread) {
    _ = EXIT.try_with(|exit| exit.0.borrow_mut().retain(|other| *other != thread));
}
