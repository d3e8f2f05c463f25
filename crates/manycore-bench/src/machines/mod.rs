//! `manycore machines`: the models of machines, and where their numbers come from.
//!
//! | module | what is in it |
//! |---|---|
//! | `measure` | a model of this host |
//! | `derive` | a model out of measured latencies and bursts |
//! | `show` | all that there is to say about one |

mod derive;
mod measure;
mod show;

use clap::{Args, Subcommand};
use manycore_measure::{Column, Table};
use manycore_sim::model::{self, Model};
use serde_json::json;

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::{Terminal, print};

const NOTES: &str = "\
Examples:
  manycore machines
  manycore machines xeon-8180-8x28x2
  manycore machines measure --out here.toml
  manycore machines derive --latencies server.toml
  manycore machines ./here.toml

Models:
  A model is called after a real machine, with -like: its numbers come from
  publications about machines of that kind, and some are guesses. Every one says
  which, and has a range. A name works with and without -like; a path with a slash
  or ending in .toml is a file of your own.

How numbers are known:
  measured     by manycore, on a machine of the kind
  cited        read in a source
  derived      computed from what a source says
  fitted       chosen so that simulated results agree with measured ones
  unverified   attributed to a source that was not at hand
  assumed      an informed guess, with a wide range

Exit status:
  0   done
  2   there is no such machine, a file is no model, or bad usage
";

/// Show the models of machines, and where their numbers come from; measure this host
#[derive(Args, Debug)]
#[command(after_long_help = NOTES, disable_help_subcommand = true, args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    what: Option<What>,
    /// Show all constants of this machine: a name, or a file [default: list the machines]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    Measure(measure::Options),
    Derive(derive::Options),
}

/// Lists, shows or measures.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    match (&options.what, &options.name) {
        (Some(What::Measure(options)), _) => measure::run(options, terminal),
        (Some(What::Derive(options)), _) => derive::run(options, terminal),
        (None, Some(name)) => {
            let model = find(name)?;
            match options.json {
                true => print(&format!("{:#}\n", show::as_json(&model))),
                false => print(&show::as_text(&model)),
            }
        }
        (None, None) => list(options.json),
    }
}

/// The model of this name or in this file.
pub fn find(name: &str) -> Result<Model> {
    model::find(name).map_err(|problem| Failure::BadInput(problem.to_string()))
}

fn list(json: bool) -> Result<()> {
    let models = model::names().map(find).collect::<Result<Vec<_>>>()?;
    if json {
        let machine = |model: &Model| json!({ "name": model.name, "summary": model.summary, "cpus": model.machine().topology.cpus() });
        let machines: Vec<_> = models.iter().map(machine).collect();
        return print(&format!("{:#}\n", json!({ "schema": 1, "machines": machines })));
    }
    let columns = [Column::words("machine"), Column::words("shape"), Column::words("what it is")];
    let mut table = Table::new(columns);
    for model in &models {
        table.row([
            model.name.as_str().into(),
            model.shape().into(),
            model.summary.as_str().into(),
        ]);
    }
    print(&format!("{table}\n"))
}
