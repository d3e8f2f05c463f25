//! Per-thread state that needs no libc, no allocation and no function at a thread's end.
//!
//! A thread finds its [`Local`] by initial-exec TLS: one load of an offset and one addition. Rust's
//! `thread_local!` would call `__tls_get_addr` from a shared library, and that can allocate.

use core::arch::{asm, global_asm};
use core::cell::Cell;

use syscalls::{Sysno, raw_syscall};

/// Each thread's private data. All zero in a new thread.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Local {
    /// The kernel's number of the thread, or 0 before the first [`id`].
    tid: Cell<u32>,
    /// Where it runs or ran, see [`cpu`](super::cpu).
    place: Cell<u32>,
    /// The store from which the thread takes nodes; null before the first.
    nodes: Cell<*mut ()>,
    /// A pointer to per-thread state of the program that embeds this library, null in a new thread.
    pub extension: Cell<*mut ()>,
    /// Words for the program that embeds this library, 0 in a new thread.
    pub words: Cell<[u64; 2]>,
    /// How often the thread may read `place` before that is out of date.
    looks: Cell<u32>,
    /// The kernel's number of the thread in this process, or 0 before the first [`kernel_id`].
    kernel_id: Cell<u32>,
    /// See [`noted`].
    noted: Cell<[usize; 2]>,
}

/// The symbol of the block. Its name contains the version, so that a program can link two versions
/// of this crate.
macro_rules! symbol {
    () => {
        concat!(
            "manycore_thread_local_",
            env!("CARGO_PKG_VERSION_MAJOR"),
            "_",
            env!("CARGO_PKG_VERSION_MINOR"),
            "_",
            env!("CARGO_PKG_VERSION_PATCH"),
        )
    };
}

// SAFETY: no code, only 64 zeroed bytes of thread-local storage, under a hidden name that only
// `local` uses.
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    concat!(".hidden ", symbol!()),
    concat!(".globl ", symbol!()),
    concat!(".type ", symbol!(), ",@object"),
    concat!(".size ", symbol!(), ",64"),
    ".p2align 6",
    concat!(symbol!(), ":"),
    ".zero 64",
    ".popsection",
);

impl Local {
    pub(super) fn nodes(&self) -> *mut () {
        self.nodes.get()
    }

    pub(super) fn set_nodes(&self, store: *mut ()) {
        self.nodes.set(store);
    }

    pub(super) fn place(&self) -> (u32, u32) {
        (self.place.get(), self.looks.get())
    }

    pub(super) fn set_place(&self, place: u32, looks: u32) {
        self.place.set(place);
        self.looks.set(looks);
    }
}

const _: () = assert!(size_of::<Local>() == 64, "the TLS block above has this size");

/// The calling thread's own block.
#[inline]
pub fn local() -> &'static Local {
    let block: *const Local;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the initial-exec sequence of the x86-64 ABI; yields the address of this thread's own,
    // zeroed block.
    unsafe {
        asm!(
            concat!("mov {0}, qword ptr [rip + ", symbol!(), "@GOTTPOFF]"),
            "add {0}, qword ptr fs:[0]",
            out(reg) block,
            options(pure, readonly, nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the initial-exec sequence of the AArch64 ABI; yields the address of this thread's
    // own, zeroed block.
    unsafe {
        asm!(
            concat!("adrp {0}, :gottprel:", symbol!()),
            concat!("ldr {0}, [{0}, :gottprel_lo12:", symbol!(), "]"),
            "mrs {1}, tpidr_el0",
            "add {0}, {0}, {1}",
            out(reg) block,
            out(reg) _,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: the block belongs to the calling thread and lives as long as the thread does; `Local`
    // is not `Sync`, so the reference cannot leave the thread.
    unsafe { &*block }
}

/// Two words in which the calling thread has noted its position in a lock's queue, 0 at its start.
#[inline]
pub fn noted() -> [usize; 2] {
    local().noted.get()
}

/// Notes them.
#[inline]
pub fn note(words: [usize; 2]) {
    local().noted.set(words);
}

/// The kernel's id of the calling thread.
#[inline]
pub fn id() -> u32 {
    match local().tid.get() {
        0 => ask_id(),
        tid => tid,
    }
}

#[cold]
fn ask_id() -> u32 {
    let tid = kernel_id();
    local().tid.set(tid);
    tid
}

/// The kernel's number of the calling thread. [`id`] is the number by which it owns locks. The two
/// differ in a child that was forked without the C library.
pub fn kernel_id() -> u32 {
    match local().kernel_id.get() {
        0 => {
            // SAFETY: `gettid` takes no arguments, and the call changes nothing in memory.
            let id = unsafe { raw_syscall!(Sysno::gettid) } as u32;
            local().kernel_id.set(id);
            id
        }
        id => id,
    }
}

/// Called by the C library in the child of a fork, for the thread that watches, which has a new
/// number there.
pub fn renumber() {
    local().tid.set(0);
    forget_kernel_id();
}

/// Called in the child of a fork, where the kernel's number of the thread is a new one.
pub(super) fn forget_kernel_id() {
    local().kernel_id.set(0);
}
