//! Every mechanism at every point, on every variant of the machine.

use manycore_measure::Measurement;

use super::job::{Finding, Job};
use super::pool::SimulatorPool;
use crate::run_records::RunRecords;

/// The simulated mechanisms and points. The first mechanism is the base line.
pub(crate) struct SimulatedCampaign<'a, P> {
    pub points: &'a [P],
    pub mechanisms: &'a [String],
    /// Models of machines as the text of their files; the first one is unchanged.
    pub machines: &'a [String],
    pub pool: &'a SimulatorPool,
}

impl<P> SimulatedCampaign<'_, P> {
    /// Simulates. A job is made from a point, a mechanism and a machine. A record is made from the
    /// results of a point and a mechanism on all machines, compared with the base line on the same
    /// machines.
    pub fn run(
        &self,
        job: impl Fn(&P, &str, &str) -> Job,
        record: impl Fn(&P, &str, &[Finding], Option<&[Finding]>) -> Measurement,
    ) -> RunRecords {
        let mut jobs = Vec::new();
        for point in self.points {
            for mechanism in self.mechanisms {
                jobs.extend(self.machines.iter().map(|machine| job(point, mechanism, machine)));
            }
        }
        let mut answers = self.pool.run(&jobs).into_iter().zip(&jobs);
        let mut found = RunRecords { measurements: Vec::new(), failures: Vec::new() };
        for point in self.points {
            let mut base: Option<Vec<Finding>> = None;
            for (number, mechanism) in self.mechanisms.iter().enumerate() {
                let of_machine = |(answer, job): (Result<Finding, String>, &Job)| {
                    answer.map_err(|error| format!("{mechanism}, {} threads: {error}", job.threads))
                };
                let variants = answers.by_ref().take(self.machines.len()).map(of_machine);
                match variants.collect::<Vec<_>>().into_iter().collect::<Result<Vec<_>, _>>() {
                    Ok(findings) => {
                        let record = record(point, mechanism, &findings, base.as_deref());
                        found.measurements.push(record);
                        base = base.or((number == 0).then_some(findings));
                    }
                    Err(error) => found.failures.push(error),
                }
            }
        }
        found
    }
}
