//! House style, enforced by a program: one file for each rule, each with a test on input that
//! breaks it.
//!
//! A finding names the place and the remedy. If a rule does not fit, change the rule here, and give
//! the reason. Do not work around it in the code that it names. Every list of exceptions below has
//! a column for the reason.
//!
//! | rule | what it asks for |
//! |---|---|
//! | [`size`] | files under 600 lines, functions that fit a screen |
//! | [`width`] | comments that end at column 100 |
//! | [`safety`] | the invariant above every `unsafe` block, `unsafe impl` and piece of assembly |
//! | [`pages`] | algorithms and crates that open with their page |
//! | [`arrows`] | crates that depend on each other in one direction only |
//! | [`circles`] | modules beside each other that use each other in one direction only |
//! | [`facade`] | algorithms that know nothing of the machine but what `manycore::sync` shows |
//! | [`orderings`] | a reason at every memory ordering |
//! | [`mutations`] | a model that notices each weakened ordering; a row in the book for each |
//! | [`leftovers`] | nothing left open, no module for odds and ends |
//! | [`places`] | no file that knows whose machine it was written on |
//! | [`book`] | chapters and links that exist; each lock and command described |

mod arrows;
mod book;
mod circles;
mod facade;
mod leftovers;
mod mutations;
mod orderings;
mod pages;
mod places;
mod safety;
mod size;
mod source;
mod width;

use std::fmt;

/// A place that breaks a rule, and the remedy.
struct Finding {
    path: String,
    line: usize,
    advice: String,
}

impl Finding {
    fn new(path: impl Into<String>, line: usize, advice: impl Into<String>) -> Self {
        Self { path: path.into(), line, advice: advice.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.advice)
    }
}

/// Fails the test if there are findings, naming all of them.
#[track_caller]
fn report(findings: impl IntoIterator<Item = Finding>) {
    let findings: Vec<_> = findings.into_iter().map(|f| format!("\n  {f}")).collect();
    assert!(findings.is_empty(), "{} to mend:{}", findings.len(), findings.concat());
}

/// The lines that a rule reports, for tests of the rule itself.
fn lines(findings: impl IntoIterator<Item = Finding>) -> Vec<usize> {
    findings.into_iter().map(|f| f.line).collect()
}
