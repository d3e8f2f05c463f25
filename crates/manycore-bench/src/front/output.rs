//! How results are printed, and which of them are failures.

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::print;
use manycore_measure::{Claim, Host, Judgement, Results};

/// A text below the name of the host.
pub(super) fn on_this_host(text: &str) -> String {
    format!("{}\n\n{}\n", Host::describe(), text.trim_end())
}

/// Prints results, for machines or as text; measurements of this host appear below its name.
pub fn print_results(results: &Results, json: bool, text: &str) -> Result<()> {
    if !json {
        return match results.host {
            Some(_) => print(&on_this_host(text)),
            None => print(text),
        };
    }
    let results = results.to_json();
    let results =
        results.map_err(|error| Failure::failed(format!("no usable results: {error}")))?;
    print(&format!("{results}\n"))
}

/// An error if some locks could not be measured, with a line for each.
pub fn failed_locks(failures: &[String]) -> Result<()> {
    match failures {
        [] => Ok(()),
        failures => Err(Failure::failed(failures.join("; "))),
    }
}

/// An error if some claims are not met.
pub fn failed_claims(claims: &[Claim]) -> Result<()> {
    let failed: Vec<&str> = claims
        .iter()
        .filter(|claim| claim.verdict == Judgement::Fail)
        .map(|claim| claim.id.as_str())
        .collect();
    match failed.len() {
        0 => Ok(()),
        count => Err(Failure::failed(format!(
            "{count} of {} claims failed: {}",
            claims.len(),
            failed.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use manycore_measure::Bound;

    use super::*;

    fn claim(id: &str, verdict: Judgement) -> Claim {
        Claim { verdict, ..Claim::open(id, "", Bound::AtLeast(0.5)) }
    }

    #[test]
    fn only_failed_claims_fail() {
        let (pass, undecided) = (claim("a", Judgement::Pass), claim("b", Judgement::Undecided));
        assert!(failed_claims(&[pass.clone(), undecided.clone()]).is_ok());
        let failed = failed_claims(&[pass, claim("c", Judgement::Fail), undecided]).unwrap_err();
        assert_eq!(failed.to_string(), "1 of 3 claims failed: c");
    }
}
