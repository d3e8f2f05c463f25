//! Where a profile goes besides the terminal: as JSON, as a page, and in the formats of other
//! programs.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use manycore_profile::profile::Profile;
use manycore_profile::render::{Sort, firefox, folded, page, pprof, trace};

use manycore_launch::failure::{Failure, Result};

/// Reads the value of `--sort`.
pub fn sort() -> impl TypedValueParser<Value = Sort> {
    let values = Sort::ALL.map(|(_, name, means)| PossibleValue::new(name).help(means));
    PossibleValuesParser::new(values).map(|given| {
        let (sort, ..) =
            Sort::ALL.into_iter().find(|(_, name, _)| *name == given).expect("it is one of them");
        sort
    })
}

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

    /// Opens the file that this flag names, before the program runs, so that a long run is not
    /// lost.
    pub fn open(&self, flag: &str) -> Result<Output> {
        let Some(path) = &self.path else {
            return Ok(Output { name: "stdout".into(), to: Box::new(io::stdout()) });
        };
        let file = File::create(path).map_err(|error| {
            Failure::bad_input(
                format!("cannot write the profile to '{}': {error}", path.display()),
                format!("let {flag} name a file that you may write"),
            )
        })?;
        Ok(Output { name: path.display().to_string(), to: Box::new(file) })
    }
}

impl Output {
    /// Writes the profile as JSON.
    pub fn write_json(self, profile: &Profile) -> Result<()> {
        let text = serde_json::to_string_pretty(profile)
            .map_err(|error| Failure::failed(format!("cannot write the profile: {error}")))?;
        self.write((text + "\n").as_bytes())
    }

    fn write(mut self, bytes: &[u8]) -> Result<()> {
        self.to.write_all(bytes).and_then(|()| self.to.flush()).map_err(|error| {
            Failure::failed(format!("cannot write the profile to {}: {error}", self.name))
        })
    }
}

/// Other forms of a profile.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Other forms")]
pub struct Forms {
    /// Write the profile as a page for a browser: one file, which loads nothing
    #[arg(long, value_name = "FILE")]
    html: Option<Destination>,
    /// Write the stacks of waits in lines, for flamegraph.pl, inferno and speedscope
    #[arg(long, value_name = "FILE")]
    folded: Option<Destination>,
    /// Write the run over time as a trace, for ui.perfetto.dev and chrome://tracing
    #[arg(long, value_name = "FILE")]
    perfetto: Option<Destination>,
    /// Write stacks for pprof, speedscope, Pyroscope and Parca: protocol buffers, compressed
    #[arg(long, value_name = "FILE")]
    pprof: Option<Destination>,
    /// Write stacks for profiler.firefox.com
    #[arg(long, value_name = "FILE")]
    firefox: Option<Destination>,
}

/// Makes a form of a profile.
type Form = fn(&Profile) -> Vec<u8>;

impl Forms {
    /// Opens the files for all requested formats; `json` is written in addition.
    pub fn open(&self, json: Option<&Destination>) -> Result<OpenForms> {
        let forms: [(&str, &Option<Destination>, Form); 5] = [
            ("--html", &self.html, |profile| page::html(profile).into_bytes()),
            ("--folded", &self.folded, |profile| folded::folded(profile).into_bytes()),
            ("--perfetto", &self.perfetto, |profile| {
                trace::trace(profile).to_string().into_bytes()
            }),
            ("--pprof", &self.pprof, pprof::pprof),
            ("--firefox", &self.firefox, |profile| {
                firefox::firefox(profile).to_string().into_bytes()
            }),
        ];
        let asked =
            forms.into_iter().filter_map(|(flag, to, form)| Some((flag, to.as_ref()?, form)));
        let named = asked.clone().map(|(flag, to, _)| (flag, to));
        let named = json.map(|to| ("--json", to)).into_iter().chain(named);
        let printed: Vec<&str> =
            named.filter(|(_, to)| to.is_stdout()).map(|(flag, _)| flag).collect();
        if let [_, _, ..] = printed[..] {
            return Err(Failure::bad_input(
                format!("{} would be mixed on stdout", printed.join(" and ")),
                "let all but one of them name a file",
            ));
        }
        let opened = asked.map(|(flag, to, form)| Ok((to.open(flag)?, form)));
        Ok(OpenForms { forms: opened.collect::<Result<_>>()? })
    }
}

/// Forms whose files can be written to.
pub struct OpenForms {
    forms: Vec<(Output, Form)>,
}

impl OpenForms {
    /// Whether none is asked for.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Writes the profile in each.
    pub fn write(self, profile: &Profile) -> Result<()> {
        self.forms.into_iter().try_for_each(|(output, form)| output.write(&form(profile)))
    }
}
