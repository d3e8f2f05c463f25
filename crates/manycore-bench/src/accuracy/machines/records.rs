//! Records of the compared points.

use manycore_measure::{Measurement, Mechanism, Provenance};

use super::{Compared, PublishedAccuracy};

/// For each point the published record and the simulated one.
pub(super) fn of(found: &PublishedAccuracy, seed: u64) -> Vec<Measurement> {
    found.compared.iter().flat_map(|one| both(found, one, seed)).collect()
}

fn both(found: &PublishedAccuracy, one: &Compared, seed: u64) -> [Measurement; 2] {
    let set = &found.sets[one.set];
    let machine = &set.machines[one.point.machine];
    let subject = &set.subjects[one.point.subject];
    let record = |value: f64, provenance| {
        let ours = subject.ours.clone().unwrap_or_default();
        let mut record =
            Measurement::new(&set.kind.to_string(), Mechanism::Sync(ours), &set.unit, value);
        record.threads = one.point.threads;
        record.provenance = provenance;
        record.machine.clone_from(&machine.model);
        let mut parameter = |name: &str, value: &str| {
            record.parameters.insert(name.to_owned(), value.into());
        };
        parameter("set", &set.name);
        parameter("measured_machine", &machine.name);
        parameter("case", &set.cases[one.point.case].name);
        parameter("subject", &subject.name);
        record
    };
    let mut simulated = record(one.simulated_value, Provenance::Simulated);
    simulated.seed = Some(seed);
    [record(one.point.value, Provenance::Published), simulated]
}
