//! Panics in work that a thread does for another, carried back to the other thread.

#[cfg(all(feature = "std", not(any(loom, feature = "sim"))))]
pub(crate) use backend::is_panicking;
pub(crate) use backend::{Payload, catch, resume};

/// With the standard library they are caught.
#[cfg(any(feature = "std", feature = "sim"))]
mod backend {
    extern crate std;

    use core::any::Any;
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    /// The payload of a panic.
    pub(crate) type Payload = Box<dyn Any + Send>;

    /// Runs a function; returns whether it panicked. The function is responsible for state that it
    /// leaves half changed.
    pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
        catch_unwind(AssertUnwindSafe(f)).map_err(unless_simulation_failed)
    }

    /// A simulation that has failed unwinds all its threads, which then do no work for each other.
    #[cold]
    fn unless_simulation_failed(payload: Payload) -> Payload {
        #[cfg(feature = "sim")]
        if !manycore_sim::backend::is_simulating() {
            resume(payload);
        }
        payload
    }

    /// Goes on with a panic that was caught.
    pub(crate) fn resume(payload: Payload) -> ! {
        resume_unwind(payload)
    }

    /// Whether the thread is unwinding already.
    #[cfg(not(any(loom, feature = "sim")))]
    pub(crate) fn is_panicking() -> bool {
        std::thread::panicking()
    }
}

/// Without it they cannot be, and none may get past the thread that does the work.
#[cfg(not(any(feature = "std", feature = "sim")))]
mod backend {
    /// No thread has one.
    pub(crate) enum Payload {}

    struct Abort;

    impl Drop for Abort {
        fn drop(&mut self) {
            panic!("a panic in another thread's section, without the feature `std` to catch it"); // the second one: aborts
        }
    }

    /// Does something; a panic aborts the program.
    pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
        let abort = Abort;
        let result = f();
        core::mem::forget(abort);
        Ok(result)
    }

    /// Never called.
    pub(crate) fn resume(payload: Payload) -> ! {
        match payload {}
    }
}
