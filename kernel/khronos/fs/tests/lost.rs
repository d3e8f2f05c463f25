//! Everything made by contending threads is freed with the file system at the latest. This is the
//! only test of its program, because it counts allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use khronos_fs::{At, Cx, Errno, Fs, Open, Options, Rename, Sync};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed); // Relaxed, all here: numbers
        // SAFETY: the layout is not of size 0 (contract of this function).
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `System` has made the place with this layout, since `alloc` forwards to it.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Creates and removes files and directories under few names. Each new file gets a page.
fn step(cx: &mut Cx<'_>, random: &mut fastrand::Rng) -> Result<(), Errno> {
    let root = cx.fs().root();
    let mut path = || {
        format!("{}{}", ["", "", "a/", "b/"][random.usize(..4)], ["a", "b", "c"][random.usize(..3)])
    };
    let (from, to) = (path(), path());
    let [from, to] = [&from, &to].map(|path| At { directory: root, path: path.as_bytes() });
    match random.u32(..8) {
        0 | 1 => cx.mkdir(from, 0o755),
        2 => {
            let file = cx.open(from, Open::CREATE, 0o644)?;
            let written = cx.write(&file, 0, b"bytes").map(|_| ());
            cx.close(file);
            written
        }
        3 => cx.unlink(from),
        4 => cx.rmdir(from),
        5 => cx.link(from, to, false),
        _ => cx.rename(from, to, Rename::Replace),
    }
}

/// Bytes that are in use when all is over.
fn bytes_after(sync: Sync, records: bool) -> usize {
    let fs = Fs::new(Options { chains: 2, records, ..Options::new(sync) });
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let fs = &fs;
            scope.spawn(move || {
                let (mut cx, mut random) = (fs.context(), fastrand::Rng::with_seed(seed));
                for _ in 0..4_000 {
                    // Most fail: names are few.
                    let _ = step(&mut cx, &mut random);
                }
            });
        }
    });
    fs.context().check_all().unwrap_or_else(|error| panic!("{sync}: {error}"));
    drop(fs);
    BYTES.load(Ordering::Relaxed)
}

#[test]
fn nothing_is_lost() {
    for sync in Sync::ALL {
        for records in [false, true] {
            // What the library keeps for threads that come again.
            bytes_after(sync, records);
            let (before, after) = (bytes_after(sync, records), bytes_after(sync, records));
            // Less than the smallest inode with its page, or directory with its chains.
            assert!(after < before + 2048, "{sync}: {before} bytes, then {after}");
        }
    }
}
