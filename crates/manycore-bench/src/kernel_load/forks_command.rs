//! `manycore bench forks`: processes that make files, memory, processes and pipes.

use std::path::{Path, PathBuf};

use super::{Mix, What};
use clap::Args;
use rustix::fs::statfs;

use super::command::{Measuring, usual_numbers};
use super::output::Wording;
use crate::front::{Benchmark, Outcome, PlotOptions};
use manycore_compare::trial::TrialDir;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench forks
  manycore bench forks --processes 1,2,4,8,16 --plot forks.svg
  manycore bench forks --mix fork:1 --rounds 31 --json > forks.json

Workload:
  Each process does one job after the other, as in AIM7's multiuser mix: makes, writes,
  reads, renames and removes a file (files), maps and unmaps memory and lets its heap
  grow (memory), makes a process (fork) or starts /bin/true (exec), sends bytes through
  a pipe (pipes), computes (arithmetic). --seed decides the order, weights how often
  each comes. Files are in a directory of their own, on a tmpfs.

Output:
  jobs/min     of all processes together, from runs without a profile
  of linear    the speed-up over as many times as there are CPUs for it
  Then the kernel's locks, from other runs: how much of the processes' time they were
  waited for. That takes root, or what the line in its place says.

Exit status:
  0   measured, with the kernel's locks or without
  1   the load failed
  2   bad usage
";

/// The number of tmpfs, from the kernel's header `magic.h`.
const TMPFS: i64 = 0x0102_1994;

/// Many processes: jobs a minute, and which of the kernel's locks they wait for
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Numbers of processes [default: powers of two, up to four times the CPUs]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    processes: Vec<u32>,
    /// Kinds of jobs, and how often each comes
    #[arg(long, value_name = "KIND:WEIGHT,..", default_value_t = Mix::default(), value_parser = mix)]
    mix: Mix,
    /// Where files are made [default: TMPDIR if it is on a tmpfs, or /dev/shm]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
}

fn mix(text: &str) -> Result<Mix> {
    Ok(text.parse::<Mix>()?)
}

impl Benchmark for Options {
    const NAME: &'static str = "forks";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let directory = self.directory.clone().unwrap_or_else(usual_directory);
        let is_tmpfs = is_tmpfs(&directory);
        if !is_tmpfs {
            terminal.note(format_args!(
                "'{}' is not on a tmpfs: the locks of another file system, and its disk, take part",
                directory.display()
            ));
        }
        let room = TrialDir::under(&directory, "let --directory name one that you may write to")?;
        let processes =
            if self.processes.is_empty() { usual_numbers() } else { self.processes.clone() };
        let what = What::Forks { mix: self.mix, directory: room.work().to_owned() };
        let parameters = vec![
            ("mix", self.mix.to_string().as_str().into()),
            ("filesystem", if is_tmpfs { "tmpfs" } else { "other" }.into()),
        ];
        let subject = Wording {
            workload: "forks",
            those: "processes",
            operations: "jobs",
            per: 60.0,
            unit: "/min",
            parameters,
        };
        self.measuring.run(&subject, &[what], &processes, &room, terminal)
    }

    fn json(&self) -> bool {
        self.measuring.json
    }

    fn plot(&self) -> Option<&PlotOptions> {
        Some(&self.measuring.plot)
    }
}

fn usual_directory() -> PathBuf {
    let (asked, memory) = (std::env::temp_dir(), PathBuf::from("/dev/shm"));
    if !is_tmpfs(&asked) && is_tmpfs(&memory) { memory } else { asked }
}

fn is_tmpfs(directory: &Path) -> bool {
    statfs(directory).is_ok_and(|system| system.f_type == TMPFS)
}
