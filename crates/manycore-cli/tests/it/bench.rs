//! `manycore bench`: the command line. The measurements are tested in their own crates.

use crate::support::{failure, manycore, printed};
use serde_json::Value;

fn bench(arguments: &[&str]) -> std::process::Command {
    manycore(&[&["bench"], arguments].concat())
}

#[test]
fn a_grid_of_points_as_json_and_as_tables() {
    let short = ["lock", "--lock", "futex,std", "--threads", "1,3", "--section", "0ns,about:1us"];
    let short = [&short[..], &["--duration", "4ms", "--slice", "2ms", "-q"]].concat();
    let text = printed(&mut bench(&[&short[..], &["--json"]].concat()));
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results["schema"], 1);
    assert!(results["host"]["cpus"].as_u64().unwrap() >= 1);
    let measurements = results["measurements"].as_array().unwrap();
    assert_eq!(measurements.len(), 2 * 2 * 3);
    for measurement in measurements {
        assert_eq!(measurement["workload"], "lock");
        assert_eq!(measurement["repetitions"], 2);
        let parameters = &measurement["parameters"];
        let varies = parameters["section_ns"] == 1_000.0;
        assert_eq!(parameters["section_spread"], if varies { "exponential" } else { "fixed" });
    }
    let tables = printed(&mut bench(&short));
    assert_eq!(tables.matches("base line").count(), 4, "{tables}");
}

#[test]
fn sets_as_json_and_as_tables() {
    let short = ["set", "--structure", "list", "--initial", "20", "--threads", "1,3", "-q"];
    let short =
        [&short[..], &["--sync", "lock:adaptive,flat-combining", "--update", "0,50"]].concat();
    let timed = [&short[..], &["--duration", "2ms", "--slice", "1ms", "--json"]].concat();
    let results: Value = serde_json::from_str(&printed(&mut bench(&timed))).unwrap();
    let measurements = results["measurements"].as_array().unwrap();
    assert_eq!(measurements.len(), 2 * 2 * 2);
    for measurement in measurements {
        assert_eq!(
            (&measurement["workload"], &measurement["structure"]),
            (&"set".into(), &"list".into())
        );
        assert_eq!(measurement["repetitions"], 2);
        // With so few nodes, all may be memory that the allocator already had.
        assert!(measurement["metrics"]["bytes_per_key"]["value"].as_f64().unwrap() >= 0.0);
        let is_base = measurement["sync"] == "lock:adaptive";
        assert_eq!(measurement["metrics"]["ratio"].is_null(), is_base);
    }
    let counted =
        [&short[..], &["--operations", "100", "--duration", "30ms", "--zipf", "1"]].concat();
    let tables = printed(&mut bench(&counted));
    assert_eq!(tables.matches("base line").count(), 4, "{tables}");
    assert!(
        tables.contains("list of 20 keys below 40, zipf 1: 3 threads, 50 % updates"),
        "{tables}"
    );
}

#[test]
fn sets_of_others_are_measured_beside() {
    let short = ["set", "--sync", "rcu", "--against", "papaya,crossbeam-epoch", "--initial", "50"];
    let short = [&short[..], &["--threads", "2", "--update", "50", "-q", "--json"]].concat();
    let short = [&short[..], &["--duration", "2ms", "--slice", "1ms"]].concat();
    let results: Value = serde_json::from_str(&printed(&mut bench(&short))).unwrap();
    let measurements = results["measurements"].as_array().unwrap();
    let names: Vec<&Value> = measurements.iter().map(|measurement| &measurement["sync"]).collect();
    assert_eq!(names, ["rcu", "papaya", "crossbeam-epoch"]);
    assert!(measurements[1]["metrics"]["ratio"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn transactions_of_both_kinds_beside_locks() {
    let short = ["txn", "--sync", "mvrlu,rlu", "--against", "rwlock,shards", "--threads", "1,3"];
    let size = ["--initial", "200", "--warehouses", "2", "--items", "50", "--customers", "20"];
    let short = [&short[..], &size, &["-q", "--duration", "2ms", "--slice", "1ms"]].concat();
    let text = printed(&mut bench(&[&short[..], &["--json"]].concat()));
    let results: Value = serde_json::from_str(&text).unwrap();
    let measurements = results["measurements"].as_array().unwrap();
    assert_eq!(measurements.len(), 2 * 2 * 4);
    for measurement in measurements {
        let (parameters, metrics) = (&measurement["parameters"], &measurement["metrics"]);
        assert_eq!(measurement["workload"], "txn");
        assert!(measurement["value"].as_f64().unwrap() > 0.0);
        let is_tpcc = parameters["mix"] == "tpcc";
        assert_eq!(
            (&parameters["warehouses"] == 2.0, is_tpcc),
            (is_tpcc, parameters["initial"] != 200.0)
        );
        assert_eq!(metrics.get("count_audits").is_some(), is_tpcc);
    }
    let tables = printed(&mut bench(&short));
    assert!(tables.contains("tpcc: 2 warehouses with 50 items"), "{tables}");
    assert!(tables.contains("50 % of requests write"), "{tables}");
}

#[test]
fn indexes_as_json_tables_and_a_picture() {
    let place = tempfile::tempdir().unwrap();
    let picture = place.path().join("index.svg");
    let short = ["index", "--workload", "ycsb-e,ycsb-f", "--sync", "mvrlu", "--initial", "200"];
    let short = [&short[..], &["--against", "skiplist,shards", "--threads", "1,3", "-q"]].concat();
    let short = [&short[..], &["--duration", "2ms", "--slice", "1ms"]].concat();
    let plot = ["--json", "--plot", picture.to_str().unwrap()];
    let text = printed(&mut bench(&[&short[..], &plot].concat()));
    let results: Value = serde_json::from_str(&text).unwrap();
    let measurements = results["measurements"].as_array().unwrap();
    assert_eq!(measurements.len(), 2 * 2 * 3);
    for measurement in measurements {
        let (parameters, metrics) = (&measurement["parameters"], &measurement["metrics"]);
        assert_eq!(
            (&measurement["workload"], &parameters["key"]),
            (&"index".into(), &"u64".into())
        );
        assert!(measurement["value"].as_f64().unwrap() > 0.0);
        let scans = parameters["mix"] == "ycsb-e";
        assert_eq!(measurement["update"], if scans { 5.0 } else { 50.0 });
        assert_eq!(metrics.get("entries").is_some(), scans);
        let in_one = measurement["sync"] != "skiplist";
        match parameters["modify_steps"].as_str() {
            None => assert!(scans),
            Some(steps) => assert_eq!((steps == "one", scans), (in_one, false)),
        }
        // Updates in one step lose nothing; for updates in two steps the losses are counted.
        let counted = metrics.get("count_lost_updates").is_some();
        assert_eq!(counted, !in_one && !scans, "{measurement}");
    }
    let drawn = std::fs::read_to_string(picture).unwrap();
    assert!(drawn.contains("ycsb-e") && drawn.contains("shards"), "{drawn}");
    let strings = ["--key", "string", "--value", "100", "--zipf", "0"];
    let tables = printed(&mut bench(&[&short[..], &strings].concat()));
    assert_eq!(tables.matches("base line").count(), 4, "{tables}");
    let heading =
        "ycsb-f: btree of 200 records, string keys, values of 100 bytes: 3 threads, 2 rounds";
    assert!(tables.contains(heading), "{tables}");
    assert_eq!(tables.matches("In two steps").count(), 2, "{tables}");
}

/// One round has no interval, and decides nothing.
#[test]
fn goals_are_claims_with_verdicts() {
    let short = ["goals", "--part", "zipf", "--budget", "1ms", "-q"];
    let results: Value =
        serde_json::from_str(&printed(&mut bench(&[&short[..], &["--json"]].concat()))).unwrap();
    assert_eq!(results["measurements"].as_array().unwrap().len(), 2 * 2);
    let claims = results["claims"].as_array().unwrap();
    assert_eq!((claims.len(), &claims[0]["id"]), (1, &"zipf-mvrlu".into()));
    assert_eq!(claims[0]["verdict"], "undecided");
    let text = printed(&mut bench(&short));
    assert!(text.contains("zipf 1: 2 threads") && text.contains("at least 0.70x"), "{text}");
}

#[test]
fn one_thread_alone() {
    let text = printed(&mut bench(&["uncontended", "--lock", "futex", "--runs", "1", "--json"]));
    let results: Value = serde_json::from_str(&text).unwrap();
    let locks: Vec<&Value> =
        results["measurements"].as_array().unwrap().iter().map(|m| &m["lock"]).collect();
    assert_eq!(locks, ["glibc", "futex"]);
}

#[test]
fn reverse_maps_as_json_and_as_tables() {
    let short = [
        "rmap",
        "--sync",
        "ldu,lock:mcs",
        "--threads",
        "2",
        "--update",
        "50,100",
        "--initial",
        "20",
    ];
    let short = [&short[..], &["--duration", "2ms", "--rounds", "2", "-q"]].concat();
    let text = printed(&mut bench(&[&short[..], &["--json"]].concat()));
    let results: Value = serde_json::from_str(&text).unwrap();
    let measurements = results["measurements"].as_array().unwrap();
    assert_eq!(measurements.len(), 2 * 3);
    for measurement in measurements {
        assert_eq!(measurement["workload"], "rmap");
        assert_eq!(measurement["structure"], "interval-tree");
        assert_eq!(
            measurement["metrics"].get("ratio").is_some(),
            measurement["sync"] != "lock:adaptive"
        );
        let of_intervals = &measurement["metrics"]["bytes_per_interval"]["value"];
        // The links, the bounds, the order and the colour of an interval.
        assert!((40.0..1000.0).contains(&of_intervals.as_f64().unwrap()), "{measurement}");
        assert_eq!(measurement["metrics"]["memory"]["unit"], "bytes");
    }
    let tables = printed(&mut bench(&short));
    assert_eq!(tables.matches("fresh objects").count(), 2, "{tables}");
}

#[test]
fn reverse_maps_by_operations_with_popular_trees() {
    let asked = ["rmap", "--sync", "ldu,oplog", "--threads", "2", "--update", "50", "-q"];
    let asked = [&asked[..], &["--trees", "9", "--zipf", "1", "--operations", "600"]].concat();
    let asked = [&asked[..], &["--initial", "20", "--rounds", "6"]].concat();
    let results: Value =
        serde_json::from_str(&printed(&mut bench(&[&asked[..], &["--json"]].concat()))).unwrap();
    for measurement in results["measurements"].as_array().unwrap() {
        let parameters = &measurement["parameters"];
        assert_eq!((&parameters["zipf"], &parameters["operations"]), (&1.0.into(), &600.0.into()));
        assert!(parameters["duration_ns"].is_null(), "{measurement}");
        assert_eq!(measurement["metrics"]["fairness"]["value"], 1.0, "600 operations each");
        let counted = measurement["metrics"].as_object().unwrap();
        let counts = counted.iter().filter(|(name, _)| name.starts_with("count_"));
        let counts: Vec<f64> = counts.map(|(_, count)| count["value"].as_f64().unwrap()).collect();
        match measurement["sync"].as_str() {
            Some("ldu" | "oplog") => assert!(counts.iter().any(|count| *count > 0.0)),
            _ => assert_eq!(counts.len(), 0),
        }
    }
    let tables = printed(&mut bench(&asked));
    assert!(tables.contains("9 of 20 intervals, zipf 1, 600 operations each"), "{tables}");
    assert!(tables.contains("oplog, for each operation: "), "{tables}");
}

#[test]
fn bad_questions_are_named_in_a_line() {
    for (arguments, words) in [
        (&["lock", "--lock", "futx"][..], ["futx", "futex"]),
        (&["lock", "--threads", "0"], ["thread count", "between 1"]),
        (&["lock", "--section", "1 parsec"], ["parsec", "50ns"]),
        (&["lock", "--reads", "101"], ["101 % of reads", "100 %"]),
        (&["uncontended", "--lock", "futx"], ["futx", "futex"]),
        (&["rmap", "--sync", "ldx"], ["ldx", "ldu-forest"]),
        (&["rmap", "--zipf", "1"], ["popularity", "give more"]),
        (&["rmap", "--trees", "2", "--zipf", "-1"], ["-1", "exponent"]),
        (&["rmap", "--operations", "0"], ["no operations", "at least 1"]),
        (&["set", "--structure", "lst"], ["lst", "list"]),
        (&["set", "--sync", "lock:futx"], ["futx", "lock:futex"]),
        (&["set", "--initial", "10", "--range", "9"], ["10 keys of 9", "range"]),
        (&["set", "--update", "101"], ["update share", "100 %"]),
        (&["set", "--against", "papaia"], ["papaia", "dashmap"]),
        (&["set", "--structure", "list", "--against", "papaya"], ["list", "crossbeam-harris"]),
        (&["index", "--structure", "tree"], ["tree", "btree"]),
        (&["index", "--sync", "mvrl"], ["mvrl", "mvrlu"]),
        (&["index", "--workload", "ycsb-g"], ["ycsb-g", "ycsb-f"]),
        (&["index", "--initial", "0"], ["0 records", "between 1"]),
        (&["index", "--against", "skipist"], ["skipist", "skiplist"]),
        (&["index", "--against", "congee", "--key", "string"], ["congee", "--key u64"]),
        (&["index", "--against", "ferntree", "--value", "100"], ["ferntree", "--value 8"]),
        (&["index", "--structure", "hash", "--workload", "ycsb-e"], ["ycsb-e", "hash"]),
        (&["index", "--sync", "mvrlu", "--zipf", "-1"], ["-1", "exponent"]),
        (&["txn", "--sync", "mvrl"], ["mvrl", "mvrlu-serializable"]),
        (&["txn", "--workload", "tpch"], ["tpch", "tpcc"]),
        (&["txn", "--initial", "15"], ["15 records", "between 100"]),
        (&["txn", "--warehouses", "0"], ["0 warehouses", "between 1"]),
        (&["txn", "--against", "shard"], ["shard", "shards"]),
        (&["goals", "--part", "lists"], ["lists", "zipf"]),
    ] {
        let said = failure(2, &mut bench(arguments));
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    let mut command = bench(&["lock", "--preload"]);
    let said = failure(2, command.env("MANYCORE_PRELOAD", "/nonexistent.so"));
    assert!(said.contains("/nonexistent.so") && said.contains("`make build`"), "{said}");
}
