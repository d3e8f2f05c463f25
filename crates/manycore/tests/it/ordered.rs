//! Stacks and queues whose items are put in order when one is taken out, on real CPUs: against
//! their specification and the standard library's, with more threads than CPUs, and threads that
//! end early.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use manycore::clock::{Clock, Counter, Ordo, RelaxedClock};
use manycore::collections::queue::OrderedQueue;
use manycore::collections::stack::OrderedStack;
use manycore::ldu::ordered::{Discipline, Newest, Oldest, Ordered};
use manycore::lock::{Adaptive, Mcs};
use manycore::sync::hint;
use manycore_history::run::{self, Mix, Native, unless_interpreted};
use manycore_history::specification::{End, First, Last, SequenceOperation};
use proptest::prelude::*;

/// Many short runs, since the checker judges a history as a whole.
fn is_linearizable<E: End, D: Discipline, C: Clock>(clock: impl Fn() -> C) {
    for seed in 0..unless_interpreted(200, 2) {
        let mix = Mix {
            operations: unless_interpreted(50, 6),
            inserts: 50,
            removes: 40,
            seed,
            ..Mix::native(4)
        };
        let ordered = Ordered::<u64, D, C, Adaptive>::with_clock(clock());
        let removals =
            &[SequenceOperation::Pop, SequenceOperation::PopSome, SequenceOperation::TakeBack];
        run::check_sequence::<E, _>(Native, &mix, removals, || {
            let (ordered, mut handle) = (&ordered, ordered.handle());
            move |operation| {
                let result = match operation {
                    SequenceOperation::Push(value) => {
                        handle.push(value);
                        None
                    }
                    SequenceOperation::TakeBack => handle.take_back(),
                    SequenceOperation::PopSome => {
                        let mut popped = Vec::new();
                        ordered.pop_into(2, &mut popped);
                        return popped;
                    }
                    _ => ordered.pop(),
                };
                result.into_iter().collect()
            }
        });
    }
}

#[test]
fn queue_is_linearizable() {
    is_linearizable::<First, Oldest, _>(Ordo::measured);
    is_linearizable::<First, Oldest, _>(Counter::default);
}

#[test]
fn stack_is_linearizable() {
    is_linearizable::<Last, Newest, _>(Ordo::measured);
    is_linearizable::<Last, Newest, _>(Counter::default);
}

/// The operations, each with one of three handles.
#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    TakeBack(usize),
    Pop,
    PopInto(usize),
    /// From now on this is another handle, of some run without a handle.
    Renew(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..3_usize).prop_map(Step::Push),
        2 => (0..3_usize).prop_map(Step::TakeBack),
        3 => Just(Step::Pop),
        1 => (0..400_usize).prop_map(Step::PopInto),
        1 => (0..3_usize).prop_map(Step::Renew),
    ];
    prop::collection::vec(step, 0..unless_interpreted(1500, 150))
}

/// Runs the steps with one thread. `pop` returns the model's result. Whether an item can be taken
/// back is only known by trying; if so, it must be the handle's last one.
fn agrees<D: Discipline>(steps: Vec<Step>, pop: fn(&mut VecDeque<usize>) -> Option<usize>) {
    let ordered = Ordered::<usize, D, Counter, Mcs>::with_clock(Counter::default());
    let mut handles = [0, 1, 2].map(|_| Some(ordered.handle()));
    let (mut model, mut own) = (VecDeque::new(), [const { Vec::new() }; 3]);
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Push(by) => {
                handles[by].as_mut().unwrap().push(number);
                model.push_back(number);
                own[by].push(number);
            }
            Step::TakeBack(by) => {
                if let Some(item) = handles[by].as_mut().unwrap().take_back() {
                    assert_eq!(own[by].pop(), Some(item));
                    let at = model.iter().rposition(|other| *other == item);
                    model.remove(at.expect("it was not taken out"));
                }
            }
            Step::Pop => assert_eq!(ordered.pop(), pop(&mut model)),
            Step::PopInto(most) => {
                let mut popped = Vec::new();
                assert_eq!(ordered.pop_into(most, &mut popped), popped.len());
                let expected: Vec<_> =
                    std::iter::from_fn(|| pop(&mut model)).take(popped.len()).collect();
                assert_eq!(popped, expected);
                assert!(popped.len() == most || model.is_empty());
            }
            Step::Renew(by) => {
                handles[by] = None;
                handles[by] = Some(ordered.handle());
            }
        }
    }
    let rest: Vec<_> = std::iter::from_fn(|| ordered.pop()).collect();
    assert_eq!(rest, std::iter::from_fn(|| pop(&mut model)).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: unless_interpreted(256, 3),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn queue_agrees_with_a_deque(steps in steps()) {
        agrees::<Oldest>(steps, VecDeque::pop_front);
    }

    #[test]
    fn stack_agrees_with_a_vector(steps in steps()) {
        agrees::<Newest>(steps, VecDeque::pop_back);
    }
}

/// Untouched by a take, everything can be taken back.
#[test]
fn all_that_is_pending_is_taken_back() {
    let stack = OrderedStack::<u32>::default();
    let mut handle = stack.handle();
    for _ in 0..3 {
        (0..unless_interpreted(1000, 50)).for_each(|number| handle.push(number));
        assert!(
            (0..unless_interpreted(1000, 50))
                .rev()
                .all(|number| handle.take_back() == Some(number))
        );
        assert_eq!((handle.take_back(), stack.pop()), (None, None));
    }
}

/// An item that counts itself while it is there.
struct Counted<'a>(u64, &'a AtomicU64);

impl<'a> Counted<'a> {
    fn new(number: u64, alive: &'a AtomicU64) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(number, alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

const PRODUCERS: u64 = unless_interpreted(6, 2);
const CONSUMERS: u64 = unless_interpreted(4, 2);
const EACH: u64 = unless_interpreted(30_000, 60);

/// More threads than CPUs add items, take them back and remove them. Each item comes out once,
/// those of one thread in order, and all are dropped.
fn stress<D: Discipline, C: Clock>(clock: C, ascends: bool) {
    let alive = AtomicU64::new(0);
    let ordered = Ordered::<Counted<'_>, D, C, Adaptive>::with_clock(clock);
    let (seen, left) = (AtomicU64::new(0), AtomicU64::new(PRODUCERS));
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (ordered, alive, seen, left) = (&ordered, &alive, &seen, &left);
            scope.spawn(move || {
                let mut handle = ordered.handle();
                for number in 0..EACH {
                    handle.push(Counted::new(producer << 32 | number, alive));
                    if number % 5 == 0
                        && let Some(back) = handle.take_back()
                    {
                        assert_eq!(back.0, producer << 32 | number, "its last");
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                    if number % (EACH / 3) == 0 {
                        drop(handle);
                        handle = ordered.handle(); // perhaps another's
                    }
                }
                left.fetch_sub(1, Ordering::Release);
            });
        }
        for consumer in 0..CONSUMERS {
            let (ordered, seen, left) = (&ordered, &seen, &left);
            scope.spawn(move || {
                let (mut last, mut batch) = ([None; PRODUCERS as usize], Vec::new());
                loop {
                    let over = left.load(Ordering::Acquire) == 0;
                    match consumer % 2 {
                        0 => batch.extend(ordered.pop()),
                        _ => {
                            ordered.pop_into(100, &mut batch);
                        }
                    }
                    if over && batch.is_empty() {
                        break;
                    }
                    for item in batch.drain(..) {
                        let (producer, number) = (item.0 >> 32, item.0 & u64::from(u32::MAX));
                        let before = last[producer as usize].replace(number);
                        assert!(!ascends || before < Some(number), "{before:?}, then {number}");
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(seen.load(Ordering::Relaxed), PRODUCERS * EACH);
    assert_eq!(alive.load(Ordering::Relaxed), 0, "each was dropped, and once");
}

#[test]
fn a_queue_loses_nothing() {
    stress::<Oldest, _>(Ordo::measured(), true);
    stress::<Oldest, _>(RelaxedClock(Ordo::measured()), true);
    stress::<Oldest, _>(Counter::default(), true);
}

#[test]
fn a_stack_loses_nothing() {
    stress::<Newest, _>(Ordo::measured(), false);
    stress::<Newest, _>(RelaxedClock(Ordo::measured()), false);
}

/// A thread that panics leaves its items, and its run to the next thread; a forgotten handle leaves
/// its items.
#[test]
fn threads_end_early() {
    let alive = AtomicU64::new(0);
    let queue = OrderedQueue::<Counted<'_>>::default();
    thread::scope(|scope| {
        for number in [1, 2] {
            let (queue, alive) = (&queue, &alive);
            let died = scope.spawn(move || {
                let mut handle = queue.handle();
                handle.push(Counted::new(number, alive));
                panic!("on purpose");
            });
            assert!(died.join().is_err());
        }
        scope.spawn(|| {
            let mut handle = queue.handle();
            handle.push(Counted::new(3, &alive));
            std::mem::forget(handle);
        });
    });
    assert_eq!(queue.pop().map(|item| item.0), Some(1));
    assert_eq!(queue.pop().map(|item| item.0), Some(2));
    queue.handle().push(Counted::new(4, &alive));
    assert_eq!(alive.load(Ordering::Relaxed), 2);
    assert_eq!(queue.pop().map(|item| item.0), Some(3));
    (0..300).for_each(|number| queue.handle().push(Counted::new(number, &alive)));
    drop(queue);
    assert_eq!(alive.load(Ordering::Relaxed), 0, "the queue's end is that of what is in it");
}

/// A panic of the items' receiver leaves the other items in place, and the lock free.
#[test]
fn who_takes_panics() {
    struct Picky(Vec<u32>);
    impl Extend<u32> for Picky {
        fn extend<I: IntoIterator<Item = u32>>(&mut self, items: I) {
            for item in items {
                assert!(item < 3, "on purpose");
                self.0.push(item);
            }
        }
    }
    let queue = OrderedQueue::<u32>::default();
    let mut handle = queue.handle();
    (0..10).for_each(|number| handle.push(number));
    let mut picky = Picky(Vec::new());
    assert!(catch_unwind(AssertUnwindSafe(|| queue.pop_into(10, &mut picky))).is_err());
    assert_eq!(picky.0, [0, 1, 2]);
    assert_eq!(queue.pop(), Some(4), "three is gone");
}

/// Two threads alternate, and their items come out alternately.
#[test]
fn turns_are_kept_between_threads() {
    let queue = OrderedQueue::<u64>::default();
    let ones_turn = AtomicBool::new(true);
    thread::scope(|scope| {
        for first in [0, 1] {
            let (queue, ones_turn) = (&queue, &ones_turn);
            scope.spawn(move || {
                let mut handle = queue.handle();
                for number in 0..unless_interpreted(2_000, 20) {
                    while ones_turn.load(Ordering::Acquire) != (first == 0) {
                        hint::yield_now();
                    }
                    handle.push(2 * number + first);
                    ones_turn.store(first == 1, Ordering::Release);
                }
            });
        }
    });
    assert!((0..unless_interpreted(4_000, 40)).all(|number| queue.pop() == Some(number)));
}
