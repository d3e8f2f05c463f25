//! The kernel's side of a profile.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use manycore_kernel_trace::{Means, Refusal, Request, Scope, Watch};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;
use manycore_profile::profile::Profile;
use manycore_profile::record::Beside;
use manycore_profile::record::kernel_only::{Attached, observe_kernel};
use manycore_profile::record::kernel_side::KernelWatch;

use super::samples::Rate;

/// What of the kernel is wanted.
#[derive(Args, Debug)]
pub struct KernelOptions {
    /// Watch the kernel's locks, too: by the first means that works, or by this one
    #[arg(
        long,
        value_enum,
        value_name = "MEANS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto"
    )]
    kernel: Option<Means>,
    /// With --kernel: the waits of all processes, not those of CMD and its children alone
    #[arg(long, requires = "kernel", conflicts_with = "pid")]
    system: bool,
    /// With --kernel, by BPF: the waits in this cgroup and below, as of a container
    #[arg(long, value_name = "PATH", requires = "kernel", conflicts_with_all = ["pid", "command"])]
    cgroup: Option<String>,
    /// With --kernel: the waits of this process, until it ends or ^C; there is no CMD then
    #[arg(long, requires = "kernel", conflicts_with = "command")]
    pid: Option<u32>,
    /// With --kernel and without CMD: for this long, and not until ^C
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "kernel", conflicts_with = "command")]
    duration: Option<Duration>,
}

impl KernelOptions {
    /// Whether the kernel is to be watched.
    pub fn is_wanted(&self) -> bool {
        self.kernel.is_some()
    }

    /// Starts to observe before a command is started. If the kernel refuses, this is reported but
    /// is no failure: the program's own side still has its data.
    pub fn start(&self, terminal: &Terminal) -> Option<Box<dyn KernelWatch>> {
        let scope = if self.system { Scope::System } else { Scope::Command };
        match self.watch(scope)? {
            Ok(watch) => Some(Box::new(watch)),
            Err(why) => {
                terminal.note(format_args!("the kernel is not watched: {why}"));
                None
            }
        }
    }

    fn watch(&self, scope: Scope) -> Option<std::result::Result<Watch, Refusal>> {
        Some(Watch::start_with_futexes(self.kernel?, &Request { scope }))
    }

    /// Observes the system or a process, without starting anything, and samples the process.
    pub fn alone(&self, rate: Rate, terminal: &Terminal) -> Result<Profile> {
        let process = self.pid.map(Attached::to).transpose()?;
        let mut inbox = Inbox::open()?;
        // First, because the watch counts from its start on, and this takes a while.
        let sampler = self.pid.and_then(|pid| rate.start(Scope::Process(pid)));
        let scope = self.pid.map_or(Scope::System, Scope::Process);
        let watch = self.watch(scope).expect("it is wanted");
        let watch = match &self.cgroup {
            Some(path) => watch.and_then(|watch| watch.only_cgroup(path)),
            None => watch,
        };
        let watch = watch.map_err(|why| {
            Failure::bad_input(
                format!("the kernel cannot be watched: {why}"),
                "profile a command to see its own side: manycore profile -- CMD",
            )
        })?;
        let beside = Beside { watch: Some(Box::new(watch)), sampler };
        Ok(observe_kernel(process.as_ref(), beside, self.duration, &mut inbox, terminal))
    }
}

/// The error if there is no command, although one is needed.
pub fn needs_command(command: &[OsString], options: &KernelOptions) -> Result<bool> {
    match (command.is_empty(), options.is_wanted()) {
        (true, false) => {
            Err(Failure::bad_input("there is no CMD", "name a program, or use --kernel"))
        }
        (is_empty, _) => Ok(!is_empty),
    }
}
