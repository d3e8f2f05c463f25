//! `manycore sim`: records, the cache, workers, and results that every machine of that size shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{directory, failure, manycore, printed};
use serde_json::Value;

/// A command with a cache of its own.
fn sim(cache: &Path, arguments: &[&str]) -> Command {
    let mut command = manycore(&[&["sim"], arguments].concat());
    command.env("XDG_CACHE_HOME", cache);
    command
}

const SHORT: [&str; 9] = [
    "lock",
    "--machine",
    "xeon-4x6",
    "--section",
    "50ns,about:1us",
    "--duration",
    "100us",
    "--json",
    "-q",
];

fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SHORT[..], more].concat()
}

fn measurements(text: &str) -> Vec<Value> {
    let mut results: Value = serde_json::from_str(text).unwrap();
    assert_eq!((&results["schema"], results.get("host")), (&1.into(), None));
    results["measurements"].as_array_mut().unwrap().drain(..).collect()
}

#[test]
fn sets_on_a_machine_with_many_cpus() {
    let question = ["sim", "set", "--machine", "xeon-4x6", "--threads", "1,24", "--update", "20"];
    let set = ["--structure", "hash", "--initial", "2000", "--sync", "lock:mcs,flat-combining"];
    let how = ["--duration", "20us", "--no-cache", "-q"];
    let all = [&question[..], &set, &how].concat();
    let text = printed(&mut manycore(&[&all[..], &["--json"]].concat()));
    assert_eq!(text, printed(&mut manycore(&[&all[..], &["--json"]].concat())), "the same twice");
    let results: Value = serde_json::from_str(&text).unwrap();
    let measurements = results["measurements"].as_array().unwrap();
    assert_eq!(measurements.len(), 2 * 2);
    for measurement in measurements {
        assert_eq!(measurement["provenance"], "simulated");
        assert_eq!(measurement["machine"], "xeon-4x6-like");
        assert!(measurement["value"].as_f64().unwrap() > 0.0);
        let metric = |name: &str| measurement["metrics"][name]["value"].as_f64().unwrap();
        assert!(metric("latency_p50") > 0.0);
        // A key and a link at least; in addition, locks and buckets.
        assert!((16.0..1000.0).contains(&metric("bytes_per_key")), "{measurement}");
        assert!(metric("garbage") >= 0.0);
    }
    let values = |sync| {
        let of_sync = measurements.iter().filter(move |m| m["sync"] == sync);
        of_sync.map(|m| m["value"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let locked = values("lock:mcs");
    assert!(locked[1] > locked[0], "there is a lock a bucket: {locked:?}");
    assert!(printed(&mut manycore(&all)).contains("20 % updates, simulated xeon-4x6-like"));
}

#[test]
fn transactions_on_a_machine_with_many_cpus() {
    let question = ["sim", "txn", "--machine", "xeon-4x6", "--threads", "1,24", "-q", "--json"];
    let size = ["--warehouses", "2", "--items", "50", "--customers", "20"];
    let ask = || {
        let how = ["--zipf", "0", "--update", "10", "--duration", "200us", "--no-cache"];
        printed(&mut manycore(&[&question[..], &size, &how].concat()))
    };
    let text = ask();
    assert_eq!(ask(), text, "the same twice");
    let measurements = measurements(&text);
    assert_eq!(measurements.len(), 2 * 2 * 4);
    let value = |mix: &str, sync: &str, threads: u32| {
        let is_meant = |m: &&Value| {
            m["parameters"]["mix"] == mix && m["sync"] == sync && m["threads"] == threads
        };
        measurements.iter().find(is_meant).unwrap()["value"].as_f64().unwrap()
    };
    for mix in ["ycsb16", "tpcc"] {
        let grows = |sync| value(mix, sync, 24) / value(mix, sync, 1);
        assert!(grows("one-lock") < 1.5, "{mix}: one transaction at a time: {}", grows("one-lock"));
    }
    assert!(value("ycsb16", "mvrlu", 24) > 4.0 * value("ycsb16", "mvrlu", 1));
}

#[test]
fn indexes_on_a_machine_with_many_cpus() {
    let question = ["sim", "index", "--machine", "xeon-4x6", "--threads", "1,24", "-q", "--json"];
    let how = ["--initial", "2000", "--duration", "20us", "--no-cache"];
    let ask = |more: &[&str]| {
        let text = printed(&mut manycore(&[&question[..], &how, more].concat()));
        (measurements(&text), text)
    };
    let tree = ["--sync", "mvrlu,rlu", "--workload", "upsert-20,ycsb-d,ycsb-e,ycsb-f"];
    let (of_tree, text) = ask(&tree);
    assert_eq!(ask(&tree).1, text, "the same twice");
    assert_eq!(of_tree.len(), 2 * 4 * 2);
    for measurement in &of_tree {
        assert_eq!(measurement["provenance"], "simulated");
        let metric = |name: &str| measurement["metrics"][name]["value"].as_f64();
        assert!(
            measurement["value"].as_f64().unwrap() > 0.0 && metric("latency_p50").unwrap() > 0.0
        );
        assert!((16.0..1000.0).contains(&metric("bytes_per_key").unwrap()), "{measurement}");
        let is = |mix: &str| measurement["parameters"]["mix"] == mix;
        assert_eq!(metric("count_lost_updates"), None, "it takes one step");
        // Scans read 50 entries each, except for those that end with the last key.
        let entries =
            metric("entries").map(|entries| entries / measurement["value"].as_f64().unwrap());
        assert_eq!(entries.is_some(), is("ycsb-e"));
        assert!(entries.is_none_or(|entries| (40.0..52.0).contains(&entries)), "{measurement}");
    }
    let (of_hash, _) = ask(&["--structure", "hash", "--workload", "upsert-50"]);
    let names: Vec<&Value> = of_hash.iter().map(|measurement| &measurement["sync"]).collect();
    let all = ["mvrlu-growing", "map", "plain", "rcu", "rcu-mcs"];
    assert_eq!(names, [all, all].concat());
}

#[test]
fn sections_move_as_many_lines_as_are_asked_for() {
    let cache = directory();
    let transfers = |more: &[&str]| {
        let asked = [&["--threads", "24", "--lock", "mcs", "--duration", "50us"], more].concat();
        let asked = [&["lock", "--machine", "xeon-4x6", "--json", "-q"], &asked[..]].concat();
        let records = measurements(&printed(&mut sim(cache.path(), &asked)));
        let mcs = records.iter().find(|record| record["lock"] == "mcs").unwrap();
        let far = |n| mcs["metrics"][format!("transfers_{n}")]["value"].as_f64().unwrap_or(0.0);
        let sections = mcs["value"].as_f64().unwrap();
        (mcs["parameters"]["data_lines"].as_f64(), far(0) + far(1) + far(2), 1e9 / sections)
    };
    let (usual, few, short) = transfers(&[]);
    let (asked, many, long) = transfers(&["--data", "9"]);
    assert_eq!((usual, asked), (Some(1.0), Some(9.0)));
    // A line of data comes from the owner before: once if it is taken over, else to be read and to
    // be written.
    assert!(
        (7.5..17.0).contains(&(many - few)),
        "{few} transfers a section, {many} with 8 lines more"
    );
    // And each is waited for: 8 transfers of some 40 ns at least.
    assert!(long - short > 8.0 * 30.0, "{short} ns a section, {long} with 8 lines more");
    let table = printed(&mut sim(
        cache.path(),
        &["lock", "--machine", "xeon-4x6", "--lock", "mcs", "--duration", "10us"],
    ));
    assert!(table.contains("with 1 line of data"), "{table}");
    let refused = failure(2, &mut sim(cache.path(), &["db", "--data", "0"]));
    assert!(refused.contains("0 lines of data"), "{refused}");
}

#[test]
fn as_many_operations_as_are_asked_for() {
    let cache = directory();
    let many = ["--machine", "xeon-4x6", "--threads", "3", "--operations", "200", "--json", "-q"];
    let set = ["set", "--initial", "100", "--sync", "rcu,mvrlu", "--update", "50"];
    let trees = ["rmap", "--initial", "20", "--trees", "5", "--zipf", "1", "--sync", "ldu,oplog"];
    for asked in [&set[..], &trees] {
        for record in measurements(&printed(&mut sim(cache.path(), &[asked, &many].concat()))) {
            let metric = |name: &str| record["metrics"][name]["value"].as_f64();
            assert_eq!(metric("fairness"), Some(1.0), "200 operations each: {record}");
            assert_eq!(record["parameters"]["operations"], 200.0);
            assert!(record["parameters"]["duration_ns"].is_null(), "{record}");
            let name = if record["workload"] == "set" { "garbage" } else { "memory" };
            assert_eq!(record["metrics"][name]["unit"], "bytes", "{record}");
            let counts = |name: &&String| name.starts_with("count_");
            let counted = record["metrics"].as_object().unwrap().keys().any(|name| counts(&name));
            assert_eq!(counted, record["sync"] != "lock:adaptive", "{record}");
        }
    }
}

#[test]
fn locks_meet_on_machines_with_many_cpus() {
    let room = directory();
    let picture = room.path().join("many.svg");
    let plot = picture.to_str().unwrap();
    let all = ["many", "--quick", "--machines", "xeon-4x6", "--lock", "ticket", "-q"];
    // Claims may fail: exit status 1.
    let run = |more: &[&str]| sim(room.path(), &[&all[..], more].concat()).output().unwrap();
    let output = run(&["--plot", plot]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["6 of 168 points", "ticket", "2x all", "xeon-4x6, 48 threads", "p99.9 wait"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let svg = fs::read_to_string(&picture).unwrap();
    assert!(svg.contains("sections of 1.00 us") && svg.contains("xeon-4x6"), "{svg}");

    let output = run(&["--json"]);
    let all = measurements(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(all.len(), 6 * 3);
    let at = |lock: &str, threads: u64| {
        let is_it = |one: &&Value| one["lock"] == lock && one["threads"] == threads;
        all.iter().find(is_it).unwrap()["value"].as_f64().unwrap()
    };
    // A queue that never gives up its CPU, with twice as many threads as CPUs.
    assert!(at("ticket", 48) < 0.2 * at("futex", 48));
}

#[test]
fn records_say_that_they_are_simulated_and_where() {
    let cache = directory();
    let text = printed(&mut sim(cache.path(), &short(&["--lock", "mcs", "--threads", "1,6"])));
    let records = measurements(&text);
    assert_eq!(records.len(), 2 * 2 * 2);
    for record in &records {
        assert_eq!(record["provenance"], "simulated");
        assert_eq!(record["machine"], "xeon-4x6-like");
        assert_eq!((&record["workload"], &record["unit"]), (&"lock".into(), &"op/s".into()));
        assert_eq!(record["low"], Value::Null);
        let metric = |name: &str| {
            let metric = record["metrics"][name]["value"].as_f64();
            metric.unwrap_or_else(|| panic!("no {name} in {record}"))
        };
        assert!(metric("wait_p50") <= metric("wait_max") && metric("fairness") >= 1.0);
        let shares = |names: &[&str]| names.iter().map(|name| metric(name)).sum::<f64>();
        let parts = [
            "compute",
            "stall",
            "lock_spin",
            "lock_wait",
            "quiescence_wait",
            "log_work",
            "system",
            "ready",
            "idle",
        ];
        let all = shares(&parts.map(|part| format!("time_{part}")).each_ref().map(String::as_str));
        assert!((99.9..100.1).contains(&all), "{all} % of the time");
        let cpu = shares(&["cpu_program", "cpu_locks", "cpu_system"]);
        assert!((99.9..100.1).contains(&cpu), "{cpu} % of CPU time");
        assert_eq!(record["metrics"].get("ratio").is_none(), record["lock"] == "futex");
        // One thread takes lines that no other has; six send lines to each other.
        assert_eq!(metric("transfers_0") > 1.0, record["threads"] == 6, "{record}");
    }
}

#[test]
fn the_result_does_not_depend_on_workers_or_the_cache() {
    let cache = directory();
    let run = |more: &[&str]| {
        printed(&mut sim(
            cache.path(),
            &short(&[&["--lock", "tas,hybrid", "--threads", "3,30"], more].concat()),
        ))
    };
    let alone = run(&["--no-cache", "--workers", "1"]);
    assert_eq!(entries(cache.path()).len(), 0);
    for more in [&["--workers", "3"][..], &[], &["--no-cache"]] {
        assert_eq!(run(more), alone, "{more:?}");
    }
    assert_eq!(entries(cache.path()).len(), 12);
    assert_ne!(run(&["--seed", "2"]), alone);
}

/// The results in the cache, without the file of their durations.
fn entries(cache: &Path) -> Vec<PathBuf> {
    let list =
        |path: PathBuf| fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = list(cache.join("manycore/sim")).flat_map(list);
    let is_result = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let mut entries: Vec<_> = files.filter(is_result).collect();
    entries.sort();
    entries
}

#[test]
fn what_is_known_is_not_simulated_again() {
    let cache = directory();
    let run =
        |locks: &str| printed(&mut sim(cache.path(), &short(&["--lock", locks, "--threads", "4"])));
    run("mcs");
    let known = entries(cache.path());
    assert_eq!(known.len(), 4);
    // An answer that only the cache can give.
    for entry in &known {
        let text = fs::read_to_string(entry).unwrap();
        let (before, after) = text.split_once("\"counts\":[").unwrap();
        fs::write(entry, format!("{before}\"counts\":[77000,{}", after.split_once(',').unwrap().1))
            .unwrap();
    }
    let changed = measurements(&run("mcs,clh"));
    assert_eq!(entries(cache.path()).len(), 6);
    for record in changed {
        assert_eq!(record["value"].as_f64().unwrap() > 77e7, record["lock"] != "clh", "{record}");
    }
}

#[test]
fn results_that_cannot_be_read_are_replaced() {
    let cache = directory();
    let arguments = short(&["--lock", "mcs,clh", "--threads", "4"]);
    let loud: Vec<&str> = arguments.iter().copied().filter(|argument| *argument != "-q").collect();
    let first = printed(&mut sim(cache.path(), &arguments));
    let known = entries(cache.path());
    let kept: Vec<_> = known.iter().map(|entry| fs::read(entry).unwrap()).collect();
    for (index, entry) in known.iter().enumerate() {
        fs::write(entry, &kept[index][..index * 40]).unwrap();
    }
    let output = sim(cache.path(), &loud).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), first);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("unreadable") && said.contains("manycore/sim"), "{said}");
    let repaired: Vec<_> = known.iter().map(|entry| fs::read(entry).unwrap()).collect();
    assert!(repaired == kept);
}

#[test]
fn a_sweep_shows_a_range() {
    let cache = directory();
    let sweep = ["--lock", "ticket", "--threads", "24", "--sweep"];
    for record in measurements(&printed(&mut sim(cache.path(), &short(&sweep)))) {
        let number = |name: &str| record[name].as_f64().unwrap();
        let (low, high) = (number("low"), number("high"));
        assert!(low < high && (low..=high).contains(&number("value")), "{record}");
        assert_eq!(record["parameters"]["variants"], 18.0);
        if record["lock"] == "ticket" {
            assert!(record["metrics"]["ratio"]["low"].is_number(), "{record}");
        }
    }
    let text = [
        "lock",
        "--machine",
        "xeon-4x6",
        "--duration",
        "100us",
        "--lock",
        "ticket",
        "--threads",
        "24",
    ];
    let text = printed(&mut sim(cache.path(), &[&text[..], &["--sweep", "--details"]].concat()));
    assert!(text.starts_with("xeon-4x6-like (simulated), 24 CPUs: 24 threads"), "{text}");
    assert!(text.contains("18 variants") && text.contains("stall %"), "{text}");
}

#[test]
fn parking_changes_little() {
    let cache = directory();
    let values = |more: &[&str]| -> Vec<f64> {
        let arguments = short(&[&["--lock", "mcs", "--threads", "6"], more].concat());
        let records = measurements(&printed(&mut sim(cache.path(), &arguments)));
        records.iter().map(|record| record["value"].as_f64().unwrap()).collect()
    };
    for (parked, polling) in values(&[]).into_iter().zip(values(&["--every-turn"])) {
        assert!((0.9..1.1).contains(&(parked / polling)), "{parked} parked, {polling} polling");
    }
}

/// Sections a second of a lock by the number of threads, on a machine with 120 CPUs.
fn at_120(cache: &Path, locks: &[&str]) -> impl Fn(&str, u64) -> f64 {
    let locks = locks.join(",");
    let arguments = [
        &["lock", "--machine", "xeon-e7-8870-8x15", "--json", "-q", "--lock", &locks][..],
        &["--threads", "2,15,30,120", "--section", "50ns", "--outside", "about:2us"],
        &["--duration", "300us"],
    ];
    let records = measurements(&printed(&mut sim(cache, &arguments.concat())));
    move |lock, threads| {
        let found = records.iter().find(|r| r["lock"] == lock && r["threads"] == threads);
        found.unwrap_or_else(|| panic!("{lock} with {threads} threads"))["value"].as_f64().unwrap()
    }
}

#[test]
fn locks_on_120_cpus_are_as_everybody_knows_them() {
    let cache = directory();
    let value = at_120(cache.path(), &["tas", "ticket", "mcs", "clh", "c-bo-mcs", "hmcs", "cna"]);
    let all = |lock| value(lock, 120);
    assert!(all("tas") < value("tas", 2) / 6.0, "tas collapses");
    assert!(all("ticket") < value("ticket", 15) / 1.8, "ticket collapses");
    for lock in ["mcs", "clh"] {
        let beyond = all(lock) / value(lock, 30);
        assert!((0.75..1.35).contains(&beyond), "{lock} is flat beyond the socket: {beyond}");
        assert!(all(lock) > 1.5 * all("ticket"), "{lock} is above ticket");
    }
    for lock in ["c-bo-mcs", "hmcs", "cna"] {
        assert!(all(lock) > 1.3 * all("mcs"), "{lock} is above mcs across sockets");
    }
}

#[test]
fn a_database_spends_more_of_more_cpus_on_locks() {
    let cache = directory();
    let arguments = ["db", "--lock", "innodb,sleep", "--cpus", "4,24", "--duration", "5ms", "-q"];
    let json = [&arguments[..], &["--json"]].concat();
    let records = measurements(&printed(&mut sim(cache.path(), &json)));
    let share = |lock: &str, cpus: f64| {
        let is_it = |r: &&Value| r["lock"] == lock && r["parameters"]["cpus"] == cpus;
        let record = records.iter().find(is_it).unwrap();
        assert_eq!((&record["workload"], &record["threads"]), (&"db".into(), &50.into()));
        record["metrics"]["cpu_locks"]["value"].as_f64().unwrap()
    };
    assert!(share("innodb", 24.0) > share("innodb", 4.0) + 20.0);
    assert!(share("innodb", 24.0) > share("sleep", 24.0) + 20.0);
    let text = printed(&mut sim(cache.path(), &arguments));
    assert!(text.contains("50 terminals") && text.contains("tx/s"), "{text}");
    for (argument, word) in [("--cpus=25", "24 CPUs"), ("--terminals=0", "0 threads")] {
        let said = failure(2, &mut sim(cache.path(), &["db", argument]));
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_servers_calls_are_executed_in_place_or_near_the_card() {
    let cache = directory();
    let arguments = ["syscall", "--clients", "1,32", "--duration", "3ms", "-q"];
    let records =
        measurements(&printed(&mut sim(cache.path(), &[&arguments[..], &["--json"]].concat())));
    let names: Vec<_> =
        records.iter().map(|r| (r["sync"].as_str(), r["threads"].as_u64())).collect();
    let (here, there) = (Some("in-place"), Some("thread"));
    assert_eq!(names, [(here, Some(1)), (there, Some(1)), (here, Some(32)), (there, Some(32))]);
    let parameters = records[0]["parameters"].as_object().unwrap();
    let text = printed(&mut sim(cache.path(), &arguments));
    for name in parameters.keys().filter(|name| *name != "variants" && *name != "duration_ns") {
        assert!(text.contains(&format!("\n{name} ")), "{name} is assumed: {text}");
    }
    assert!(records[3]["metrics"]["ratio"]["value"].as_f64().unwrap() > 0.1);
    let cases = [
        ("--machine=graviton-64", "one package"),
        ("--interrupt-cpus=10", "between 1 and 9"),
        ("--clients=0", "0 threads"),
        ("--clients=2000", "at most 1000"),
        ("--page=2s", "a second"),
    ];
    for (argument, word) in cases {
        let said = failure(2, &mut sim(cache.path(), &["syscall", argument]));
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn transactions_that_update_take_longer() {
    let cache = directory();
    let asked = ["db", "--lock", "innodb", "--cpus", "8", "--update", "0,25", "--duration", "20ms"];
    let records =
        measurements(&printed(&mut sim(cache.path(), &[&asked[..], &["--json", "-q"]].concat())));
    let of = |record: &Value| {
        let sections = record["parameters"]["sections"].as_f64().unwrap();
        (record["update"].as_f64().unwrap(), sections, record["value"].as_f64().unwrap())
    };
    let [(none, 100.0, alone), (quarter, 120.0, mixed)] = [of(&records[0]), of(&records[1])] else {
        panic!("{records:?}");
    };
    assert_eq!((none, quarter), (0.0, 25.0));
    assert!(mixed < alone && mixed > 0.5 * alone, "{mixed} of {alone}");
    let text = printed(&mut sim(cache.path(), &[&asked[..], &["-q"]].concat()));
    assert!(text.contains("50 terminals, 25 % of transactions update"), "{text}");
    for (arguments, word) in
        [(&["--update=101"][..], "101 %"), (&["--update=25", "--think=0s"], "time between two")]
    {
        let said = failure(2, &mut sim(cache.path(), &[&["db"], arguments].concat()));
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_kernels_locks_have_names_and_shares() {
    let cache = directory();
    for (of, series, locks) in [
        ("processes", &["jobs"][..], &["anon_vma_write", "i_mmap", "f_pos_lock"][..]),
        (
            "threads",
            &["max-jops", "critical-jops"],
            &["mmap_sem_read", "page_table_lock", "rq_lock"],
        ),
    ] {
        let asked = ["kernel", "--of", of, "--threads", "2,30", "--duration", "3ms", "-q"];
        let json = [&asked[..], &["--json"]].concat();
        let text = printed(&mut sim(cache.path(), &json));
        let again = [&json[..], &["--no-cache"]].concat();
        assert_eq!(text, printed(&mut sim(cache.path(), &again)), "the same twice");
        let records = measurements(&text);
        // With two threads nothing is offered that two cores could do.
        let names: Vec<_> = records.iter().map(|r| r["sync"].as_str().unwrap()).collect();
        assert_eq!(names, [&series[..1], series].concat());
        let most = &records[1];
        assert_eq!((&most["workload"], &most["structure"]), (&"kernel".into(), &of.into()));
        let metric = |name: &str| most["metrics"][name]["value"].as_f64();
        for lock in locks {
            assert!(metric(&format!("taken_{lock}")).unwrap() > 0.0, "{lock} is taken");
        }
        let shares = most["metrics"].as_object().unwrap().iter();
        let sums = ["share_wait_anon_vma", "share_wait_mmap_sem"];
        let of_waiting = |name: &str| name.starts_with("share_wait_") && !sums.contains(&name);
        let shares = shares.filter(|(name, _)| of_waiting(name));
        let sum: f64 = shares.map(|(_, share)| share["value"].as_f64().unwrap()).sum();
        assert!((sum - 100.0).abs() < 1e-6, "{sum} % of all waiting");
        let text = printed(&mut sim(cache.path(), &asked));
        let own = most["parameters"].as_object().unwrap().keys();
        let set_elsewhere = ["variants", "duration_ns", "compute_ns"];
        for name in own.filter(|name| !set_elsewhere.contains(&name.as_str())) {
            assert!(
                text.contains(&format!("\n{name} ")),
                "{name} is a number of the model: {text}"
            );
        }
    }
    for (argument, word) in [
        ("--assume=walk=1", "no `walk`: choose from alloc_ns"),
        ("--assume=walks", "such as walks=0.1"),
        ("--assume=walks=-1", "between 0 and"),
        ("--threads=121", "120 CPUs"),
        ("--threads=0", "0 threads"),
        ("--compute=2s", "over a second"),
        ("--of=fibres", "fibres"),
    ] {
        let said = failure(2, &mut sim(cache.path(), &["kernel", argument]));
        assert!(said.contains(word) && said.lines().count() == 1, "{argument}: {said}");
    }
}

#[test]
fn bad_questions_are_named_in_a_line() {
    let cache = directory();
    let lock = ["lock", "--machine", "xeon-4x6"];
    for (arguments, words) in [
        (&["lock"][..], &["--machine"][..]),
        (&["lock", "--machine", "vax"], &["vax", "xeon-4x6-like", "epyc-2x96-like"]),
        (&["lock", "--machine", "./none.toml"], &["none.toml", "machines measure"]),
        (&[&lock[..], &["--lock", "glibc"]].concat(), &["glibc", "futex", "adaptive-rw"]),
        (&[&lock[..], &["--threads", "5000"]].concat(), &["5000 threads", "4095"]),
        (&[&lock[..], &["--threads", "0"]].concat(), &["0 threads", "between 1"]),
        (&[&lock[..], &["--cpus", "25"]].concat(), &["xeon-4x6-like", "24 CPUs"]),
        (&[&lock[..], &["--duration", "0s"]].concat(), &["simulated time"]),
        (&[&lock[..], &["--section", "1 parsec"]].concat(), &["parsec", "50ns"]),
        (&[&lock[..], &["--sweep=hold"]].concat(), &["--sweep"]),
        (&[&lock[..], &["--workers", "0"]].concat(), &["--workers"]),
    ] {
        let said = failure(2, &mut sim(cache.path(), arguments));
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn reverse_maps_repeat_to_the_byte() {
    let cache = directory();
    let asked =
        ["rmap", "--machine", "xeon-4x6", "--threads", "1,6", "--update", "90", "--initial", "20"];
    let asked = [&asked[..], &["--duration", "100us", "--outside", "1us", "--json", "-q"]].concat();
    let text = printed(&mut sim(cache.path(), &asked));
    assert_eq!(text, printed(&mut sim(cache.path(), &asked)));
    let records = measurements(&text);
    assert_eq!(records.len(), 2 * 6);
    for record in &records {
        assert_eq!(
            (&record["provenance"], &record["workload"]),
            (&"simulated".into(), &"rmap".into())
        );
        assert_eq!(record["machine"], "xeon-4x6-like");
    }
}

#[test]
fn every_reverse_map_is_simulated() {
    let cache = directory();
    for (shape, all) in [
        ("trees", "ldu,ldu-per-core,ldu-forest,oplog,flat-combining,harris,lock:mcs"),
        ("queue", "ordered,ordered-relaxed,ordered-counter,take-all,lock:mcs"),
        ("stack", "ordered,ordered-relaxed,ordered-counter,treiber,lock:mcs"),
    ] {
        let asked = ["rmap", "--machine", "xeon-4x6", "--shape", shape, "--sync", all];
        let bounds = ["--threads", "3", "--update", "90", "--initial", "20", "--duration", "50us"];
        let asked = [&asked[..], &bounds, &["--json", "-q"]].concat();
        let records = measurements(&printed(&mut sim(cache.path(), &asked)));
        let syncs: Vec<_> = records.iter().map(|record| record["sync"].as_str()).collect();
        // In addition to the requested ones, the base line.
        assert!(all.split(',').all(|name| syncs.contains(&Some(name))), "{shape}: {syncs:?}");
        assert!(records.iter().all(|record| record["value"].as_f64() > Some(0.0)), "{shape}");
    }
}
