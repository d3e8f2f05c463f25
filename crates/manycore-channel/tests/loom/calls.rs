//! How a call gets to the thread that executes it, and how the answer gets back.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use manycore::lock::Gate;
use manycore::sync::futex;
use manycore_channel::blocking_worker::BlockingWorker;
use manycore_channel::call::{Call, Kind};
use manycore_channel::queue::{Bell, Calls, Cancelled, Queue};
use manycore_channel::slot::{Reply, Slot};
use manycore_channel::stack::Stack;

/// Checks all executions with at most `preemptions` switches between threads that could have gone
/// on.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn call(number: usize) -> Call {
    Call { number, args: [0; 6] }
}

/// Executes the call: what it answers tells its number.
fn execute(slot: *const Slot) {
    // SAFETY: the thread that has the slot executes the call, once.
    unsafe {
        let answer = (*slot).order().call.number as isize + 100;
        Slot::answer(slot, Reply { answer, signal: 0 });
    }
}

/// The caller's part: waits for the answer to its own call, and owns the slot again.
fn answered(slot: *mut Slot) {
    // SAFETY: this thread has taken the slot, and frees it once it is answered, below.
    let of = unsafe { &*slot };
    of.gate().wait();
    assert_eq!(of.reply().answer, of.order().call.number as isize + 100);
    // The program's next use of the slot: the model fails if another thread still reads it.
    of.write(&call(0), Kind::Quick);
}

/// A worker of the pool, with its futex in place of an event descriptor.
#[derive(Default)]
struct Worker {
    calls: Queue<Calls>,
    cancelled: Queue<Cancelled>,
    bell: Bell,
    /// How often it was woken.
    event: AtomicU32,
}

impl Worker {
    fn send(&self, slot: *mut Slot) {
        // SAFETY: the slot stays until it is answered.
        unsafe { self.calls.push(slot) };
        self.ring();
    }

    fn ring(&self) {
        if self.bell.ring() {
            self.event.fetch_add(1, Ordering::Relaxed);
            futex::wake(&raw const self.event, 1);
        }
    }

    /// Executes calls until this many have been.
    fn work(&self, calls: usize) {
        let mut left = calls;
        while left > 0 {
            let mut slot = self.calls.take();
            if slot.is_null() {
                self.sleep();
            }
            // SAFETY: the slot was taken out of the queue and is not answered yet, so that its
            // caller waits.
            while let Some(call) = unsafe { slot.as_ref() } {
                let this = slot;
                slot = Queue::<Calls>::after(call);
                execute(this);
                left -= 1;
            }
        }
    }

    fn sleep(&self) {
        let event = self.event.load(Ordering::Relaxed);
        if self.bell.doze(|| self.calls.is_empty() && self.cancelled.is_empty()) {
            futex::wait(&self.event, event, None);
            self.bell.rise();
        }
    }
}

fn slot(number: usize) -> *mut Slot {
    let slot = Box::into_raw(Box::<Slot>::default());
    // SAFETY: the slot is new, and no other thread has it.
    unsafe { (*slot).write(&call(number), Kind::Waits) };
    slot
}

fn free(slot: *mut Slot) {
    // SAFETY: `slot` has made it by a box; it is answered, and no thread has it any more.
    drop(unsafe { Box::from_raw(slot) });
}

#[test]
fn a_call_through_the_pool() {
    check(3, || {
        let worker = Arc::new(Worker::default());
        let other = worker.clone();
        let caller = thread::spawn(move || {
            for number in 1..=2 {
                let slot = slot(number);
                other.send(slot);
                answered(slot);
                free(slot);
            }
        });
        worker.work(2);
        caller.join().unwrap();
    });
}

#[test]
fn two_callers_and_a_worker() {
    check(2, || {
        let worker = Arc::new(Worker::default());
        let callers = [1, 2].map(|number| {
            let other = worker.clone();
            thread::spawn(move || {
                let slot = slot(number);
                other.send(slot);
                answered(slot);
                free(slot);
            })
        });
        worker.work(2);
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });
}

/// A worker that wakes for another reason than a caller's ring sees all calls of callers that found
/// it awake.
#[test]
fn a_worker_wakes_by_itself() {
    check(3, || {
        let worker = Arc::new(Worker::default());
        let callers = [1, 2].map(|number| {
            let other = worker.clone();
            thread::spawn(move || {
                let slot = slot(number);
                other.send(slot);
                answered(slot);
                free(slot);
            })
        });
        if worker.bell.doze(|| worker.calls.is_empty()) {
            worker.bell.rise();
        }
        worker.work(2);
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });
}

/// A cancelled call is noted once it is out of the queue of cancelled calls. Only then does its
/// slot belong to the caller again.
#[test]
fn a_call_is_cancelled() {
    check(3, || {
        let worker = Arc::new(Worker::default());
        let other = worker.clone();
        let caller = thread::spawn(move || {
            let slot = slot(1);
            // SAFETY: the slot stays until it is answered and noted.
            unsafe {
                assert!((*slot).cancel());
                other.cancelled.push(slot);
            }
            other.ring();
            // SAFETY: the slot stays until it is answered and noted. It is not noted yet, or was
            // noted just now.
            while !unsafe { (*slot).is_noted() } {
                thread::yield_now();
            }
            // SAFETY: the worker has noted the cancellation, and uses the slot no more.
            unsafe { (*slot).next_cancelled.with_mut(|link| *link = std::ptr::null_mut()) };
            free(slot);
        });
        loop {
            // SAFETY: the slot was in the queue, and its caller waits until that is noted.
            if let Some(call) = unsafe { worker.cancelled.take().as_ref() } {
                assert!(call.is_cancelled() && Queue::<Cancelled>::after(call).is_null());
                call.note_cancelled();
                break;
            }
            worker.sleep();
        }
        caller.join().unwrap();
    });
}

/// What comes with a number on a stack.
struct Numbers {
    stack: Stack,
    links: [AtomicU32; 2],
    notes: [UnsafeCell<u32>; 2],
}

// SAFETY: notes are touched by the thread that has the number.
unsafe impl Sync for Numbers {}
// SAFETY: only the owner of the number, which may be any thread, touches the notes.
unsafe impl Send for Numbers {}

impl Numbers {
    fn push(&self, number: u32) {
        self.stack.push(number, |number| &self.links[number as usize]);
    }

    fn pop(&self) -> Option<u32> {
        self.stack.pop(|number| &self.links[number as usize])
    }

    /// Takes a number, uses it and puts it back.
    fn turn(&self) {
        if let Some(number) = self.pop() {
            // SAFETY: the thread that has the number has the note.
            self.notes[number as usize].with_mut(|note| unsafe { *note += 1 });
            self.push(number);
        }
    }
}

/// One thread at a time has a number. It sees what the thread before it has noted.
#[test]
fn numbers_change_hands() {
    check(3, || {
        let numbers = Arc::new(Numbers {
            stack: Stack::default(),
            links: [AtomicU32::new(0), AtomicU32::new(0)],
            notes: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        numbers.push(0);
        numbers.push(1);
        let other = numbers.clone();
        let thread = thread::spawn(move || {
            other.turn();
            // Takes both, and puts them back in the other order: the head is the same again, with
            // another number below it.
            let (first, second) = (other.pop(), other.pop());
            [first, second].into_iter().flatten().for_each(|number| other.push(number));
        });
        numbers.turn();
        thread.join().unwrap();
        let mut left = [numbers.pop().unwrap(), numbers.pop().unwrap()];
        left.sort_unstable();
        assert_eq!(left, [0, 1]);
        assert_eq!(numbers.pop(), None);
    });
}

/// The mechanism `thread`: a route with one worker.
struct OneWorker {
    worker: BlockingWorker,
    idle: Stack,
}

impl OneWorker {
    /// Waits on the stack, as a worker does after a call.
    fn new() -> Arc<Self> {
        let route = Arc::new(Self { worker: BlockingWorker::default(), idle: Stack::default() });
        route.put(&route.idle);
        route
    }

    fn put(&self, home: &Stack) {
        home.push(0, |_| &self.worker.below);
    }

    fn take(&self) -> bool {
        self.idle.pop(|_| &self.worker.below).is_some()
    }

    fn work(&self) {
        let execute =
            |slot: &Slot| Reply { answer: slot.order().call.number as isize + 100, signal: 0 };
        self.worker.work(0, |home| self.put(home), execute);
    }

    /// Makes a call, if the worker has nothing to do.
    fn call(&self, number: usize) -> bool {
        let slot = slot(number);
        let is_sent = self.take();
        if is_sent {
            // SAFETY: taken off its stack; the slot stays until it is answered, and the stack until
            // the worker has ended.
            unsafe { self.worker.send(slot, &raw const self.idle) };
            answered(slot);
        }
        free(slot);
        is_sent
    }

    fn end(&self) {
        assert!(self.take(), "a worker whose calls are answered is on its stack");
        // SAFETY: taken off its stack, and sent nothing.
        unsafe { self.worker.end() };
    }
}

/// A caller's next call finds the worker on the stack again.
#[test]
fn a_worker_has_one_call_after_the_other() {
    check(3, || {
        let route = OneWorker::new();
        let other = route.clone();
        let thread = thread::spawn(move || other.work());
        assert!(route.call(1));
        assert!(route.call(2), "it is back before it has answered");
        route.end();
        thread.join().unwrap();
    });
}

/// Two callers share a pool with one worker: each gets the answer to its own call, or finds no
/// worker.
#[test]
fn two_callers_and_a_blocking_worker() {
    check(2, || {
        let route = OneWorker::new();
        let [worker, other] = [route.clone(), route.clone()];
        let thread = thread::spawn(move || worker.work());
        let caller = thread::spawn(move || other.call(1));
        let own = route.call(2);
        let others = caller.join().unwrap();
        assert!(own || others, "one of them finds it");
        route.end();
        thread.join().unwrap();
    });
}

/// A caller may sleep in such a way that the kernel restarts its sleep after a handler. When a part
/// of its send is done, it is woken, and sleeps again without restarts. Here the call is answered
/// only after that.
#[test]
fn a_caller_sleeps_otherwise_when_a_part_is_gone() {
    check(3, || {
        let slot = slot(1);
        let address = slot.expose_provenance();
        let ends_for_handlers = Arc::new(AtomicU32::new(0));
        let noted = ends_for_handlers.clone();
        let executor = thread::spawn(move || {
            let slot = std::ptr::with_exposed_provenance_mut::<Slot>(address);
            // SAFETY: this thread has sent the slot, which stays until it is answered, below.
            unsafe { (*slot).note_part() };
            // A handler runs. It must find the caller in a sleep that the handler ends.
            while noted.load(Ordering::Relaxed) == 0 {
                futex::wait(&noted, 0, None);
            }
            execute(slot);
        });
        // SAFETY: this thread has taken the slot, and frees it once it is answered, below.
        let of = unsafe { &*slot };
        let gate = of.gate();
        while gate.doze().is_none() && gate.poll().is_none() {
            if of.is_partly_done() {
                ends_for_handlers.store(1, Ordering::Relaxed);
                futex::wake(&raw const *ends_for_handlers, 1);
            }
            futex::wait(gate.word(), Gate::ASLEEP, None);
        }
        answered(slot);
        executor.join().unwrap();
        free(slot);
    });
}

/// Once a worker has released a call, no signal for that call reaches it.
#[test]
fn no_signal_comes_for_a_call_that_is_over() {
    check(3, || {
        let slot = slot(1);
        let address = slot.expose_provenance();
        // Stands for the state that a signal would interrupt. The sender of the signal and the
        // worker's next call access it.
        let next = Arc::new(Note(UnsafeCell::new(0)));
        let other = next.clone();
        let worker = thread::spawn(move || {
            let slot = std::ptr::with_exposed_provenance_mut::<Slot>(address);
            // SAFETY: this thread has sent the slot, which stays until it is answered, below.
            let of = unsafe { &*slot };
            // SeqCst: as the worker does it.
            of.executor.store(7, Ordering::SeqCst);
            of.released();
            // SAFETY: once `released` has returned, no signal is being sent; the checker reports
            // one that is.
            other.0.with_mut(|note| unsafe { *note += 1 });
            execute(slot);
        });
        // SAFETY: this thread has taken the slot, and frees it once it is answered, below.
        let of = unsafe { &*slot };
        assert!(of.cancel());
        // SAFETY: `signal` calls this only while the worker is in the call, which waits for this.
        of.signal(|executor| next.0.with_mut(|note| unsafe { *note += executor }));
        answered(slot);
        worker.join().unwrap();
        free(slot);
    });
}

struct Note(UnsafeCell<u32>);

// SAFETY: one thread at a time touches it, as the model checks.
unsafe impl Sync for Note {}
// SAFETY: one thread at a time touches it, in any thread, as the model checks.
unsafe impl Send for Note {}
