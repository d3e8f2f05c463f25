//! Two profiles against each other.

use super::made_up::profile;
use manycore_profile::profile::{Profile, Scope, Source};
use manycore_profile::render::diff::{Change, diff};

fn named<'a>(locks: &'a [Change], short: &str) -> &'a Change {
    let found: Vec<_> = locks.iter().filter(|change| change.short == short).collect();
    assert_eq!(found.len(), 1, "{short}");
    found[0]
}

#[test]
fn runs_of_other_lengths_are_compared_by_rates() {
    let before = profile(6, 1);
    // Twice as long, with as many waits: half the rate.
    let mut after = Profile { wall: 20.0, ..before.clone() };
    after.locks[2].acquired *= 2;
    after.locks[2].hold.mean_ns = Some(1400);
    let diff = diff(&before, &after);
    let change = named(&diff.locks, "lock_0");
    let (old, new) = (change.before.unwrap(), change.after.unwrap());
    assert!((old.wait - 0.450_000_5).abs() < 1e-6, "4.5 s in 10 s: {old:?}");
    assert!((new.wait - old.wait / 2.0).abs() < 1e-9, "{new:?}");
    assert_eq!((change.ratio.wait, change.ratio.acquired), (Some(0.5), Some(0.5)));
    assert_eq!((change.ratio.contended_share, change.ratio.hold_mean), (Some(1.0), Some(1.0)));
    let third = named(&diff.locks, "lock_2");
    assert_eq!((third.ratio.acquired, third.ratio.hold_mean), (Some(1.0), Some(2.0)));
    assert_eq!(named(&diff.locks, "mmap_lock").ratio.wait, Some(1.0), "watched for as long");
    assert_eq!(diff.ratio.wait, Some(0.5));
    assert!((diff.before.rates.acquired.unwrap() - 600_000.0).abs() < 1e-6);
}

#[test]
fn most_changed_comes_first_and_new_and_gone_are_said() {
    let mut before = profile(6, 1);
    let mut after = before.clone();
    before.locks[4].name = "old_lock (server)".into();
    after.locks[3].wait.total_ns *= 50;
    let diff = diff(&before, &after);
    assert!(diff.locks[0].name.starts_with("lock_3"), "{:?}", diff.locks[0]);
    let [one, other] = ["old_lock (server)", "lock_4 (server)"]
        .map(|name| diff.locks.iter().find(|change| change.name == name).unwrap());
    assert!(one.before.is_some() && one.after.is_none());
    assert!(other.before.is_none() && other.after.is_some());
    assert_eq!(one.ratio.wait, None);
}

#[test]
fn a_rebuilt_program_has_the_same_locks() {
    let mut before = profile(4, 1);
    before.locks[0].name = "serve+0x1c (server)".into();
    before.locks[1].name = "load+0x10 (server)".into();
    let mut after = before.clone();
    after.locks[0].name = "serve+0x2c (server)".into();
    // Two candidates: it is not known which it was.
    after.locks[1].name = "load+0x18 (server)".into();
    after.locks[3].name = "load+0x28 (server)".into();
    after.locks[3].kind = after.locks[1].kind.clone();
    let diff = diff(&before, &after);
    let of = |name: &str| diff.locks.iter().find(|change| change.name == name).unwrap();
    assert!(of("serve+0x2c (server)").before.is_some());
    assert!(of("load+0x10 (server)").after.is_none());
    assert!(of("load+0x18 (server)").before.is_none() && of("load+0x28 (server)").before.is_none());
}

#[test]
fn what_else_differs_is_said() {
    let before = profile(2, 1);
    let mut after = Profile { wall: 50.0, lock: "hybrid".into(), ..before.clone() };
    after.command.push("--fast".into());
    after.host.as_mut().unwrap().cpus = 64;
    let said = diff(&before, &after).caveats.join("\n");
    for word in ["64 virtual CPUs", "--fast", "futex and hybrid", "5.0 times as long"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_eq!(diff(&before, &before).caveats.len(), 1, "one run each");
}

#[test]
fn a_futex_has_no_part_in_the_share_that_had_to_wait() {
    let before = profile(6, 1);
    let mut after = before.clone();
    after.locks[3].kind = "futex".into();
    (after.locks[3].acquired, after.locks[3].contended) = (0, 50_000_000);
    let mut without = after.clone();
    without.locks.remove(3);
    let share = |profile: &Profile| diff(&before, profile).after.rates.contended_share;
    assert_eq!(share(&after), share(&without));
    assert!(share(&after).unwrap() < 1.0);
    let contended = |profile: &Profile| diff(&before, profile).after.rates.contended;
    assert!(contended(&after) > contended(&without) + 1e6, "its waits are waits");
}

#[test]
fn it_is_said_where_the_kernel_was_not_watched_alike() {
    let before = profile(2, 1);
    let watched = |change: &dyn Fn(&mut Profile)| {
        let mut after = before.clone();
        change(&mut after);
        [diff(&before, &after), diff(&after, &before)].map(|diff| diff.caveats)
    };
    assert_eq!(watched(&|_| {}).map(|said| said.len()), [1, 1]);
    for (change, words) in [
        (
            &(|after: &mut Profile| after.kernel = None) as &dyn Fn(&mut Profile),
            ["first run only", "second run only"],
        ),
        (&|after| after.kernel.as_mut().unwrap().source = Source::LockStat, ["lock_stat"; 2]),
        (&|after| after.kernel.as_mut().unwrap().scope = Scope::System, ["the whole system"; 2]),
    ] {
        for (said, word) in watched(change).iter().zip(words) {
            let said = said.join("\n");
            assert!(said.contains(word) && said.contains("`manycore compare`"), "{word}: {said}");
        }
    }
    let process = |pid| Profile {
        kernel: before.kernel.clone().map(|kernel| manycore_profile::profile::KernelRun {
            scope: Scope::Process(pid),
            ..kernel
        }),
        ..before.clone()
    };
    assert_eq!(diff(&process(7), &process(8)).caveats.len(), 1, "numbers say nothing");
}

#[test]
fn the_json_is_described() {
    let json = serde_json::to_value(diff(&profile(2, 1), &profile(2, 1))).unwrap();
    let text = include_str!("../../../../../docs/src/json/diff.md");
    let mut missing = Vec::new();
    let mut open = vec![&json];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                missing.extend(fields.keys().filter(|key| !text.contains(&format!("`{key}`"))));
                open.extend(fields.values());
            }
            serde_json::Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_run_without_a_length_has_no_rates_and_that_is_said() {
    let after = profile(6, 1);
    let before = Profile { wall: 0.0, ..after.clone() };
    let diff = diff(&before, &after);
    let said = diff.caveats.join(" ");
    assert!(said.contains("no length") && !said.contains("inf"), "{said}");
    assert_eq!(named(&diff.locks, "lock_0").ratio.wait, None);
}
