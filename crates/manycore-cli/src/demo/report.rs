//! The report of a demonstration: text for a person, and the same data as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use manycore_measure::{
    Cell, Column, Measurement, Mechanism, Metric, Results, Table, Tone, interval, ratio,
};
use manycore_profile::profile::Profile;

use crate::demo::trials::Tried;
use manycore_launch::failure::{Failure, Result};
use manycore_profile::render::{Sort, View, page, table};

/// What was found.
pub struct Report<'a> {
    /// The profile of the server as it is.
    pub profile: &'a Profile,
    /// The server under other locks, and repaired.
    pub tried: &'a [Tried],
    /// What follows.
    pub sentences: &'a [String; 3],
}

impl Report<'_> {
    /// Writes all files; gives the paths of the text and of the page.
    pub fn write(&self, directory: &Path) -> Result<[PathBuf; 2]> {
        let profile = serde_json::to_string_pretty(self.profile)
            .map_err(|error| Failure::failed(format!("cannot write the profile: {error}")))?;
        let comparison = self
            .results()
            .to_json()
            .map_err(|error| Failure::failed(format!("cannot write the comparison: {error}")))?;
        let [path, page] = ["report.txt", "profile.html"].map(|name| directory.join(name));
        for (path, text) in [
            (&directory.join("profile.json"), profile),
            (&directory.join("comparison.json"), comparison),
            (&path, self.text(directory)),
            (&page, page::html(self.profile)),
        ] {
            fs::write(path, text + "\n").map_err(|error| {
                Failure::failed(format!("cannot write {}: {error}", path.display()))
            })?;
        }
        Ok([path, page])
    }

    /// The server under other locks, and repaired.
    pub fn comparison(&self, new: fn(Vec<Column>) -> Table) -> Table {
        let mut table = new(vec![
            Column::words("server"),
            Column::number("batches/s"),
            Column::number("of glibc's"),
            Column::number("95 % interval"),
        ]);
        for one in self.tried {
            let (low, high) = one.comparison.and_then(|comparison| comparison.interval).unzip();
            let name = match one.candidate.repaired {
                true => "checks behind the lock, glibc".to_owned(),
                false => format!("as it is, {}", one.candidate.lock),
            };
            table.row([
                name.into(),
                format!("{:.0}", one.rate.value).into(),
                one.comparison.map(|c| ratio(c.ratio)).unwrap_or_default().into(),
                Cell::new(interval(low, high), Tone::Faint),
            ]);
        }
        table
    }

    fn text(&self, directory: &Path) -> String {
        let rounds = self.tried.first().map_or(0, |one| one.runs);
        format!(
            "A cache server with a contended lock, as `manycore demo` found it\n\n\
             1. The profile: `manycore profile -- {command}`\n\n{profile}\n\
             2. Other locks, and a repair: {rounds} interleaved runs of each\n\n{comparison}\n\n\
             3. In three sentences\n\n{sentences}\n\n\
             The server's source is {source}; what was measured is in profile.json and comparison.json beside it.",
            command = self.profile.command.join(" "),
            profile = table::whole(self.profile, View::plain(usize::MAX, Sort::Wait)),
            comparison = self.comparison(Table::plain),
            sentences = self.sentences.join("\n"),
            source = directory.join("server.c").display(),
        )
    }

    fn results(&self) -> Results {
        let measurement = |one: &Tried| {
            let mechanism = Mechanism::Lock(one.candidate.lock.clone());
            let mut result = Measurement::new("demo", mechanism, "op/s", one.rate.value);
            (result.low, result.high) = one.rate.interval.unzip();
            result.repetitions = one.runs as u32;
            result.threads = self.profile.processes.first().map_or(0, |process| process.threads);
            let checks = if one.candidate.repaired { "outside" } else { "inside" };
            result.parameters.insert("checks".into(), checks.into());
            if let Some(comparison) = one.comparison {
                let (low, high) = comparison.interval.unzip();
                let ratio = Metric { value: comparison.ratio, unit: "ratio".into(), low, high };
                result.metrics.insert("ratio".into(), ratio);
            }
            result
        };
        Results::of_this_host(self.tried.iter().map(measurement).collect())
    }
}
