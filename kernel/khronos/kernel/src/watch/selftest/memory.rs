//! Frames and the heap.

use alloc::vec;
use alloc::vec::Vec;

use super::{Test, on_all_cpus};
use crate::mm::frames::{self, Frame};

pub const TESTS: &[Test] = &[
    ("memory::pieces_are_apart", pieces_are_apart),
    ("memory::frames_come_back", frames_come_back),
    ("memory::references_are_counted", references_are_counted),
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
