//! The examples, each of which has a test that runs it. Here, and not where they are: on another
//! back end they have nothing to run on.
#![cfg(not(any(loom, manycore_bare)))]

#[path = "../examples/combining.rs"]
mod combining;
#[path = "../examples/deferred.rs"]
mod deferred;
#[path = "../examples/oplog.rs"]
mod oplog;
#[path = "../examples/rcu.rs"]
mod rcu;
#[path = "../examples/transactions.rs"]
mod transactions;
