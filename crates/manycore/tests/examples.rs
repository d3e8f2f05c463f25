//! The examples; each has a test here that runs it. The tests are here, and not in the examples,
//! because on another back end the examples cannot run.
#![cfg(not(any(loom, manycore_bare)))]

#[path = "../examples/bank.rs"]
mod bank;
#[path = "../examples/combining.rs"]
mod combining;
#[path = "../examples/deferred.rs"]
mod deferred;
#[path = "../examples/oplog.rs"]
mod oplog;
#[path = "../examples/range_scan.rs"]
mod range_scan;
#[path = "../examples/rcu.rs"]
mod rcu;
#[path = "../examples/session_store.rs"]
mod session_store;
#[path = "../examples/transactions.rs"]
mod transactions;
#[path = "../examples/work_queue.rs"]
mod work_queue;
