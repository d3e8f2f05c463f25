//! Cases: reading them from a program's output, and comparing those of two runs.

use std::collections::HashMap;

use crate::child::{End, Outcome};

/// The cases that a program printed, in order: name and result.
pub fn parse(output: &str) -> Vec<(&str, &str)> {
    output.lines().map(|line| line.split_once(' ').unwrap_or((line, ""))).collect()
}

/// The faults that make a run useless for comparison: the program failed, a case's own expectation
/// did not hold, or a name was printed twice.
pub fn defects(outcome: &Outcome) -> Vec<String> {
    let mut defects = Vec::new();
    if !matches!(outcome.end, End::Exited(status) if status.success()) {
        defects.push(format!("the program {}: {}", outcome.end, outcome.stderr.trim_end()));
    }
    let mut seen = HashMap::new();
    for (name, result) in parse(&outcome.stdout) {
        if result.is_empty() || result == "no" {
            defects.push(format!("{name}: does not hold ({result:?})"));
        }
        if seen.insert(name, result).is_some() {
            defects.push(format!("{name}: two cases have this name"));
        }
    }
    defects
}

/// The differences between a run and the run for comparison, a line each. There are none if the
/// results agree.
pub fn differences(expected: &Outcome, got: &Outcome) -> Vec<String> {
    let got_by_name: HashMap<_, _> = parse(&got.stdout).into_iter().collect();
    let expected_by_name: HashMap<_, _> = parse(&expected.stdout).into_iter().collect();
    let mut differences = Vec::new();
    for (name, expected) in parse(&expected.stdout) {
        match got_by_name.get(name) {
            None => differences.push(format!("{name}: expected {expected}, got no result")),
            Some(got) if *got != expected => {
                differences.push(format!("{name}: expected {expected}, got {got}"));
            }
            Some(_) => {}
        }
    }
    for (name, result) in parse(&got.stdout) {
        if !expected_by_name.contains_key(name) {
            differences.push(format!("{name}: nothing expected, got {result:?}"));
        }
    }
    if expected.end != got.end {
        differences.push(format!("end: expected {}, got {}", expected.end, got.end));
    }
    if differences.is_empty() && expected.stdout != got.stdout {
        differences.push("the same cases, but in another order or number".to_owned());
    }
    differences
}

/// A summary of the differences that fits a screen: the first of them, and the program's last
/// output.
pub fn account(heading: &str, got: &Outcome, differences: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut lines = vec![format!("{heading}: {} differences", differences.len())];
    lines.extend(differences.iter().take(SHOWN).map(|difference| format!("    {difference}")));
    if differences.len() > SHOWN {
        lines.push(format!("    ... and {} more", differences.len() - SHOWN));
        lines.extend(differences.last().map(|difference| format!("    {difference}")));
    }
    for (name, text) in [("printed", &got.stdout), ("complained", &got.stderr)] {
        let last: Vec<_> = text.lines().rev().take(3).collect();
        lines.extend(last.iter().rev().map(|line| format!("    last {name}: {line}")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn outcome(stdout: &str) -> Outcome {
        let end = End::Exited(std::process::ExitStatus::default());
        Outcome { end, stdout: stdout.to_owned(), stderr: String::new() }
    }

    #[test]
    fn the_same_output_is_no_difference() {
        assert!(differences(&outcome("a 0\nb 1\n"), &outcome("a 0\nb 1\n")).is_empty());
    }

    #[test]
    fn notices_other_results_missing_cases_and_strange_lines() {
        let expected = outcome("a 0\nb EBUSY\nc yes\n");
        let got = outcome("a 0\nb 0\nhello\n");
        let lines = [
            "b: expected EBUSY, got 0",
            "c: expected yes, got no result",
            "hello: nothing expected, got \"\"",
        ];
        assert_eq!(differences(&expected, &got), lines);
    }

    #[test]
    fn notices_order_and_end() {
        let expected = outcome("a 0\nb 0\n");
        assert_eq!(differences(&expected, &outcome("b 0\na 0\n")).len(), 1);
        let stopped = Outcome { end: End::Stopped(Duration::from_secs(1)), ..expected.clone() };
        assert_eq!(
            differences(&expected, &stopped),
            ["end: expected exit status: 0, got hangs: stopped after 1 s"]
        );
    }

    #[test]
    fn notices_defects_of_the_program_itself() {
        assert!(defects(&outcome("a 0\nb yes\n")).is_empty());
        assert_eq!(defects(&outcome("a 0\na 0\n")).len(), 1);
        assert_eq!(defects(&outcome("a no\n")).len(), 1);
    }
}
