//! The stack: each value comes out once, whole, and the newest first.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use manycore::collections::stack::TreiberStack;

use crate::check;

/// A value that the checker watches: written before the push, read after the pop.
struct Value(UnsafeCell<u32>);

// SAFETY: the model fails if two threads are at it.
unsafe impl Send for Value {}

fn pop(stack: &TreiberStack<Value>) -> Option<u32> {
    // SAFETY: the model fails if another thread writes meanwhile.
    stack.handle().pop().map(|value| value.0.with(|value| unsafe { *value }))
}

fn push(stack: &TreiberStack<Value>, value: u32) {
    stack.handle().push(Value(UnsafeCell::new(value)));
}

#[test]
fn one_pushes_and_two_pop() {
    check(2, || {
        let stack = Arc::new(TreiberStack::default());
        push(&stack, 1);
        let [pusher, popper] = [|stack: &_| (push(stack, 2), None).1, pop].map(|does| {
            let stack = stack.clone();
            thread::spawn(move || does(&stack))
        });
        let own = pop(&stack);
        let (none, others) = (pusher.join().unwrap(), popper.join().unwrap());
        assert_eq!(none, None);
        let mut all: Vec<_> =
            [own, others, pop(&stack), pop(&stack)].into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// A popped node's memory may be reused for a push: no thread mistakes it for the old node.
#[test]
fn a_node_comes_back() {
    check(2, || {
        let stack = Arc::new(TreiberStack::default());
        push(&stack, 1);
        push(&stack, 2);
        let other = {
            let stack = stack.clone();
            thread::spawn(move || {
                let (first, second) = (pop(&stack), pop(&stack));
                push(&stack, 3);
                [first, second]
            })
        };
        let own = pop(&stack);
        let others = other.join().unwrap();
        let mut all: Vec<_> =
            others.into_iter().chain([own, pop(&stack), pop(&stack)]).flatten().collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}
