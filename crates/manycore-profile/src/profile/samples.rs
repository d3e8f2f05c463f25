//! Where the CPU time went, from sampled stacks.

use serde::{Deserialize, Serialize};

use super::frame::Frame;

/// Samples of the program's threads while they were on a CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSamples {
    /// The source of the samples; null if there are none.
    pub source: Option<SampleSource>,
    /// The requested number of samples in a second of a thread's CPU time.
    pub rate: u32,
    /// How many were.
    pub taken: u64,
    /// Samples for which there was no room.
    pub lost: u64,
    /// Whether the time in the kernel was sampled as well. If not, shares are of the time outside
    /// of it.
    pub kernel_permitted: bool,
    /// The shares of all threads together.
    pub shares: Shares,
    /// The threads, the most sampled first; those beyond the first few hundred are one, with the
    /// number 0.
    pub threads: Vec<SampledThread>,
    /// The shares for each of the timeline's intervals; empty without a timeline.
    pub intervals: Vec<Shares>,
    /// The functions in which threads were, the most sampled first.
    pub functions: Vec<SampledFunction>,
    /// Whole stacks: first spinning ones, and then others; most sampled first in each group.
    pub stacks: Vec<SampledStack>,
    /// What these samples cannot show, one sentence each.
    pub limits: Vec<String>,
    /// Why there are none; null if there are.
    pub refused: Option<String>,
}

/// By what samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleSource {
    /// The processor counts its cycles.
    Cycles,
    /// A clock of the kernel that runs with the thread.
    CpuClock,
}

/// What a thread does in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// It computes.
    Program,
    /// It is in the kernel.
    Kernel,
    /// It spins for a lock of the program's own.
    SpinProgram,
    /// Spinning for a lock of the preloaded library, which measures this as well.
    SpinLibrary,
    /// It spins for a lock of the kernel.
    SpinKernel,
}

/// Shares of the CPU time, 0 to 1, which add up to 1. Unknown shares are null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// How many samples this is worked out from.
    pub samples: u64,
    /// [`Part::Program`].
    pub program: f64,
    /// [`Part::Kernel`].
    pub kernel: Option<f64>,
    /// [`Part::SpinProgram`].
    pub spin_program: f64,
    /// [`Part::SpinLibrary`].
    pub spin_library: f64,
    /// [`Part::SpinKernel`].
    pub spin_kernel: Option<f64>,
}

/// A thread that was sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledThread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// The name that it had last.
    pub name: String,
    /// What it did.
    pub shares: Shares,
}

/// A function in which threads were: for spinning threads the function that spins, for others the
/// innermost function that is not inlined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledFunction {
    /// Its name, or the place in a stripped file.
    pub name: String,
    /// Its file.
    pub module: String,
    /// What threads do there.
    pub part: Part,
    /// Samples.
    pub samples: u64,
    /// The share of all sampled CPU time, from 0 to 1.
    pub share: f64,
}

/// Calls that threads were in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledStack {
    /// What they did there.
    pub part: Part,
    /// Samples.
    pub samples: u64,
    /// The share of all sampled CPU time, from 0 to 1.
    pub share: f64,
    /// The calls, innermost first: those in the kernel, and then the program's.
    pub frames: Vec<Frame>,
}
