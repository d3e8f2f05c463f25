//! The queue from which everything is taken at once: each value comes out once, in its thread's
//! order, and complete.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use manycore::collections::queue::TakeAll;

use crate::check;

/// A value that the checker watches: written before the push, read after the take.
struct Value(UnsafeCell<u32>);

// SAFETY: the model fails if two threads are at it.
unsafe impl Send for Value {}

/// Appends what the queue has.
fn take(queue: &TakeAll<Value>, to: &mut Vec<u32>) {
    // SAFETY: the model fails if another thread writes meanwhile.
    to.extend(queue.take().map(|value| value.0.with(|value| unsafe { *value })));
}

#[test]
fn two_push_and_one_takes() {
    check(3, || {
        let queue = Arc::new(TakeAll::new());
        let pushers = [0, 10].map(|first| {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.push(Value(UnsafeCell::new(first)));
                queue.push(Value(UnsafeCell::new(first + 1)));
            })
        });
        let mut taken = Vec::new();
        take(&queue, &mut taken);
        take(&queue, &mut taken);
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        take(&queue, &mut taken);
        for first in [0, 10] {
            let own: Vec<_> = taken.iter().filter(|value| **value / 10 == first / 10).collect();
            assert_eq!(own, [&first, &(first + 1)]);
        }
        queue.push(Value(UnsafeCell::new(20))); // and the queue's end frees it
    });
}
