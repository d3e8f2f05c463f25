//! The process' own domain, for which threads need no handle. Only in native programs, with the
//! standard library.

extern crate std;

use std::sync::OnceLock;
use std::thread_local;

use super::domain::Domain;
use super::handle::{Guard, Handle};

thread_local! {
    static HANDLE: Handle<'static> = domain().register();
}

/// The process' own domain, with the [default configuration](super::Config::default). It is never
/// dropped.
///
/// Structures whose garbage is to be reported or limited separately should have their own domain.
pub fn domain() -> &'static Domain {
    static DOMAIN: OnceLock<Domain> = OnceLock::new();
    DOMAIN.get_or_init(Domain::default)
}

/// Runs a function in a section of the process' own domain: objects that can be reached meanwhile
/// are not freed before the section ends. Sections may be nested.
///
/// A thread's first section registers the thread. When the thread ends, it is no longer registered,
/// and other threads free its garbage. A section costs one read of a thread-local variable more
/// than with a [`Handle`].
///
/// ```
/// use std::sync::atomic::{AtomicPtr, Ordering};
/// use manycore::reclaim;
///
/// let newest = AtomicPtr::new(Box::into_raw(Box::new(String::from("first"))));
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         reclaim::section(|_guard| {
///             // SAFETY: it was there during the section, and so is not dropped before that ends.
///             let text = unsafe { &*newest.load(Ordering::Acquire) };
///             assert!(["first", "second"].contains(&text.as_str()));
///         });
///     });
///     reclaim::section(|guard| {
///         let second = Box::into_raw(Box::new(String::from("second")));
///         let old = newest.swap(second, Ordering::AcqRel);
///         // SAFETY: from a box, and not reachable any more.
///         unsafe { guard.retire(old) };
///     });
/// });
/// # drop(unsafe { Box::from_raw(newest.into_inner()) });
/// ```
#[inline]
pub fn section<R>(section: impl FnOnce(&Guard) -> R) -> R {
    with_handle(|handle| {
        let guard = handle.pin();
        let result = section(&guard);
        drop(guard); // here, where a destructor that panics does not lose the result
        result
    })
}

/// Whether the calling thread is inside a section of the process' own domain: for assertions.
pub fn is_pinned() -> bool {
    with_handle(Handle::is_pinned)
}

/// Waits until every section of the process' own domain has ended that began before the call. Then
/// it frees what it can.
///
/// # Panics
///
/// If the calling thread is inside one itself: then it would wait for ever.
pub fn synchronize() {
    with_handle(Handle::synchronize_outside);
}

/// Calls `f` with the thread's handle. Where thread-local variables are gone already, it makes a
/// handle for this call.
#[inline]
fn with_handle<R>(f: impl FnOnce(&Handle<'static>) -> R) -> R {
    let mut f = Some(f);
    let mut run = |handle: &Handle<'static>| f.take().map(|f| f(handle));
    let done = HANDLE.try_with(&mut run).unwrap_or_else(|_| run(&domain().register()));
    done.expect("it runs once")
}
