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
