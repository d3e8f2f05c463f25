//! What the kernel says of a program while it runs.
//!
//! `manycore-kernel-trace` asks the kernel, and its results are in this crate's model. So it
//! depends on this crate, and the recorder uses it through these two traits. Nothing here needs
//! libbpf, or a privilege.

use std::path::Path;
use std::time::Duration;

use crate::analyze::assemble::{KernelSeen, Watched};
use crate::analyze::cpu_samples::Samples;
use crate::analyze::futex::{Count, Futexes};
use crate::clock::Clock;

/// Watches the kernel's locks, and the waits for futexes of the program's own.
pub trait KernelWatch {
    /// Reads the new data; call this several times a second, or some data may be dropped.
    fn sample(&mut self);

    /// The totals of each place where threads wait for futexes; `None` if it is too early to count
    /// again.
    fn count_futexes(&mut self) -> Option<Vec<Count>>;

    /// All waits for futexes until now.
    fn futexes(&mut self) -> Futexes;

    /// Stops, and gives names to what was seen.
    fn finish(self: Box<Self>) -> KernelSeen;
}

/// Samples the stacks of threads that are on a CPU.
pub trait CpuSampler {
    /// Reads what has come meanwhile.
    fn sample(&mut self);

    /// Stops; what was sampled ran so long.
    fn finish(self: Box<Self>, run: Duration) -> Samples;
}

/// What is watched in addition to what the library counts.
#[derive(Default)]
pub struct Beside {
    /// The kernel.
    pub watch: Option<Box<dyn KernelWatch>>,
    /// Samples of the CPU time, or why there are none; `None` if they were not requested.
    pub sampler: Option<Result<Box<dyn CpuSampler>, String>>,
}

impl Beside {
    /// Has both read what has come.
    pub(super) fn sample(&mut self) {
        self.watch.iter_mut().for_each(|watch| watch.sample());
        self.sampler.iter_mut().flatten().for_each(|sampler| sampler.sample());
    }

    /// See [`KernelWatch::count_futexes`].
    pub(super) fn count_futexes(&mut self) -> Option<Vec<Count>> {
        self.watch.as_mut()?.count_futexes()
    }

    /// Ends both. The result covers the programs that have run since then with this preloaded
    /// library.
    pub(super) fn finish(self, since: &Clock, library: Option<&Path>) -> Watched {
        let Self { mut watch, sampler } = self;
        let mut futexes = watch.as_mut().map(|watch| watch.futexes()).unwrap_or_default();
        futexes.library = library.map(Into::into);
        // Before the samples, whose end takes a while, and before the look-up of names, which takes
        // long: the watch lasts as long as the program.
        let kernel = watch.map(KernelWatch::finish);
        let samples = sampler.map(|sampler| {
            let mut samples = sampler?.finish(since.elapsed());
            samples.library = library.map(Into::into);
            Ok(samples)
        });
        Watched { samples, futexes, kernel, ..Watched::default() }
    }
}
