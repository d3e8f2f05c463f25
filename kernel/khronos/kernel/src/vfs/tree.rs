//! The tree of names: khronos-fs, whose mechanism the boot line chooses by `sync=`.

use core::ops::Deref;

use khronos_fs::{Cx, Fs, Inode, InodeHandle, Options, Sync};

use crate::arch::boot;
use crate::call::time;
use crate::sync::once::Once;
use crate::sync::percpu::PerCpu;
use crate::vfs::durable;

static FS: Once<Fs> = Once::new();
static CONTEXTS: PerCpu<Cx<'static>> = PerCpu::new();
/// The clock for the times of inodes advances once in this many nanoseconds.
const TICK_NS: u64 = 10_000_000;

/// Makes the tree, empty.
///
/// # Panics
///
/// If the boot line names no mechanism.
pub fn start() {
    let sync = match boot::information().option("sync") {
        None => Sync::MvRlu,
        Some(name) => match name.parse() {
            Ok(sync) => sync,
            Err(unknown) => panic!("sync={name}: {unknown}"),
        },
    };
    let records = boot::information().option("disk").is_some();
    FS.set(Fs::new(Options { records, ..Options::new(sync) }));
}

/// The file system.
pub fn fs() -> &'static Fs {
    FS.get()
}

/// Calls `f` with the CPU's access to it. Nothing in it may sleep.
pub fn with<R>(f: impl FnOnce(&mut Cx<'static>) -> R) -> R {
    CONTEXTS.with(
        || fs().context(),
        |cx| {
            let now = time::wall_ns();
            cx.set_time(now - now % TICK_NS);
            let result = f(cx);
            durable::has_noted(cx.noted());
            result
        },
    )
}

/// A held inode. It is released when this is dropped.
#[derive(Debug)]
pub struct Held(Option<InodeHandle<'static>>);

impl Held {
    /// Takes over a reference.
    pub fn new(node: InodeHandle<'static>) -> Self {
        Self(Some(node))
    }

    /// The root.
    ///
    /// # Panics
    ///
    /// Never: the root is there.
    pub fn root() -> Self {
        Self::new(with(|cx| cx.hold(fs().root())).expect("the root is there"))
    }

    /// One more reference to the same.
    ///
    /// # Panics
    ///
    /// Never: a reference is held.
    pub fn again(&self) -> Self {
        Self::new(with(|cx| cx.hold(self)).expect("it is held"))
    }
}

impl Deref for Held {
    type Target = Inode;

    fn deref(&self) -> &Inode {
        self.0.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(node) = self.0.take() {
            with(|cx| cx.close(node));
        }
    }
}
