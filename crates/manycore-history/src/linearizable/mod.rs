//! Whether a history has an order in which each operation behaves correctly.
//!
//! M. Herlihy and J. Wing, "Linearizability: A Correctness Condition for Concurrent Objects",
//! TOPLAS 1990: each operation must seem to happen at one instant between its call and its return.
//! The search is that of J. Wing and C. Gong, "Testing and Verifying Concurrent Objects", JPDC
//! 1993, in the order of G. Lowe, "Testing for Linearizability", CCPE 2017. It goes through the
//! history from return to return, with the set of all *configurations* in which the object can be.
//! It lets other operations happen only when the one that returns needs it. A configuration
//! consists of a state, and of the set of open operations that have happened. The search does not
//! try a configuration twice. Where operations on different keys do not affect each other, each key
//! is a history of its own.
//!
//! The time for that grows with the length of the history, and exponentially with the number of
//! operations on one key that are open at the same time.

mod search;
mod window;

use std::collections::BTreeMap;
use std::fmt;

use crate::specification::{CallOf, Specification};

/// An operation of a [`Violation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The thread that called.
    pub thread: u32,
    /// What, and what it returned.
    pub text: String,
    /// The moment of the call.
    pub called: u64,
    /// The moment of the return.
    pub returned: u64,
}

/// Operations whose results no order explains, whatever the state before: the last ones before the
/// contradiction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The key of these operations, if keys are histories of their own.
    pub key: Option<u64>,
    /// The operations, in the order of their calls.
    pub window: Vec<Row>,
}

/// Looks for an order.
///
/// # Errors
///
/// The key whose contradiction comes first, if there is one.
///
/// # Panics
///
/// If more than 128 operations on one key are open at the same time, or there are more than some
/// million configurations: then use more keys.
pub fn check<S: Specification>(history: &[CallOf<S>]) -> Result<(), Violation> {
    let mut keys: BTreeMap<Option<u64>, Vec<&CallOf<S>>> = BTreeMap::new();
    for call in history {
        assert!(call.called < call.returned, "{call:?} returns before it is called");
        keys.entry(S::key(&call.operation)).or_default().push(call);
    }
    let broken = keys.into_iter().filter_map(|(key, calls)| {
        if window::has_order::<S>(&calls) {
            return None;
        }
        let window = window::smallest::<S>(&calls);
        let row = |call: &CallOf<S>| Row {
            thread: call.thread,
            text: format!("{:?} = {:?}", call.operation, call.result),
            called: call.called,
            returned: call.returned,
        };
        Some(Violation { key, window: window.into_iter().map(row).collect() })
    });
    broken.min_by_key(Violation::end).map_or(Ok(()), Err)
}

impl Violation {
    /// The moment of the last return.
    fn end(&self) -> u64 {
        self.window.iter().map(|row| row.returned).max().unwrap_or_default()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(key) = self.key {
            write!(f, "key {key}: ")?;
        }
        writeln!(f, "no order of these operations explains all their results")?;
        let mut moments: Vec<_> =
            self.window.iter().flat_map(|row| [row.called, row.returned]).collect();
        moments.sort_unstable();
        let column = |moment: u64| moments.partition_point(|m| *m < moment);
        let width = self.window.iter().map(|row| row.text.len()).max().unwrap_or_default();
        for row in &self.window {
            let (from, to) = (column(row.called), column(row.returned));
            let bar = format!("{}|{}|", " ".repeat(from), "-".repeat(to - from - 1));
            writeln!(f, "  thread {:2}  {:width$}  {bar}", row.thread, row.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}
