//! Stacks and queues whose items are put in order when one is taken out.

use std::cell::Cell;

use manycore_history::run::{self, Explored, Mix};
use manycore_history::specification::{End, First, Last, SequenceOperation};
use manycore_sim::thread;
use manycore_simulated::clock::{Clock, Counter};
use manycore_simulated::ldu::ordered::{Discipline, Newest, Oldest, Ordered};
use manycore_simulated::sync::atomic::{AtomicU32, Ordering};
use manycore_simulated::sync::hint;

use crate::explore;
use manycore_simulated::clock::Skewed;

/// Operations on a ordered, by one thread.
fn operate<'a, D: Discipline, C: Clock>(
    ordered: &'a Ordered<u64, D, C>,
    handles_change: bool,
) -> impl FnMut(SequenceOperation) -> Vec<u64> + 'a {
    let mut own = None;
    move |operation| {
        let handle = own.get_or_insert_with(|| ordered.handle());
        let mut popped = Vec::new();
        match operation {
            SequenceOperation::Push(value) => handle.push(value),
            SequenceOperation::TakeBack => popped.extend(handle.take_back()),
            SequenceOperation::PopSome => {
                ordered.pop_into(2, &mut popped);
            }
            _ => popped.extend(ordered.pop()),
        }
        own = own.take().filter(|_| !handles_change);
        popped
    }
}

/// Each thread has a handle. Or it has a new one for each operation, whose run may have been
/// another's.
fn is_linearizable<E: End, D: Discipline, C: Clock>(clock: impl Fn() -> C, handles_change: bool) {
    for seed in 0..3 {
        // There are more pushes than pops, so that items can be out of order.
        let mix = Mix { operations: 5, inserts: 50, removes: 35, ..Mix::explored(3, seed) };
        explore().schedules(700).check(|| {
            let ordered = Ordered::<u64, D, C>::with_clock(clock());
            let removals =
                &[SequenceOperation::Pop, SequenceOperation::PopSome, SequenceOperation::TakeBack];
            run::check_sequence::<E, _>(Explored, &mix, removals, || {
                operate(&ordered, handles_change)
            });
        });
    }
}

#[test]
fn queue_by_a_counter() {
    is_linearizable::<First, Oldest, _>(Counter::default, false);
    is_linearizable::<First, Oldest, _>(Counter::default, true);
}

#[test]
fn queue_by_clocks_that_differ() {
    is_linearizable::<First, Oldest, _>(Skewed::default, false);
    is_linearizable::<First, Oldest, _>(Skewed::default, true);
}

#[test]
fn stack_by_a_counter() {
    is_linearizable::<Last, Newest, _>(Counter::default, false);
    is_linearizable::<Last, Newest, _>(Counter::default, true);
}

#[test]
fn stack_by_clocks_that_differ() {
    is_linearizable::<Last, Newest, _>(Skewed::default, false);
    is_linearizable::<Last, Newest, _>(Skewed::default, true);
}

/// The third item is added after the second, both while another thread takes two items off a stack.
/// That thread may read the second item's run before the item is there, and the third one's run
/// after it is there. Then it must not take the first and the third.
#[test]
fn two_at_a_time() {
    explore().check(|| {
        let ordered = Ordered::<u64, Newest, Counter>::with_clock(Counter::default());
        // The run of the handle that was created last is read first.
        let handles = [1, 3, 2].map(|item| Cell::new(Some((ordered.handle(), item))));
        let [first, ..] = &handles;
        first.take().into_iter().for_each(|(mut handle, item)| handle.push(item));
        let is_there = AtomicU32::new(0);
        let taken = thread::parallel(3, |number| {
            let mut taken = Vec::new();
            match handles.get(number as usize).and_then(Cell::take) {
                None => {
                    ordered.pop_into(2, &mut taken);
                }
                Some((mut handle, item)) => {
                    while item == 3 && is_there.load(Ordering::Acquire) == 0 {
                        hint::spin_loop();
                    }
                    handle.push(item);
                    is_there.store(1, Ordering::Release);
                }
            }
            taken
        });
        assert_ne!(taken.concat(), [3, 1], "the second item is between");
    });
}
