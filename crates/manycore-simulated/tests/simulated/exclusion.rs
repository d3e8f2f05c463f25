//! Every lock excludes, and no thread waits for ever: with fewer threads than CPUs, as many, and
//! more.

use manycore_sim::{Machine, Simulation};
use manycore_simulated::Order;
use manycore_simulated::lock::{self, PlainLock};

use crate::workload::{Load, simulate};

fn excludes<L: PlainLock + 'static>() {
    let load = Load { inside: 200, outside: 300, length: 400_000 };
    for threads in [1, 2, 16] {
        simulate::<L>(&Simulation::new(&Machine::example()), threads, load);
    }
    // With more threads than CPUs, a queue that never gives up its CPU takes a slice for each
    // hand-off.
    let mut machine = Machine::example();
    machine.os.time_slice = 100_000;
    let few_cpus = Simulation::new(&machine).cpus(3).pinned(false);
    let info = L::INFO;
    if info.blocks || info.order != Order::Fifo {
        simulate::<L>(&few_cpus, 9, Load { length: 4_000_000, ..load });
    }
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $lock() {
                excludes::<lock::$lock>();
            }
        )*
    };
}
manycore_simulated::for_each_lock!(tests);
