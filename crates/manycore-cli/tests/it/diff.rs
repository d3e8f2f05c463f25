//! `manycore diff`: its output for two profiles, and its errors for files that are no profiles.

use std::fs;

use crate::support::{directory, failure, manycore, printed};
use serde_json::Value;

const EXAMPLE: &str = include_str!("../../../manycore-profile/src/profile/example.json");

#[test]
fn a_table_and_json_say_the_same() {
    let directory = directory();
    let [before, after] = ["before.json", "after.json"].map(|name| directory.path().join(name));
    fs::write(&before, EXAMPLE).unwrap();
    // The first lock is waited for half as long; the third has another name.
    let changed = EXAMPLE.replacen("1120000000", "560000000", 1).replace("0x4060", "0x4070");
    fs::write(&after, changed).unwrap();
    let [before, after] = [before, after].map(|path| path.to_str().unwrap().to_owned());
    let table = printed(&mut manycore(&["diff", &before, &after]));
    let rows: Vec<&str> = table.lines().collect();
    let first = rows.iter().position(|row| row.starts_with("cache_lock")).unwrap();
    assert!(rows[first].contains("before") && rows[first].contains("0.544"), "{table}");
    assert!(rows[first + 1].contains("after") && rows[first + 1].contains("0.272"), "{table}");
    assert!(rows[first + 2].contains("ratio") && rows[first + 2].contains("0.50x"), "{table}");
    assert!(rows.iter().all(|row| row.chars().count() <= 120), "{table}");
    assert!(table.contains("`manycore compare` tells a difference from chance"), "{table}");

    let json = printed(&mut manycore(&["diff", "--json", &before, &after]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["locks"][0]["name"], "cache_lock (server)");
    assert_eq!(json["locks"][0]["ratio"]["wait"], 0.5);
    let of = |name: &str| {
        let mut locks = json["locks"].as_array().unwrap().iter();
        locks.find(|lock| lock["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    };
    assert!(of("server+0x4070")["before"].is_object(), "the same without its offset");
    let shortest = printed(&mut manycore(&["diff", "--top", "1", &before, &after]));
    assert!(shortest.contains("more locks, which changed less"), "{shortest}");
}

#[test]
fn the_file_that_is_no_profile_is_named() {
    let directory = directory();
    let [good, bad] = ["good.json", "bad.json"].map(|name| directory.path().join(name));
    fs::write(&good, EXAMPLE).unwrap();
    fs::write(&bad, &EXAMPLE[..1000]).unwrap();
    let [good, bad] = [good, bad].map(|path| path.to_str().unwrap().to_owned());
    for arguments in [["diff", good.as_str(), bad.as_str()], ["diff", bad.as_str(), good.as_str()]]
    {
        let said = failure(2, &mut manycore(&arguments));
        assert!(said.contains("bad.json") && said.lines().count() == 1, "{said}");
    }
}
