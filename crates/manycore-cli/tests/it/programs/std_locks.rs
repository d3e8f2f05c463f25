//! Threads that wait for a `std::sync::Mutex` on the heap, and for a `Condvar`.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

#[inline(never)]
fn take_turns(turns: &Mutex<u64>) {
    for _ in 0..30 {
        let mut turn = turns.lock().unwrap();
        thread::sleep(Duration::from_millis(2));
        *turn += 1;
    }
}

#[inline(never)]
fn await_work(work: &(Mutex<bool>, Condvar)) {
    let mut is_there = work.0.lock().unwrap();
    while !*is_there {
        is_there = work.1.wait(is_there).unwrap();
    }
}

fn main() {
    let turns = Arc::new(Mutex::new(0));
    let work = Arc::new((Mutex::new(false), Condvar::new()));
    let idle = {
        let work = Arc::clone(&work);
        thread::spawn(move || await_work(&work))
    };
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let turns = Arc::clone(&turns);
            thread::spawn(move || take_turns(&turns))
        })
        .collect();
    busy.into_iter().for_each(|thread| thread.join().unwrap());
    *work.0.lock().unwrap() = true;
    work.1.notify_one();
    idle.join().unwrap();
    assert_eq!(*turns.lock().unwrap(), 120);
}
