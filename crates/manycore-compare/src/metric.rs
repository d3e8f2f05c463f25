//! The compared quantity: wall time, or a number that the program prints.

use std::str::FromStr;

use manycore_measure::paired::Better;
use regex_lite::Regex;

use crate::trial::Outcome;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::pattern::regex;

/// The number that a run gives.
#[derive(Clone, Debug)]
pub enum Metric {
    /// How long it took, in nanoseconds.
    Wall,
    /// The first group of the last match in the program's output.
    Printed(Regex),
}

impl FromStr for Metric {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        if text == "wall" {
            return Ok(Self::Wall);
        }
        let pattern = regex(text)?;
        if pattern.captures_len() < 2 {
            return Err(Failure::bad_input(
                format!("the metric '{text}' has no group"),
                "put the number in parentheses: 'ops/s: ([0-9.]+)'",
            ));
        }
        Ok(Self::Printed(pattern))
    }
}

impl Metric {
    /// Which values are good: for times, low ones; for other quantities high ones, unless the user
    /// says otherwise.
    pub fn better(&self, lower_is_better: bool) -> Better {
        match self {
            Self::Wall => Better::Lower,
            Self::Printed(_) if lower_is_better => Better::Lower,
            Self::Printed(_) => Better::Higher,
        }
    }

    /// The unit in which values are reported; a printed number is not converted.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Wall => "ns",
            Self::Printed(_) => "",
        }
    }

    /// The name of the value in a table or a sentence.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Wall => "wall time",
            Self::Printed(_) => "value",
        }
    }

    /// The metric in full.
    pub fn name(&self) -> &str {
        match self {
            Self::Wall => "wall time",
            Self::Printed(pattern) => pattern.as_str(),
        }
    }

    /// The value of one run.
    pub fn value(&self, outcome: &Outcome) -> Result<f64> {
        let Self::Printed(pattern) = self else {
            return Ok(outcome.wall.as_nanos() as f64);
        };
        let last = pattern.captures_iter(&outcome.output).last();
        let Some(printed) = last.and_then(|found| found.get(1)) else {
            let message = format!("no output matches the metric '{pattern}'; it ends with");
            return Err(Failure::failed(message).with_output(last_lines(&outcome.output)));
        };
        match printed.as_str().parse::<f64>() {
            Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
            _ => Err(Failure::failed(format!(
                "the metric '{pattern}' found '{}', and only positive numbers can be compared",
                printed.as_str()
            ))),
        }
    }
}

fn last_lines(text: &str) -> &str {
    const LINES: usize = 8;
    let text = text.trim_end();
    let start = text.rmatch_indices('\n').nth(LINES - 1).map_or(0, |(at, _)| at + 1);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcome(output: &str) -> Outcome {
        Outcome { wall: Duration::from_millis(3), ..Outcome::said(output) }
    }

    #[test]
    fn the_last_match_counts() {
        let metric: Metric = "time: ([0-9.e+]+)".parse().unwrap();
        assert_eq!(metric.value(&outcome("time: 1\ntime: 2.5e3 s\n")).unwrap(), 2500.0);
        assert_eq!("wall".parse::<Metric>().unwrap().value(&outcome("")).unwrap(), 3e6);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let metric: Metric = "x=(.*)".parse().unwrap();
        for output in ["", "x=", "x=one", "x=0", "x=-1", "x=inf"] {
            assert!(metric.value(&outcome(output)).is_err(), "{output}");
        }
        assert!("x=.*".parse::<Metric>().is_err());
        assert!("x=(".parse::<Metric>().is_err());
    }

    #[test]
    fn only_the_end_is_shown() {
        assert_eq!(last_lines("a\nb\n"), "a\nb");
        assert_eq!(last_lines("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), "2\n3\n4\n5\n6\n7\n8\n9");
    }
}
