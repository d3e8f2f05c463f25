//! Stacks and queues whose items are put in order when one is taken out: each value comes out once,
//! complete, and in order. A segment has two places here, so three items take two segments.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use manycore::clock::Counter;
use manycore::ldu::ordered::{Discipline, Handle, Newest, Oldest, Ordered};
use manycore::lock::Futex;

use crate::check;

/// A value that the checker watches: written before it is added, read after it came out.
struct Value(UnsafeCell<u32>);

// SAFETY: the model fails if two threads are at it.
unsafe impl Send for Value {}

type OrderedValues<D> = Ordered<Value, D, Counter, Futex>;

fn ordered<D: Discipline>() -> Arc<OrderedValues<D>> {
    Arc::new(OrderedValues::with_clock(Counter::default()))
}

fn value(value: Value) -> u32 {
    // SAFETY: the model fails if another thread writes meanwhile.
    value.0.with(|value| unsafe { *value })
}

fn push<D: Discipline>(handle: &mut Handle<'_, Value, D, Counter, Futex>, value: u32) {
    handle.push(Value(UnsafeCell::new(value)));
}

/// All that comes out.
fn rest<D: Discipline>(ordered: &OrderedValues<D>) -> impl Iterator<Item = u32> {
    std::iter::from_fn(|| ordered.pop().map(value))
}

/// From one segment to the next, and back.
#[test]
fn one_adds_and_one_takes() {
    check(3, || {
        let queue = ordered::<Oldest>();
        let adder = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut handle = queue.handle();
                (1..=3).for_each(|number| push(&mut handle, number));
            })
        };
        let mut all: Vec<_> = [queue.pop(), queue.pop()].into_iter().flatten().map(value).collect();
        adder.join().unwrap();
        all.extend(rest(&queue));
        assert_eq!(all, [1, 2, 3]);
        push(&mut queue.handle(), 4); // and the queue's end frees it
    });
}

/// An item is taken or taken back, in the second segment as in the first.
#[test]
fn taken_or_taken_back() {
    check(3, || {
        let queue = ordered::<Oldest>();
        let taker = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop().map(value))
        };
        let mut handle = queue.handle();
        (1..=3).for_each(|number| push(&mut handle, number));
        let own = [handle.take_back(), handle.take_back()].map(|item| item.map(value));
        push(&mut handle, 4);
        let others = taker.join().unwrap();
        let mut all: Vec<_> =
            [others].into_iter().chain(own).flatten().chain(rest(&queue)).collect();
        assert!(others.is_none_or(|number| number == 1));
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4]);
    });
}

/// One item is added to one run, and then another to another run, while two are removed. Checks the
/// results, according to whether the removals came before both additions.
fn two_add<D: Discipline + 'static>(judge: fn(meanwhile: &[u32], then: &[u32]) -> bool) {
    check(3, move || {
        let ordered = ordered::<D>();
        let adder = {
            let ordered = ordered.clone();
            thread::spawn(move || {
                let (mut one, mut other) = (ordered.handle(), ordered.handle());
                push(&mut one, 1);
                push(&mut other, 2);
            })
        };
        let meanwhile: Vec<_> =
            [ordered.pop(), ordered.pop()].into_iter().flatten().map(value).collect();
        adder.join().unwrap();
        let then: Vec<_> = rest(&ordered).collect();
        assert!(judge(&meanwhile, &then), "{meanwhile:?}, and then {then:?}");
    });
}

#[test]
fn two_add_to_a_queue() {
    two_add::<Oldest>(|meanwhile, then| [meanwhile, then].concat() == [1, 2]);
}

/// The second item may be added after the first one was removed.
#[test]
fn two_add_to_a_stack() {
    two_add::<Newest>(|meanwhile, then| {
        matches!((meanwhile, then), ([], [2, 1]) | ([2], [1]) | ([1], [2]) | ([_, _], []))
    });
}

/// The first thread's handle, and with it its run, passes to the second one.
#[test]
fn a_handle_changes_hands() {
    check(3, || {
        let queue = ordered::<Oldest>();
        let adders = [1, 2].map(|number| {
            let queue = queue.clone();
            thread::spawn(move || push(&mut queue.handle(), number))
        });
        let first = queue.pop().map(value);
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        let mut all: Vec<_> = first.into_iter().chain(rest(&queue)).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}
