//! `--syscalls`: where a program's system calls are executed.

mod explain;

use manycore_placement::{Choice, Machine, Problem, Request, Tree, choose};

use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;

/// A choice of CPUs, and the machine for which it was made.
#[derive(Debug)]
pub struct Calls {
    machine: Machine,
    choice: Choice,
}

/// Reads the value of the option.
pub fn request(text: &str) -> Result<Request> {
    text.parse().map_err(failure)
}

impl Calls {
    /// Chooses CPUs of this machine.
    pub fn choose(request: &Request) -> Result<Self> {
        let machine = Machine::read(&Tree::of_this_machine(), request.device()).map_err(failure)?;
        let choice = choose(request, &machine)
            .map_err(|problem| failure(problem).during(format!("--syscalls {request}")))?;
        Ok(Self { machine, choice })
    }

    /// Whether the program should stay unchanged, without a library that would only count.
    pub fn leaves_alone(&self) -> bool {
        self.choice.leaves_alone()
    }

    /// `interposition` with these calls moved as well.
    pub fn under(&self, interposition: Interposition) -> Result<Interposition> {
        interposition.with_calls(self.choice.settings())
    }

    /// The machine, the CPUs and why.
    pub fn explain(&self, as_json: bool) -> String {
        match as_json {
            true => format!("{:#}\n", explain::as_json(&self.choice, &self.machine)),
            false => explain::as_text(&self.choice, &self.machine),
        }
    }
}

fn failure(problem: Problem) -> Failure {
    Failure::bad_input(problem.culprit, problem.remedy)
}
