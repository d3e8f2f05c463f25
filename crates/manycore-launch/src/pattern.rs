//! Regular expressions from the command line.

use regex_lite::Regex;

use crate::failure::{Failure, Result};

/// Reads one; a mistake in it becomes a line.
pub fn regex(text: &str) -> Result<Regex> {
    Regex::new(text).map_err(|error| {
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Failure::bad_input(
            format!("bad regular expression '{text}': {why}"),
            "a backslash before a special character makes it plain",
        )
    })
}
