//! Samples of the CPU time, as the page is given them.

use crate::profile::{CpuSamples, Part, SampleSource, SampledFunction, SampledStack, Shares};
use serde::Serialize;

use super::cut::Cut;

/// What of them is shown.
#[derive(Debug, Serialize)]
pub struct Samples {
    source: Option<SampleSource>,
    rate: u32,
    taken: u64,
    lost: u64,
    kernel_permitted: bool,
    shares: Shares,
    intervals: Vec<Shares>,
    functions: Vec<SampledFunction>,
    /// Those that spin.
    stacks: Vec<Stack>,
    limits: Vec<String>,
    refused: Option<String>,
}

#[derive(Debug, Serialize)]
struct Stack {
    part: Part,
    samples: u64,
    share: f64,
    frames: Vec<usize>,
}

impl Cut {
    /// As much of them as has room.
    pub fn samples(&mut self, samples: &CpuSamples) -> Samples {
        let functions = self.part("sampled functions", &samples.functions).iter();
        let functions = functions.map(|one| SampledFunction {
            name: self.text(&one.name),
            module: self.text(&one.module),
            ..*one
        });
        let functions = functions.collect();
        let spins: Vec<&SampledStack> =
            samples.stacks.iter().filter(|stack| stack.part.spins()).collect();
        let stacks = self.part("sampled stacks", &spins).iter().map(|stack| {
            let SampledStack { part, samples, share, .. } = **stack;
            Stack { part, samples, share, frames: self.calls(&stack.frames) }
        });
        let stacks = stacks.collect();
        let limits = self.part("limits of samples", &samples.limits).iter();
        Samples {
            source: samples.source,
            rate: samples.rate,
            taken: samples.taken,
            lost: samples.lost,
            kernel_permitted: samples.kernel_permitted,
            shares: samples.shares,
            limits: limits.map(|limit| self.text(limit)).collect(),
            intervals: self.part("intervals of samples", &samples.intervals).to_vec(),
            functions,
            stacks,
            refused: samples.refused.as_deref().map(|why| self.text(why)),
        }
    }
}
