//! Where the JSON of a profile goes.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use manycore_profile::profile::Profile;

use crate::failure::{Failure, Result};

/// A file, or stdout for `-`.
#[derive(Clone, Debug)]
pub struct Destination {
    path: Option<PathBuf>,
}

impl FromStr for Destination {
    type Err = Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        Ok(Self { path: (text != "-").then(|| text.into()) })
    }
}

/// A destination that can be written to.
pub struct Output {
    name: String,
    to: Box<dyn Write>,
}

impl Destination {
    /// Whether it is stdout.
    pub fn is_stdout(&self) -> bool {
        self.path.is_none()
    }

    /// Opens it: before the program is run, so that a long run is not in vain.
    pub fn open(&self) -> Result<Output> {
        let Some(path) = &self.path else {
            return Ok(Output { name: "stdout".into(), to: Box::new(io::stdout()) });
        };
        let file = File::create(path).map_err(|error| {
            Failure::bad_input(
                format!("cannot write the profile to '{}': {error}", path.display()),
                "let --json name a file that you may write",
            )
        })?;
        Ok(Output { name: path.display().to_string(), to: Box::new(file) })
    }
}

impl Output {
    /// Writes the profile.
    pub fn write(mut self, profile: &Profile) -> Result<()> {
        let text = serde_json::to_string_pretty(profile)
            .map_err(|error| Failure::failed(format!("cannot write the profile: {error}")))?;
        writeln!(self.to, "{text}").and_then(|()| self.to.flush()).map_err(|error| {
            Failure::failed(format!("cannot write the profile to {}: {error}", self.name))
        })
    }
}
