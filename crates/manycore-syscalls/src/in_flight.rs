//! A call on its way, and the necessary data about the function that made it.

use core::ffi::c_int;

use crate::offload::{Answer, Call, Kind, PendingCall, Reason, Route};
use manycore_stats::syscalls::Function;

/// The properties of a function that are needed to move its calls.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Which one it is.
    pub function: Function,
    /// How long it may take at most, on a blocking descriptor without time-outs.
    pub kind: Kind,
    /// Whether threads can be cancelled in it.
    pub cancels: bool,
    /// Whether a result that is no error is a new descriptor.
    pub makes: bool,
    /// Whether it can wait after it has done a part of its work. After a handler that part is its
    /// result, and it is not restarted.
    pub in_parts: bool,
}

impl Shape {
    /// A function that returns at once.
    pub const fn quick(function: Function) -> Self {
        Self { function, kind: Kind::Quick, cancels: false, makes: false, in_parts: false }
    }

    /// A function that waits, and in which threads can be cancelled.
    pub const fn waits(function: Function) -> Self {
        Self { function, kind: Kind::Waits, cancels: true, makes: false, in_parts: false }
    }

    /// A function that waits and that no handler restarts, and in which threads can be cancelled.
    pub const fn timed(function: Function) -> Self {
        Self { function, kind: Kind::Timed, cancels: true, makes: false, in_parts: false }
    }

    /// A call in which threads cannot be cancelled.
    pub const fn uncancelled(mut self) -> Self {
        self.cancels = false;
        self
    }

    /// A call that can wait with a part done.
    pub const fn in_parts(self) -> Self {
        self.in_parts_if(true)
    }

    /// A call that can wait after a part is done, if it asks for everything.
    pub const fn in_parts_if(mut self, all: bool) -> Self {
        self.in_parts = all;
        self
    }

    /// A call that makes a descriptor.
    pub const fn makes(mut self) -> Self {
        self.makes = true;
        self
    }

    /// A call in which threads can be cancelled.
    pub const fn cancels(mut self) -> Self {
        self.cancels = true;
        self
    }

    /// The same, for a call that does not wait.
    pub const fn quick_if(mut self, quick: bool) -> Self {
        if quick {
            self.kind = Kind::Quick;
        }
        self
    }
}

/// A moved call, on the stack of its thread.
pub struct InFlight {
    /// What the mechanism knows of it.
    pub flight: PendingCall,
    /// The route that it is executed on.
    pub route: Route,
    /// The reference that is released if the thread leaves the call without returning from it.
    pub slot: Option<u32>,
    /// The call itself.
    pub call: Call,
    /// How long it may take, on its descriptor.
    pub kind: Kind,
    /// What is to be known of its function.
    pub shape: Shape,
    /// What became of it.
    pub result: Result<Answer, Reason>,
    /// The thread's type of cancellation outside of the call.
    pub cancel_type: c_int,
}
