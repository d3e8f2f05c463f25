//! What came out, for a terminal.

use std::fmt::Write;

use manycore_measure::{Bound, Cell, Claim, Column, Judgement, Table, significant};

use crate::run::Reproduction;
use crate::statement::expectation;

/// The claims of all figures as a table, with remarks.
pub fn render(found: &[Reproduction]) -> String {
    let claims: Vec<&Claim> = found.iter().flat_map(|found| &found.claims).collect();
    let mut table = Table::new([
        Column::words("claim"),
        Column::number("published"),
        Column::number("bound"),
        Column::number("found"),
        Column::number("band"),
        Column::words("verdict"),
        Column::words("expected"),
    ]);
    for claim in &claims {
        let [published, bound, value, band] = numbers(claim);
        table.row([
            Cell::from(claim.id.as_str()),
            published.into(),
            bound.into(),
            value.into(),
            band.into(),
            Cell::new(claim.verdict.to_string(), claim.tone()),
            claim.expected.map_or("", expectation).into(),
        ]);
    }
    let mut text = table.to_string();
    let _ = writeln!(text, "\n{}", tally(&claims));
    for claim in claims.iter().filter(|claim| claim.verdict == Judgement::Fail) {
        let note = if claim.note.is_empty() { "cause not yet found" } else { &claim.note };
        let _ = writeln!(text, "\n{} failed: {}\n  {note}", claim.id, claim.text);
    }
    text
}

/// The published value, the bound, the value and its band, without units: the claim names its
/// subject.
pub(crate) fn numbers(claim: &Claim) -> [String; 4] {
    let number = |value: f64| significant(value, 3);
    let known = |value: Option<f64>| value.map_or(String::new(), number);
    let bound = match claim.bound {
        None => String::new(),
        Some(Bound::AtLeast(least)) => format!("at least {}", number(least)),
        Some(Bound::AtMost(most)) => format!("at most {}", number(most)),
        Some(Bound::Between(least, most)) => format!("{} to {}", number(least), number(most)),
    };
    let band = claim.low.zip(claim.high);
    let band =
        band.map_or(String::new(), |(low, high)| format!("[{}, {}]", number(low), number(high)));
    [known(claim.published), bound, known(claim.value), band]
}

/// The number of each verdict; and those for claims that were expected to pass.
pub(crate) fn tally(claims: &[&Claim]) -> String {
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let expected = |claim: &&&Claim| claim.expected == Some(Judgement::Pass);
    let broken = |claim: &&&Claim| claim.verdict == Judgement::Fail;
    let (promised, failed) = (
        claims.iter().filter(expected).count(),
        claims.iter().filter(expected).filter(broken).count(),
    );
    format!(
        "{} pass, {} fail, {} undecided, {} published only; of {promised} that were expected to pass, {failed} failed. All values are simulated.",
        count(Judgement::Pass),
        count(Judgement::Fail),
        count(Judgement::Undecided),
        count(Judgement::PublishedOnly),
    )
}
