//! Simulates a figure on a machine, and on possible variants of that machine.

use manycore_bench::Failure;
use manycore_bench::simulated::{Plan, SimulatorPool, variants};
use manycore_measure::{Claim, Measurement};
use manycore_sim::{Model, model};

use crate::figure::Figure;

/// What came of a figure.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// The figure.
    pub figure: Figure,
    /// The figure's records, with the range over variants of the machine if those were requested.
    pub measurements: Vec<Measurement>,
    /// Its claims, in its order.
    pub claims: Vec<Claim>,
}

/// What [`run()`] simulates of a figure.
pub fn plan(figure: &Figure, bands: bool, pool: &SimulatorPool) -> Result<Plan, Failure> {
    let machines = machines(figure, bands)?;
    let asking =
        machines.iter().map(|machine| |pool: &SimulatorPool| figure.workload.run(machine, pool));
    Plan::of(pool, asking).map_err(|failure| about(figure, failure))
}

/// The machine and, with `bands`, its variants.
fn machines(figure: &Figure, bands: bool) -> Result<Vec<Model>, Failure> {
    let machine = model::find(&figure.machine)
        .map_err(|problem| about(figure, Failure::Usage(problem.to_string())))?;
    Ok(if bands { variants(&machine) } else { vec![machine] })
}

fn about(figure: &Figure, failure: Failure) -> Failure {
    match failure {
        Failure::Usage(text) => Failure::Usage(format!("{}: {text}", figure.id)),
        Failure::Failed(text) => Failure::Failed(format!("{}: {text}", figure.id)),
    }
}

/// Simulates a figure, with `bands` on all variants of the machine, and judges its claims.
pub fn run(figure: Figure, bands: bool, pool: &SimulatorPool) -> Result<Reproduction, Failure> {
    let machines = machines(&figure, bands)?;
    let run = |machine| figure.workload.run(machine, pool).map_err(|why| about(&figure, why));
    let runs = machines.iter().map(run);
    let mut runs = runs.collect::<Result<Vec<_>, _>>()?;
    let variants: Vec<&[Measurement]> = runs.iter().map(Vec::as_slice).collect();
    let claims = figure.claims.iter().map(|claim| claim.judge(&figure.id, &variants)).collect();
    let others = runs.split_off(1);
    let mut measurements = runs.swap_remove(0);
    for (number, record) in measurements.iter_mut().enumerate() {
        record.parameters.insert("figure".to_owned(), figure.id.as_str().into());
        if !others.is_empty() {
            let values = || others.iter().map(|run| run[number].value).chain([record.value]);
            (record.low, record.high) = (values().reduce(f64::min), values().reduce(f64::max));
        }
    }
    Ok(Reproduction { figure, measurements, claims })
}
