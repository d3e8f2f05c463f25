//! Frames and the heap.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::{Test, in_threads, on_all_cpus};
use crate::arch::cpu;
use crate::mm::area::{PAGE, Protection, Source};
use crate::mm::frames::{self, Frame};
use crate::mm::space::Space;

pub const TESTS: &[Test] = &[
    ("memory::pieces_are_apart", pieces_are_apart),
    ("memory::frames_come_back", frames_come_back),
    ("memory::references_are_counted", references_are_counted),
    ("memory::threads_use_one_space", threads_use_one_space),
];

fn pieces_are_apart() {
    on_all_cpus(|number| {
        for round in 0..40 {
            let pieces: Vec<Vec<u8>> =
                (0..64).map(|piece| vec![number as u8; 1 + (piece * 97 + round) % 9_000]).collect();
            let are_ours = |piece: &Vec<u8>| piece.iter().all(|&byte| byte == number as u8);
            assert!(pieces.iter().all(are_ours), "two pieces of memory overlap");
        }
    });
}

fn frames_come_back() {
    let take_some = || drop((0..2_000).map(|_| Frame::zeroed()).collect::<Option<Vec<_>>>());
    take_some();
    let (before, _) = frames::free_and_total();
    (0..20).for_each(|_| take_some());
    let (after, _) = frames::free_and_total();
    // What other CPUs' lists have meanwhile is not free.
    assert!(before.abs_diff(after) < 2_000, "{before} frames were free, and {after} are");
}

fn references_are_counted() {
    let frame = Frame::zeroed().expect("memory");
    let other = frame.clone();
    assert!(!frame.is_only() && other.address() == frame.address());
    drop(other);
    assert!(frame.is_only());
    let copy = Frame::copy_of(&frame).expect("memory");
    assert!(copy.address() != frame.address() && copy.is_only());
}

const READS: Protection = Protection(Protection::READ);
const WRITES: Protection = Protection(Protection::READ | Protection::WRITE);

/// Maps a page, uses it, and unmaps it. Other threads do the same elsewhere in the same address
/// space.
fn use_page(space: &Space, page: u64) {
    let map = || space.map(page, PAGE, true, WRITES, Source::Zeros).map(|at| at == page);
    let (write, read) = (|| space.fault(page, true, false), || space.fault(page, false, false));
    assert!(!read() && space.protect(page, PAGE, READS).is_err(), "nothing is there");
    assert!(map() == Ok(true) && write(), "a page is mapped");
    assert!(space.protect(page, PAGE, READS).is_ok() && !write() && read(), "it is not written");
    assert!(map() == Ok(true) && read() && write(), "it is mapped again");
    assert!(space.discard(page, PAGE).is_ok() && write(), "its contents go, and it stays");
    assert!(space.unmap(page, PAGE).is_ok() && !read(), "a page is unmapped");
    assert!(space.unmap(page, PAGE).is_ok(), "what is not there is unmapped");
}

/// Some threads use blocks of their own, some share a block, and some use several blocks.
fn threads_use_one_space() {
    const BASE: u64 = 0x10_0000_0000;
    let space = Arc::new(Space::new().expect("memory"));
    let shared = space.clone();
    in_threads(
        2 * cpu::count().min(4),
        |_| u64::MAX,
        move |number| {
            for round in 0..60 {
                let number = number as u64;
                use_page(&shared, BASE + number * (64 << 10));
                use_page(&shared, BASE + (1 << 30) + number * PAGE);
                // Over the border of two blocks; its first page is written, and its last.
                let large = BASE + (2 << 30) + number * (3 << 20) + (round % 16) * PAGE;
                let bytes = 16 * PAGE;
                let last = large + bytes - PAGE;
                let mapped = shared.map(large, bytes, true, WRITES, Source::Zeros);
                assert!(mapped == Ok(large) && shared.fault(large, true, false), "pages");
                assert!(shared.fault(last, true, false) && shared.unmap(large, bytes).is_ok());
                assert!(!shared.fault(last, false, false), "pages that were unmapped");
            }
        },
    );
    assert!(space.sizes() == (0, 0), "pages are left in a space");
}
