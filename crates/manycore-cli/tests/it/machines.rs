//! `manycore machines`: the list, one machine, and a model of this host.

use crate::support::{manycore, skipped, stderr};

#[test]
fn machines_are_listed() {
    let output = manycore(&["machines"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for (name, cpus) in [("xeon-8180-8x28x2-like", "448 CPUs"), ("xeon-4x6-like", "24 CPUs")] {
        let line =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(cpus), "{line}");
    }
}

#[test]
fn a_machine_is_shown_with_or_without_like() {
    let show = |name: &str| manycore(&["machines", name, "--json"]).output().unwrap().stdout;
    let shown = show("xeon-4x6");
    assert_eq!(shown, show("xeon-4x6-like"));
    let json: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!((&json["schema"], &json["cpus"]), (&1.into(), &24.into()));
}

#[test]
fn mistakes_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("own.toml");
    std::fs::write(&path, "schema = 1\nname = \"own\"\nsummary = \"mine\"\n").unwrap();
    let path = path.to_str().unwrap();
    for (name, expected) in [
        ("nosuch", "there is no machine `nosuch`; choose from "),
        (path, "own.toml: `topology.distance` is missing or no table; "),
        ("./nosuch.toml", "./nosuch.toml: cannot be read: "),
    ] {
        let output = manycore(&["machines", name]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn this_host_is_measured_and_its_model_can_be_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("here.toml");
    let path = path.to_str().unwrap();
    let output = manycore(&["machines", "measure", "-q", "--out", path]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let output = manycore(&["machines", path, "--json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["name"], "here");
    let constants = json["constants"].as_array().unwrap();
    let measured = constants.iter().filter(|constant| constant["provenance"] == "measured").count();
    assert!(measured > 20, "{measured} of {} were measured", constants.len());
}

#[test]
fn a_model_is_derived_from_latencies_and_bursts() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../figures/measured/machines");
    let file = |name: &str| format!("{root}/{name}");
    let derive = |arguments: &[&str]| {
        manycore(&[&["machines", "derive"], arguments].concat()).output().unwrap()
    };
    let latencies = file("xeon-e7-8870-8x10-like.toml");
    let bursts = file("xeon-e7-8870-8x10-like.csv");
    let derived = derive(&["--latencies", &latencies, "--bursts", &bursts]);
    let kept = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../manycore-sim/machines/xeon-e7-8870-8x10-like.toml"
    );
    assert_eq!(String::from_utf8(derived.stdout).unwrap(), std::fs::read_to_string(kept).unwrap());
    let refused = |arguments: &[&str], word: &str| {
        let output = derive(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    };
    refused(&["--latencies", &bursts], "add --ghz and --like");
    refused(&["--latencies", &latencies, "--ghz", "2"], "leave them out");
    refused(&["--latencies", "nosuch.toml"], "cannot read 'nosuch.toml'");
    refused(&["--latencies", &latencies, "--bursts", &latencies], "another first line");
}

#[test]
fn latencies_and_bursts_of_this_host_make_a_model() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let [here, latencies, bursts] = ["here.toml", "latencies.toml", "bursts.csv"].map(path);
    let files = ["--out", &here, "--latencies", &latencies, "--bursts", &bursts];
    let output = manycore(&[&["machines", "measure", "-q"][..], &files].concat()).output().unwrap();
    if stderr(&output).contains("while the machine does nothing else") {
        skipped("the machine is busy");
        return;
    }
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let derived = ["machines", "derive", "--latencies", &latencies, "--bursts", &bursts];
    let output = manycore(&derived).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let model = String::from_utf8(output.stdout).unwrap();
    assert!(model.contains("one way of a hand-over") && model.contains("as here"), "{model}");
    assert!(model.contains("bursts: atomic additions to own lines"), "{model}");
}
