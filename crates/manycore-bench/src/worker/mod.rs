//! The process in which a lock is measured.
//!
//! Every lock runs in a process of its own, which the harness starts afresh for every round. So the locks that go
//! through the preload library and those that do not are measured by the same loop; a lock that hangs or crashes costs
//! its own result only; and what differs from process to process (addresses above all) is part of the spread that
//! the interval shows.
//!
//! The process is the harness's own executable, started with arguments that lead it to [`serve`]. It reads orders
//! from its standard input, one JSON value a line, and answers each on its standard output. It ends at the end of its
//! input, hence with the harness.

mod remote;
mod subject;

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::contender::{self, Contender, Visitor};
use crate::rmap;
use crate::set::{self, peers::Peer};
use crate::slice::{self, Settings, Slice};

pub(crate) use remote::Worker;
pub(crate) use subject::Subject;
pub use subject::{Command, Through};

/// What the harness wants.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Where does `pthread_mutex_lock` come from?
    Origin,
    /// Let threads contend for it.
    Contend(Settings),
    /// Lock and unlock it so many times.
    Pairs(u32),
    /// Let threads use a set. The lock is not looked at.
    Use(set::Settings),
    /// Let threads update trees of intervals. The same.
    Update(rmap::Settings),
}

/// What the worker answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// A file name.
    Origin(Option<String>),
    /// A slice.
    Slice(Slice),
    /// A slice with a set.
    Used(set::Slice),
    /// A slice with trees of intervals.
    Updated(rmap::Round),
    /// Nanoseconds for a pair.
    Nanoseconds(f64),
    /// The lock or the machine did not do what was asked.
    Failed(String),
}

/// Serves a harness for as long as it has orders: the whole of the worker's life. `lock` is the contender's name.
pub fn serve(lock: &str) -> io::Result<()> {
    serve_with(lock, &[])
}

/// The same, by a program that has sets which this crate has not.
pub fn serve_with(lock: &str, sets: &[Peer]) -> io::Result<()> {
    // glibc leaves the atomic instructions out of its locks while a process has a single thread.
    std::thread::spawn(|| {
        loop {
            std::thread::park();
        }
    });
    let mut kept = None;
    for line in io::stdin().lock().lines() {
        let answer = match serde_json::from_str::<Order>(&line?) {
            Ok(Order::Use(settings)) => match set::run_slice(&settings, sets, &mut kept) {
                Ok(slice) => Answer::Used(slice),
                Err(error) => Answer::Failed(error),
            },
            Ok(Order::Update(settings)) => match rmap::run_slice(&settings) {
                Ok(round) => Answer::Updated(round),
                Err(error) => Answer::Failed(error),
            },
            Ok(order) => obey(lock, order),
            Err(error) => {
                Answer::Failed(format!("the worker got an order that it does not know: {error}"))
            }
        };
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

fn obey(lock: &str, order: Order) -> Answer {
    let unknown = || Answer::Failed(format!("there is no lock `{lock}`"));
    contender::with(lock, order).unwrap_or_else(unknown)
}

impl Visitor for Order {
    type Output = Answer;

    fn visit<C: Contender>(self) -> Answer {
        match self {
            Self::Origin => Answer::Origin(contender::origin()),
            Self::Contend(settings) => match slice::run::<C>(&settings) {
                Ok(slice) => Answer::Slice(slice),
                Err(error) => Answer::Failed(error),
            },
            Self::Use(_) | Self::Update(_) => {
                unreachable!("needs no lock, and is obeyed before one is looked for")
            }
            Self::Pairs(pairs) => Answer::Nanoseconds(crate::pairs::time::<C>(pairs)),
        }
    }
}
