//! Other machines that are possible: a sweep over unknown properties.

use manycore_sim::Model;
use manycore_sim::model::CHOICES;

/// By what the latencies of transfers are multiplied.
const LATENCIES: [f64; 3] = [1.0, 0.7, 1.4];

/// How long a core keeps a line, in cycles: two values in addition to the model's.
const HOLDS: [f64; 3] = [0.0, 150.0, 75.0];

/// The unchanged model, then each other combination of latencies, hold and policy of combining: 18
/// machines.
pub fn variants(model: &Model) -> Vec<Model> {
    let mut variants = Vec::new();
    let own = model.machine().directory.hold as f64;
    let others = HOLDS.into_iter().filter(|hold| *hold != own).take(2).map(Some);
    let holds: Vec<_> = [None].into_iter().chain(others).collect();
    for policy in 0..CHOICES.len() {
        for &hold in &holds {
            for latency in LATENCIES {
                variants.push(changed(model, latency, hold, policy as f64));
            }
        }
    }
    variants
}

/// The model as it is.
pub(crate) fn alone(model: &Model) -> Vec<String> {
    vec![model.to_toml()]
}

/// The model as it is, or a sweep.
pub(crate) fn of(model: &Model, swept: bool) -> Vec<String> {
    if swept { sweep(model) } else { alone(model) }
}

/// The unchanged model, and a model whose lines can be taken away immediately. A long hold would
/// hide the moment at which a thread notices a change.
pub(crate) fn with_and_without_hold(model: &Model) -> Vec<String> {
    vec![model.to_toml(), changed(model, 1.0, Some(0.0), 0.0).to_toml()]
}

/// The unchanged model, then the smallest and the largest latencies and hold times together.
pub(crate) fn corners(model: &Model) -> Vec<String> {
    let corner = |latency, hold| changed(model, latency, Some(hold), 0.0).to_toml();
    vec![
        model.to_toml(),
        corner(0.7, 0.0),
        corner(0.7, 150.0),
        corner(1.4, 0.0),
        corner(1.4, 150.0),
    ]
}

/// The same as the text of their files.
pub(crate) fn sweep(model: &Model) -> Vec<String> {
    variants(model).iter().map(Model::to_toml).collect()
}

fn changed(model: &Model, latency: f64, hold: Option<f64>, policy: f64) -> Model {
    let mut model = model.clone();
    for constant in &mut model.constants {
        let value = match constant.field.path {
            "directory.hold" => hold.unwrap_or(constant.value),
            // The model's own policy comes first.
            "directory.combining" => (constant.value + policy) % CHOICES.len() as f64,
            _ if constant.field.is_transfer() => {
                (constant.value * latency).round().max(constant.field.least)
            }
            _ => constant.value,
        };
        // The range is the knowledge about the machine; a file whose value is outside of its range
        // would be refused.
        constant.value = value;
        constant.low = constant.low.min(value);
        constant.high = constant.high.max(value);
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;
    use manycore_sim::model;

    #[test]
    fn a_sweep_begins_with_the_model_and_repeats_nothing() {
        for name in model::names() {
            let model = model::find(name).unwrap();
            let variants = sweep(&model);
            let machine = |text: &String| Model::parse("variant", text).unwrap().machine();
            assert_eq!(machine(&variants[0]), model.machine());
            let mut distinct: Vec<String> =
                variants.iter().map(|text| format!("{:?}", machine(text))).collect();
            distinct.sort();
            distinct.dedup();
            assert_eq!((variants.len(), distinct.len()), (18, 18), "{name}");
        }
    }
}
