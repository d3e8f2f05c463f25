//! Starting: the user's choices, and whether this library really receives every call.

use crate::offload::Mechanism;
use manycore_interpose::bindings;
use manycore_interpose::counter;
use manycore_interpose::environment::environment;
use manycore_interpose::message::{self, refuse, say};
use manycore_stats::syscalls::Outcome;

use crate::table::OFFLOAD;
use crate::{counters, entry, real, settings, state, table, threads};

/// Exists once in a process, however often the library is loaded: the copy whose exports are in use
/// finds its own.
#[unsafe(no_mangle)]
pub static manycore_syscalls_copy: u8 = 0;

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

/// Calls that come before this are executed in place.
extern "C" fn constructor() {
    message::prepare();
    counter::prepare();
    real::find_all();
    real::find_jumps();
    if !bindings::is_first_copy(c"manycore_syscalls_copy", &manycore_syscalls_copy) {
        return;
    }
    let Some(text) = environment(c"MANYCORE_SYSCALLS") else {
        refuse(&[b"MANYCORE_SYSCALLS is not set: use `manycore run --syscalls POLICY -- CMD`"])
    };
    let choice = settings::parse(text.to_bytes());
    bindings::check(entry::EXPORTS);
    let directory = environment(c"MANYCORE_SYSCALLS_STATS");
    if choice.settings.mechanism == Mechanism::InPlace && directory.is_none() {
        // Neither moving nor counting is wanted, so no code needs descriptors.
        return state::end(Outcome::Off);
    }
    if let Some(directory) = directory {
        counters::open(directory, &choice.settings);
    }
    if !table::prepare(choice.files) {
        return say(&[b"no memory for a table of descriptors: calls are executed in place"]);
    }
    threads::prepare();
    OFFLOAD.start(&choice.settings);
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe { pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    if !state::start() {
        say(&[b"the kernel cannot tell forked children (MADV_WIPEONFORK): calls are executed in place"]);
    }
}

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> core::ffi::c_int;
}

/// Called after the program's own handlers, which were registered later, and so right before the
/// fork.
extern "C" fn before_fork() {
    OFFLOAD.before_fork();
}

extern "C" fn in_parent() {
    OFFLOAD.after_fork();
}

/// Called in the child of a fork before the program's own handlers, which were registered later. It
/// immediately closes descriptors that the parent's workers hold open. A child that was forked
/// without libc's knowledge does so at its first call.
extern "C" fn in_child() {
    state::forked();
}
