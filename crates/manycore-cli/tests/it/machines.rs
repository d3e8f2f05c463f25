//! `manycore machines`: the list, one machine, and a model of this host.

use crate::support::manycore;

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
