//! Whatever a machine's file contains, reading it ends with a model or with one line that describes
//! the fault.

use manycore_sim::model::Model;

#[test]
fn machine_models() {
    let valid = [
        include_str!("../../machines/xeon-4x6-like.toml"),
        include_str!("../../machines/xeon-8280m-2x28x2-like.toml"),
    ];
    manycore_fuzz::texts("a machine model", &valid, |text| {
        match Model::parse("machine.toml", text) {
            Ok(model) => drop(model.machine()),
            Err(problem) => assert!(problem.to_string().contains("machine.toml"), "{problem}"),
        }
    });
}
