//! The envelope in which measurements are written and read.

use serde::{Deserialize, Serialize};

use crate::{Claim, Host, Measurement};

/// The version of the format, which [`schema`](crate::schema) describes.
pub const SCHEMA: u32 = 1;

/// Measurements with all that a reader needs to know about their origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the format.
    pub schema: u32,
    /// The host, if something was measured on one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<Host>,
    /// The values.
    pub measurements: Vec<Measurement>,
    /// The claims about the measurements, with the verdicts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub claims: Vec<Claim>,
}

/// Why results could not be written or read, in one line.
#[derive(Debug)]
pub struct BadResults(String);

impl std::fmt::Display for BadResults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadResults {}

impl Results {
    /// Results without a host.
    pub fn new(measurements: Vec<Measurement>) -> Self {
        Self { schema: SCHEMA, host: None, measurements, claims: Vec::new() }
    }

    /// Results that were measured here.
    pub fn of_this_host(measurements: Vec<Measurement>) -> Self {
        Self { host: Some(Host::describe()), ..Self::new(measurements) }
    }

    /// Writes the results. Refuses records that no reader could use, such as a value that is not a
    /// number.
    pub fn to_json(&self) -> Result<String, BadResults> {
        self.check()?;
        serde_json::to_string_pretty(self).map_err(|error| BadResults(error.to_string()))
    }

    /// Reads results; fields that this version does not know are ignored.
    pub fn from_json(text: &str) -> Result<Self, BadResults> {
        #[derive(Deserialize)]
        struct Versioned {
            schema: u32,
        }
        let failed =
            |error: serde_json::Error| BadResults(format!("not manycore results: {error}"));
        let found = serde_json::from_str::<Versioned>(text).map_err(failed)?.schema;
        if found != SCHEMA {
            return Err(BadResults(format!(
                "the results have schema {found}, this version reads {SCHEMA}: use the version that wrote them"
            )));
        }
        let results: Self = serde_json::from_str(text).map_err(failed)?;
        results.check()?;
        Ok(results)
    }

    fn check(&self) -> Result<(), BadResults> {
        let no_number = |claim: &Claim| {
            let mut values = [claim.value, claim.low, claim.high].into_iter().flatten();
            let wrong = values.any(|value| !value.is_finite());
            wrong.then(|| format!("claim `{}` is not about finite numbers", claim.id))
        };
        let fault = self.measurements.iter().find_map(Measurement::fault);
        match fault.or_else(|| self.claims.iter().find_map(no_number)) {
            Some(fault) => Err(BadResults(fault)),
            None => Ok(()),
        }
    }
}
