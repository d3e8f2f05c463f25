//! The forms of a profile: the page without a browser, folded stacks, and the trace.

use super::made_up::{HOSTILE, frame, profile};
use manycore_profile::profile::{CacheMisses, End, OtherNodes, Process, Profile};
use manycore_profile::render::{folded, page, trace};
use serde_json::Value;

/// The data that a page carries.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"profile\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_page_is_one_file_and_names_stay_text() {
    let page = page::html(&profile(5, 3));
    assert_eq!(page.matches("</script>").count(), 2, "the data's and the script's own");
    assert!(!page.contains("<img") && !page.contains('\u{2028}'));
    for loads in ["src=", "href=\"http", "@import", "url(", "fetch(", "innerHTML", "document.write"]
    {
        let data = serde_json::to_string(&data(&page)).unwrap();
        assert_eq!(page.matches(loads).count(), data.matches(loads).count(), "{loads}");
    }
    let data = data(&page);
    let names = data["frames"].as_array().unwrap();
    assert!(names.iter().any(|name| name[0] == HOSTILE), "{names:?}");
    assert_eq!(data["left_out"], serde_json::json!([]));
    assert_eq!(data["locks"].as_array().unwrap().len(), 5 + 1, "and the kernel's");
    assert_eq!(data["cycles"][0]["steps"].as_array().unwrap().len(), 2);
}

#[test]
fn a_lock_of_the_kernel_has_its_tasks_and_what_the_owner_did() {
    let data = data(&page::html(&profile(1, 1)));
    let lock = data["locks"].as_array().unwrap().last().unwrap();
    assert_eq!(lock["origin"], "kernel");
    let site = &lock["sites"][0];
    assert_eq!(site["name"], "server in /web.slice");
    let owner = site["owner_frames"].as_array().unwrap().iter();
    let owner: Vec<&Value> =
        owner.map(|at| &data["frames"][at.as_u64().unwrap() as usize][0]).collect();
    assert_eq!(owner.len(), 2, "{owner:?}");
    assert!(owner[0].as_str().unwrap().starts_with("unmap_vmas"), "{owner:?}");
}

#[test]
fn a_large_profile_has_a_page_that_says_what_it_lacks() {
    let page = page::html(&profile(100_000, 2000));
    assert!(page.len() < 5 << 20, "{}", page.len());
    let data = data(&page);
    let left_out = data["left_out"].to_string();
    assert!(left_out.contains("of 100000 locks, with"), "{left_out}");
    let (shown, all) = (data["locks"].as_array().unwrap().len(), 100_001);
    assert!((100..all).contains(&shown), "{shown}");
    assert_eq!(data["locks"][0]["short"], "lock_0", "the most waited for stay");
}

#[test]
fn huge_names_are_cut_in_the_middle() {
    let mut profile = profile(50, 1);
    for lock in &mut profile.locks {
        lock.name = format!("begin{}end", "x".repeat(300_000));
        lock.waits_in[0].frames = vec![frame(&lock.name)];
    }
    profile.finding = format!("All wait for {}.", profile.locks[0].name);
    profile.next = Some(format!("manycore compare -- {}", profile.locks[0].name));
    profile.notes[0].advice.clone_from(&profile.finding);
    profile.notes[0].evidence.clone_from(&profile.finding);
    let page = page::html(&profile);
    assert!(page.len() < 1 << 20, "{}", page.len());
    let said = data(&page)["finding"].as_str().unwrap().to_owned();
    assert!(said.starts_with("All wait for begin") && said.ends_with("end."), "{said}");
    let name = data(&page)["locks"][0]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("beginx") && name.ends_with("xend") && name.len() < 500, "{name}");
}

#[test]
fn a_profile_without_anything_has_a_page() {
    let empty = Profile { locks: vec![], ..profile(0, 0) };
    let empty = Profile {
        blocking: vec![],
        orders: vec![],
        cycles: vec![],
        convoys: vec![],
        notes: vec![],
        timeline: None,
        kernel_locks: vec![],
        ..empty
    };
    assert_eq!(data(&page::html(&empty))["locks"], serde_json::json!([]));
    assert_eq!(folded::folded(&empty), "");
    assert_eq!(trace::trace(&empty)["traceEvents"].as_array().unwrap().len(), 1);
}

#[test]
fn folded_stacks_have_callers_first_and_the_lock_last() {
    let mut profile = profile(3, 1);
    profile.stacks[2].frames[0].function = Some("a;b\nc".into());
    let text = folded::folded(&profile);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("main;serve;work_0;[lock_0] {}", profile.stacks[0].wait_ns));
    assert_eq!(lines[2], format!("main;serve;a:b c;[lock_2] {}", profile.stacks[2].wait_ns));
    assert_eq!(lines[3], "do_page_fault;down_read;[mmap_lock] 3000000000");
    assert_eq!(lines.len(), 4, "{text}");
    let total: u64 =
        lines.iter().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    let waited: u64 = profile.locks.iter().map(|lock| lock.wait.total_ns).sum();
    assert_eq!(total, waited + 3_000_000_000);
}

#[test]
fn without_whole_stacks_the_places_of_waits_are_folded() {
    let with = profile(3, 1);
    let without = Profile { stacks: vec![], ..with.clone() };
    assert_eq!(folded::folded(&without), folded::folded(&with));
}

#[test]
fn a_trace_has_counters_and_convoys() {
    let trace = trace::trace(&profile(40, 1));
    let events = trace["traceEvents"].as_array().unwrap();
    let of =
        |ph: &str| -> Vec<&Value> { events.iter().filter(|event| event["ph"] == ph).collect() };
    assert!(of("C").iter().all(|event| event["ts"].as_f64().unwrap() < 10.0 * 1e6));
    let threads: Vec<_> = of("C").into_iter().filter(|event| event["name"] == "threads").collect();
    assert_eq!(threads.len(), 100);
    assert!(
        (threads[0]["args"]["waiting"].as_f64().unwrap() - 0.9).abs() < 1e-9,
        "0.09 s in 0.1 s"
    );
    let waiting = of("C").into_iter().find(|event| event["name"] == "waiting for lock_0").unwrap();
    assert!((waiting["args"]["threads"].as_f64().unwrap() - 0.01).abs() < 1e-9, "1 ms in 0.1 s");
    assert_eq!((of("b").len(), of("e").len()), (4, 4));
    assert_eq!(of("e")[1]["ts"].as_f64().unwrap() - of("b")[1]["ts"].as_f64().unwrap(), 5000.0);
}

/// Lengthens every text in it, except for words of the format.
fn lengthen(value: &mut Value) {
    match value {
        Value::String(text) => *text = "x".repeat(1 << 20),
        Value::Array(values) => values.iter_mut().for_each(lengthen),
        Value::Object(fields) => {
            let words = ["origin", "cause", "source", "part", "scope", "end", "kind"];
            let texts = fields.iter_mut().filter(|(name, _)| !words.contains(&name.as_str()));
            texts.for_each(|(_, value)| lengthen(value));
        }
        _ => {}
    }
}

#[test]
fn no_text_is_too_long_for_the_page() {
    let mut profile = profile(2, 2);
    profile.processes = vec![Process {
        pid: 100,
        parent: 1,
        program: "server".into(),
        started: 0.0,
        end: End::Exited,
        threads: 2,
        lock_spin: 0.5,
        lock_wait: 9.0,
        unrecorded: 0,
        locks: Vec::new(),
        conditions: Vec::new(),
    }];
    profile.cache_misses = Some(CacheMisses {
        reads: None,
        counted: None,
        refused: Some("no".into()),
        other_nodes: Some(OtherNodes {
            event: Some("e".into()),
            lines: None,
            counted: None,
            refused: Some("no".into()),
        }),
    });
    let mut json = serde_json::to_value(profile).unwrap();
    lengthen(&mut json);
    let html = page::html(&serde_json::from_value(json).unwrap());
    assert!(html.len() < 1 << 20, "{}", html.len());
}
