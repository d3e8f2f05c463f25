//! OpLog: a read takes no operation without those that came before it.

use std::sync::Arc;

use loom::thread;
use manycore::lock;
use manycore::oplog::{Apply, OpLog};
use manycore::sync::cpu;

use crate::check;

/// The applied operations; they have to begin at 0 and to increase.
struct Steps(u32);

impl Apply<u32> for Steps {
    fn apply(&mut self, step: u32) {
        assert_eq!(step, self.0, "a step without those before it");
        self.0 += 1;
    }
}

/// A thread that moves from core to core, and a reader that reads the cores one after the other.
#[test]
fn what_is_taken_is_closed() {
    check(2, || {
        let steps = Arc::new(OpLog::<Steps, u32, lock::Futex>::new(Steps(0)));
        let of_worker = steps.clone();
        let worker = thread::spawn(move || {
            cpu::run_on(0);
            let first = of_worker.log(0);
            cpu::run_on(1);
            of_worker.log_after(1, first);
        });
        assert!(steps.read(|steps| steps.0) <= 2);
        worker.join().unwrap();
        assert_eq!(steps.read(|steps| steps.0), 2);
    });
}
