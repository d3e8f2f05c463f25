//! Simulations as a job array, for an engine that runs jobs on many machines.
//!
//! A task simulates one part of all simulations, and keeps the results in a directory that all
//! tasks share, under the usual keys. So a task that is run twice, or again after an interruption,
//! simulates only what is missing. Any user of the directory can then redraw the figures in a
//! moment.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{env, fs, io, path};

use clap::ValueEnum;
use manycore_bench::simulated::Plan;

use super::Options;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::print;

/// The job array for Slurm, in which the number of tasks has to be inserted.
const SLURM: &str = include_str!("array.sbatch");

/// The program that has Dask run the tasks.
const DASK: &str = include_str!("run.py");

/// What runs a job array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// A batch script for `sbatch`
    Slurm,
    /// A Python program, which uses Dask's scheduler
    Dask,
}

/// A piece of all simulations: its number, from 1, and how many pieces there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    number: usize,
    of: usize,
}

impl FromStr for Piece {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err("a piece is K/N, such as 3/64, with K from 1 to N".to_owned()),
        }
    }
}

impl Piece {
    /// The piece itself.
    pub fn of(self, plan: &Plan) -> Plan {
        plan.piece(self.number, self.of)
    }
}

/// What is to be run.
pub struct Array<'a> {
    pub options: &'a Options,
    pub tasks: usize,
}

impl Array<'_> {
    /// Writes the script, and prints the next steps. The directory exists.
    pub fn write(&self, engine: Engine, directory: &Path, simulations: usize) -> Result<()> {
        let (name, script) = match engine {
            Engine::Slurm => ("array.sbatch", SLURM.replace("@TASKS@", &self.tasks.to_string())),
            Engine::Dask => ("run.py", DASK.to_owned()),
        };
        let directory = path::absolute(directory).map_err(|error| unwritable(directory, &error))?;
        let tasks = (1..=self.tasks).map(|number| self.task(number, &directory));
        let tasks = tasks.collect::<Result<Vec<_>>>()?.concat();
        let write = |name: &str, text: &str| {
            let file = directory.join(name);
            fs::write(&file, text).map_err(|error| unwritable(&file, &error))
        };
        write("tasks", &tasks)?;
        write(name, &script)?;
        let script = quoted(&directory.join(name))?;
        let start = match engine {
            Engine::Slurm => format!("sbatch {script}"),
            Engine::Dask => format!("python3 {script} [ADDRESS OF THE SCHEDULER]"),
        };
        let results = quoted(&directory.join("results"))?;
        print(&format!(
            "{simulations} simulations in {} tasks. Every machine needs this directory and this executable. Then:\n\n  \
             {start}\n  manycore figures{} --merge {results} --out figures\n",
            self.tasks,
            self.which()?,
        ))
    }

    /// A line with a command for a shell.
    fn task(&self, number: usize, directory: &Path) -> Result<String> {
        let executable = env::current_exe()
            .map_err(|error| Failure::failed(format!("cannot find this executable: {error}")))?;
        Ok(format!(
            "{} figures{} --piece {number}/{} --cache {} --workers 1 -q\n",
            quoted(&executable)?,
            self.which()?,
            self.tasks,
            quoted(&directory.join("results"))?,
        ))
    }

    /// The arguments that choose the figures and their extent. Files have absolute paths.
    fn which(&self) -> Result<String> {
        let mut words = String::new();
        // A command without names means all figures, also those of later versions. The names fix
        // the figures of this version.
        for id in &self.options.ids {
            let word = if id.contains('/') || id.ends_with(".toml") {
                quoted(&path::absolute(id).unwrap_or_else(|_| PathBuf::from(id)))?
            } else {
                id.clone()
            };
            words += &format!(" {word}");
        }
        for (is_asked, flag) in [(self.options.bands, " --bands"), (self.options.quick, " --quick")]
        {
            words += if is_asked { flag } else { "" };
        }
        Ok(words)
    }
}

/// As a word of a shell.
fn quoted(path: &Path) -> Result<String> {
    let word = path.to_str().and_then(|text| shlex::try_quote(text).ok());
    word.map(std::borrow::Cow::into_owned).ok_or_else(|| {
        Failure::bad_input(
            format!("'{}' cannot be written into a script", path.display()),
            "use a path of letters",
        )
    })
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::bad_input(
        format!("cannot write '{}': {error}", path.display()),
        "give a directory that can be written",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_one_of_those_that_there_are() {
        assert_eq!("3/64".parse(), Ok(Piece { number: 3, of: 64 }));
        assert_eq!("1/1".parse(), Ok(Piece { number: 1, of: 1 }));
        for wrong in ["0/4", "5/4", "4", "4/", "a/b", "1/0"] {
            assert!(wrong.parse::<Piece>().is_err(), "{wrong}");
        }
    }
}
