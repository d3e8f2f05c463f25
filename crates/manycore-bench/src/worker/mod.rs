//! The process in which a lock is measured.
//!
//! Every lock runs in a process of its own, which the harness starts anew for every round. So the
//! same loop measures locks that go through the preload library and others; a lock that hangs or
//! crashes costs only its own result; and differences between processes (addresses above all) are
//! part of the spread that the interval shows.
//!
//! The process is the harness's own executable, started with arguments that lead it to [`serve`].
//! It reads orders from its standard input, one JSON value a line, and answers each on its standard
//! output. It ends at the end of its input, hence with the harness.

mod order;
mod processes;
mod remote;
mod subject;

use std::io::{self, BufRead, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::contender;
pub use order::{Executor, Order};
use order::{Message, Reply};
pub(crate) use processes::WorkerProcesses;
pub(crate) use remote::Worker;
pub(crate) use subject::Subject;
pub use subject::{Command, Through};

/// The order to find the file that defines `pthread_mutex_lock` in the worker. The answer is a file
/// name.
#[derive(Serialize, Deserialize)]
struct Origin;

impl Order for Origin {
    const NAME: &'static str = "origin";
    type Answer = Option<String>;

    fn time_max(&self) -> Duration {
        Duration::ZERO
    }
}

/// Serves a harness as long as it sends orders. This is all that the worker does.
pub fn serve(mut executors: Vec<Executor>) -> io::Result<()> {
    // glibc leaves the atomic instructions out of its locks while a process has a single thread.
    std::thread::spawn(|| {
        loop {
            std::thread::park();
        }
    });
    executors.push(Executor::new(|Origin| Ok(contender::origin())));
    for line in io::stdin().lock().lines() {
        let reply = obey(&mut executors, &line?);
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &reply)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

fn obey(executors: &mut [Executor], line: &str) -> Reply {
    let unknown = |what: &str| format!("the worker got an order that it does not know: {what}");
    let message: Message =
        serde_json::from_str(line).map_err(|error| unknown(&error.to_string()))?;
    let executor = executors.iter_mut().find(|executor| executor.order == message.order);
    (executor.ok_or_else(|| unknown(&message.order))?.execute)(&message.settings)
}
