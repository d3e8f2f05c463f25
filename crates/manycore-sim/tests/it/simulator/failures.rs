//! Programs that get stuck, and the failures that are reported.

use manycore_sim::{Cause, Failure, Machine, Simulation, backend, thread};

use super::facade::Word;

fn fails(program: impl FnOnce()) -> Failure {
    Simulation::new(&Machine::example()).patience(10_000_000).run(program).unwrap_err()
}

#[inline(never)]
fn waits_for_a_release(word: &Word) {
    word.spin_until(1);
    word.store(2); // or it would end in a jump, and not be on the stack
}

#[test]
fn a_deadlock_names_threads_and_what_they_wait_for() {
    let mut lines = (String::new(), String::new());
    let failure = fails(|| {
        let (spun, slept) = (Box::new(Word::default()), Box::new(Word::default()));
        lines = (format!("{:#x}", spun.address()), format!("{:#x}", slept.address()));
        thread::parallel(2, |me| {
            if me == 0 {
                waits_for_a_release(&spun);
            } else {
                slept.wait(0, None);
            }
        });
    });
    assert_eq!(failure.cause, Cause::Deadlock);
    let text = failure.to_string();
    assert!(
        text.contains(&format!("thread 1 spins on CPU 0 until line {} is written", lines.0)),
        "{text}"
    );
    assert!(text.contains(&format!("thread 2 sleeps until futex {} is woken", lines.1)), "{text}");
    assert!(text.contains("thread 0 waits until thread 1 has ended"), "{text}");
    let spinner = &failure.blocked[1].stack;
    assert!(spinner[0].contains("spin_until at ") && spinner[0].contains("facade.rs:"), "{text}");
    assert!(spinner[1].contains("waits_for_a_release at "), "{text}");
    assert!(spinner.len() < 6, "the frames of the simulator are left out: {text}");
}

#[test]
fn a_livelock_is_noticed() {
    let failure = fails(|| {
        let word = Box::new(Word::default());
        word.store(1);
        thread::parallel(2, |_| {
            while word.swap(1) == 1 {
                backend::spin_loop();
            }
        });
    });
    assert_eq!(failure.cause, Cause::Livelock);
    assert!(failure.at > 10_000_000 && failure.at < 20_000_000);
}

#[test]
fn a_panic_ends_the_simulation() {
    struct Dropped<'a>(&'a Word);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.store(1);
        }
    }
    let failure = fails(|| {
        let (word, other) = (Box::new(Word::default()), Box::new(Word::default()));
        thread::parallel(3, |me| {
            let _dropped = Dropped(&word);
            if me == 1 {
                panic!("number {me}");
            }
            other.spin_until(1);
        });
    });
    let cause = Cause::Panic { thread: 2, message: "number 1".to_owned() };
    assert_eq!(failure.cause, cause);
    assert_eq!(failure.blocked.len(), 4);
}

#[test]
fn after_a_failure_everything_is_as_before() {
    let ok = || Simulation::new(&Machine::example()).run(|| (&raw const *Box::new(1)).addr());
    let before = ok().unwrap();
    fails(|| {
        let word = Box::new(Word::default());
        thread::parallel(4, |_| {
            let _kept = vec![1; 1000];
            word.wait(0, None);
        });
    });
    assert_eq!(before, ok().unwrap());
}
