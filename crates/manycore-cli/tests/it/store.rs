//! `manycore store`: the files of a store that a program has left.

use std::process::Command;

use timestone::{Map, Options, Store};

use crate::support::{directory, manycore, printed};

fn store(what: &str, path: &std::path::Path) -> Command {
    manycore(&["store", what, path.to_str().unwrap()])
}

#[test]
fn a_store_is_probed_verified_and_dumped() {
    let directory = directory();
    let path = directory.path().join("bank");
    let store_of = || {
        let options = Options::default().with_journal_bytes(1 << 20).with_heap_bytes(16 << 20);
        Store::open_with(&path, options).unwrap()
    };
    let bank = store_of();
    let map: Map<u64, u64> = bank.map("accounts").unwrap();
    let mut me = bank.register().unwrap();
    me.run(|tx| map.insert(tx, 1, 0xabc)).unwrap();
    let output = store("verify", &path).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("open already") && said.contains("end the program"), "{said}");
    drop(me);
    bank.close().unwrap();

    let table = printed(&mut store("probe", &path));
    assert!(table.contains("closed        yes\n"), "{table}");
    let json: serde_json::Value =
        serde_json::from_str(&printed(store("verify", &path).arg("--json"))).unwrap();
    // The root, the entry of the catalog, a node and a leaf.
    assert_eq!((json["objects"].as_u64(), json["transactions"].as_u64()), (Some(4), Some(0)));
    let dump = printed(&mut store("dump", &path));
    assert!(dump.lines().count() == 4 && dump.contains(" abc"), "{dump}");

    // One bit of the image.
    let file = ["image.0", "image.1"].map(|file| path.join(file));
    for file in file {
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[80] ^= 4;
        std::fs::write(file, bytes).unwrap();
    }
    let output = store("verify", &path).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("is damaged at byte 0"), "{said}");
    let missing = store("probe", &directory.path().join("nowhere")).output().unwrap();
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(missing.status.code() == Some(2) && said.contains("name the directory"), "{said}");
}

#[test]
fn a_store_is_copied_and_compacted() {
    let directory = directory();
    let [path, copy] = ["bank", "copy"].map(|name| directory.path().join(name));
    let options = Options::default().with_journal_bytes(1 << 20).with_heap_bytes(64 << 20);
    let bank = Store::open_with(&path, options).unwrap();
    let map: Map<u64, [u64; 50]> = bank.map("accounts").unwrap();
    let mut me = bank.register().unwrap();
    for key in 0..400 {
        me.run_with(timestone::Durability::EVENTUAL, |tx| map.insert(tx, key, [key; 50])).unwrap();
    }
    bank.sync().unwrap();
    for key in 1..400 {
        me.run_with(timestone::Durability::EVENTUAL, |tx| map.remove(tx, &key)).unwrap();
    }
    drop(me);
    bank.close().unwrap();

    let copied = printed(store("backup", &path).arg(&copy));
    assert!(copied.starts_with("copied ") && copied.contains(" objects of "), "{copied}");
    let output = store("backup", &path).arg(&copy).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("name a directory that is empty"), "{said}");
    let compacted = printed(&mut store("compact", &copy));
    let objects = |line: usize| -> u64 {
        let mut words = compacted.lines().nth(line).unwrap().split_whitespace();
        words.nth(1).unwrap().parse().unwrap()
    };
    assert!(objects(1) < objects(0), "{compacted}");
    for path in [path, copy] {
        let bank = Store::open_with(&path, options).unwrap();
        let map: Map<u64, [u64; 50]> = bank.map("accounts").unwrap();
        let found = bank.register().unwrap().read(|now| (map.len(now), map.get(now, &0)));
        assert_eq!(found, (1, Some([0; 50])));
    }
}

#[test]
fn a_store_is_measured() {
    let directory = directory();
    let bench = |arguments: &[&str]| {
        let mut command = manycore(&["store", "bench", "--directory"]);
        command.arg(directory.path()).args(["--rounds", "3", "--slice", "0.02"]).args(arguments);
        command
    };
    let json = printed(&mut bench(&["--threads", "1,2", "--update", "50", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let measurements = json["measurements"].as_array().unwrap();
    let ours = measurements.iter().filter(|one| one["sync"] == "timestone");
    let ours: Vec<_> = ours.map(|one| (&one["threads"], one["value"].as_f64())).collect();
    assert!(ours.len() == 2 && ours.iter().all(|(_, value)| *value > Some(0.0)), "{ours:?}");
    let table = printed(&mut bench(&["--threads", "1", "--update", "0", "--promise", "eventual"]));
    assert!(table.contains("timestone") && table.contains("1 threads, 0 % put"), "{table}");
    for (arguments, said) in [
        (["--update", "101"], "a percentage"),
        (["--against", "none-such"], "no engine none-such"),
        (["--against", "memory"], "add --promise eventual"),
        (["--directory", "nowhere"], "name a directory"),
    ] {
        let output = manycore(&["store", "bench"]).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(said), "{error}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "stores are removed");
}
