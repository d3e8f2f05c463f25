//! Lines that two calls on names of their own share, where at least one call writes: counted in a
//! simulated program, and the same on every machine.

use std::collections::BTreeMap;
use std::time::Duration;

use khronos_fs_simulated::{Options as FsOptions, Sync};
use khronos_workloads_simulated::calls::Call;
use khronos_workloads_simulated::sharing::shared_lines;
use manycore_measure::Mechanism;
use manycore_sim::Model;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::run_records::RunRecords;
use crate::simulated::{
    Finding, Job, Program, Run, SimulatedCampaign, SimulatedProgram, SimulatorPool, record, variant,
};
use crate::slice::{Pinning, Slice};
use crate::waits::Waits;

/// What to count.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine: only its lines matter.
    pub machine: Model,
    /// Mechanisms.
    pub syncs: Vec<String>,
    /// Calls, of which each is done beside each.
    pub calls: Vec<String>,
    /// Chains of a directory.
    pub chains: usize,
    /// The processes that simulate.
    pub pool: SimulatorPool,
}

/// Two calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pair {
    calls: [String; 2],
    chains: usize,
}

/// The metric.
const SHARED: &str = "count_shared_lines";

impl SimulatedProgram for Pair {
    const NAME: &'static str = "Pair";

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        let sync: Sync = run.job.mechanism.parse().map_err(|error| format!("{error}"))?;
        let call = |name: &String| Call::named(name).ok_or_else(|| format!("no call `{name}`"));
        let calls = [call(&self.calls[0])?, call(&self.calls[1])?];
        let options = FsOptions { chains: self.chains, ..FsOptions::new(sync) };
        let lines = run.simulate(|| shared_lines(options, calls))?.result?;
        // Nothing was timed.
        let slice =
            Slice { counts: vec![1; 2], elapsed_ns: 1.0, waits: Waits::default(), stuck: 0 };
        Ok(Finding { slice, sight: BTreeMap::from([(SHARED.to_owned(), lines as f64)]) })
    }
}

fn check(syncs: &[String], calls: &[String]) -> Result<(), Failure> {
    let unknown_sync = syncs.iter().find(|name| name.parse::<Sync>().is_err());
    let unknown = calls.iter().find(|name| Call::named(name).is_none());
    let fault = match (unknown_sync, unknown) {
        (Some(name), _) => {
            format!("no file system by `{name}`: choose from {}", super::own::syncs().join(", "))
        }
        (_, Some(name)) => {
            format!("no call `{name}`: choose from {}", Call::ALL.map(Call::name).join(", "))
        }
        _ => return Ok(()),
    };
    Err(Failure::Usage(fault))
}

/// Each two of the calls, once.
fn pairs(calls: &[String]) -> Vec<[String; 2]> {
    let with = |(number, one): (usize, &String)| -> Vec<[String; 2]> {
        calls[number..].iter().map(|two| [one.clone(), two.clone()]).collect()
    };
    calls.iter().enumerate().flat_map(with).collect()
}

/// The names of all pairs of the calls, such as `create unlink`.
pub fn names(calls: &[String]) -> Vec<String> {
    pairs(calls).iter().map(|pair| pair.join(" ")).collect()
}

/// Counts.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    check(&options.syncs, &options.calls)?;
    let pair = |calls| Pair { calls, chains: options.chains };
    let pairs: Vec<Pair> = pairs(&options.calls).into_iter().map(pair).collect();
    let campaign = SimulatedCampaign {
        points: &pairs,
        mechanisms: &options.syncs,
        machines: &variant::of(&options.machine, false),
        pool: &options.pool,
    };
    let job = |pair: &Pair, mechanism: &str, machine: &str| Job {
        machine: machine.to_owned(),
        cpus: None,
        mechanism: mechanism.to_owned(),
        threads: 2,
        program: Program::of(pair),
        measured: Duration::ZERO,
        pinning: Pinning::Each,
        seed: 1,
        every_turn: false,
        patient: false,
    };
    Ok(campaign.run(job, |pair, mechanism, findings, _| {
        let mut record = record::of("pairs", Mechanism::Sync(mechanism.to_owned()), findings, 1.0);
        // Only the lines were counted.
        record.metrics.clear();
        record.value = findings[0].sight[SHARED];
        (record.unit, record.low, record.high) = ("lines".to_owned(), None, None);
        record.threads = 2;
        record.machine.clone_from(&options.machine.name);
        record.seed = Some(1);
        record.parameters.insert("mix".to_owned(), pair.calls.join(" ").as_str().into());
        record.parameters.insert("chains".to_owned(), (pair.chains as f64).into());
        record
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_or_mechanism_that_there_is_not_is_named() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let text = |syncs: &[&str], calls: &[&str]| {
            check(&words(syncs), &words(calls)).unwrap_err().to_string()
        };
        assert!(text(&["mvrlu"], &["creat"]).contains("create, unlink"));
        assert!(text(&["mvrl"], &["create"]).contains("rcu, rlu, mvrlu"));
        let names = names(&words(&["create", "stat"]));
        assert_eq!(names, ["create create", "create stat", "stat stat"]);
    }
}
