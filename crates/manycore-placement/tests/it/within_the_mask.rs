//! Whatever the machine, the mask and the request: no CPU is chosen that may not be used.

use crate::support::{Built, Shape, boards, pair};
use manycore_placement::{CpuSet, Rule};
use proptest::prelude::*;

/// A machine, and several ways to ask for CPUs on it.
#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    offline: Vec<bool>,
    queues: Vec<usize>,
    node: i32,
    questions: Vec<Question>,
}

#[derive(Clone, Debug)]
struct Question {
    mask: Vec<bool>,
    named: Option<Vec<bool>>,
    policy: &'static str,
    setting: &'static str,
}

const POLICIES: [&str; 6] =
    ["nic-llc", "single-node", "cross-node", "per-node", "auto", "cross-node:threshold=2"];
const SETTINGS: [&str; 5] =
    ["", ":mechanism=thread", ":mechanism=in-place", ":device=lo", ":bypass=yes"];

fn shapes() -> impl Strategy<Value = Shape> {
    let parts = (1..=3_usize, 1..=3_usize, 1..=2_usize, 1..=2_usize, any::<bool>());
    parts.prop_map(|(packages, caches, cache_cores, threads, far)| Shape {
        packages,
        cores: caches * cache_cores,
        threads,
        cache_cores,
        distance: if far { boards } else { pair },
    })
}

fn cases() -> impl Strategy<Value = Case> {
    shapes().prop_flat_map(|shape| {
        let cpus = shape.cpus();
        let set = move || prop::collection::vec(any::<bool>(), cpus);
        let words = (prop::sample::select(&POLICIES[..]), prop::sample::select(&SETTINGS[..]));
        let question = (set(), prop::option::of(set()), words)
            .prop_map(|(mask, named, (policy, setting))| Question { mask, named, policy, setting });
        let questions = prop::collection::vec(question, 16);
        let queues = prop::collection::vec(0..cpus, 0..6);
        (Just(shape.clone()), set(), queues, -1..shape.packages as i32, questions).prop_map(
            |(shape, offline, queues, node, questions)| Case {
                shape,
                offline,
                queues,
                node,
                questions,
            },
        )
    })
}

fn chosen(flags: &[bool]) -> CpuSet {
    flags.iter().enumerate().filter(|(_, set)| **set).map(|(cpu, _)| cpu).collect()
}

proptest! {
    // Each case makes sixteen choices; writing the files takes most of the time.
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn never_outside(case in cases()) {
        let Case { shape, mut offline, queues, node, questions } = case;
        // CPU 0 cannot be taken offline.
        offline[0] = false;
        let online = (0..shape.cpus()).collect::<CpuSet>().without(&chosen(&offline));
        let mut built = Built::new(&shape).card("eth0", node, &queues);
        built.file("sys/devices/system/cpu/online", &online.to_string());
        for question in questions {
            let mask = chosen(&question.mask);
            built = built.mask(&mask.to_string());
            check(&built, &question, &mask.and(&online))?;
        }
    }
}

fn check(built: &Built, question: &Question, allowed: &CpuSet) -> Result<(), TestCaseError> {
    let mut request = format!("{}{}", question.policy, question.setting);
    let named = question.named.as_deref().map(chosen).filter(|named| !named.is_empty());
    if let Some(named) = &named {
        request = format!("{request}:cpus={named}");
    }
    let choice = match built.choose(&request) {
        Ok(choice) => choice,
        Err(problem) => {
            let outside = named.is_some_and(|named| !named.is_within(allowed));
            prop_assert!(allowed.is_empty() || outside, "{request}: {problem}");
            return Ok(());
        }
    };
    let most = named.as_ref().unwrap_or(allowed);
    let mut seen = CpuSet::default();
    for group in &choice.groups {
        prop_assert!(!group.is_empty() && group.is_within(most), "{choice:?}");
        prop_assert!(group.is_within(allowed) && group.and(&seen).is_empty(), "{choice:?}");
        seen = seen.or(group);
    }
    prop_assert!(!seen.is_empty());
    prop_assert_eq!(choice.rule == Rule::Own, request.starts_with("per-node"));
    prop_assert!(choice.rule != Rule::Own || seen == *most, "{choice:?}");
    prop_assert!(!choice.reasons.is_empty());
    // The settings for the library have these CPUs, and no others.
    let settings = choice.settings();
    let list = settings.split(':').find_map(|part| part.strip_prefix("cpus=")).unwrap();
    let groups = list.split('/').map(|group| group.parse::<CpuSet>().unwrap());
    prop_assert_eq!(groups.fold(CpuSet::default(), |all, group| all.or(&group)), seen);
    Ok(())
}
