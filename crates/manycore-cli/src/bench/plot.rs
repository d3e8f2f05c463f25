//! `--plot FILE`: the result as a picture.

use std::convert::Infallible;
use std::fs::{self, File};
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use manycore_report::Figure;

use super::on_this_host;
use crate::failure::{Failure, Result};

/// Whether and where to draw.
#[derive(Args, Debug)]
pub struct PlotOptions {
    /// Draw the result, too: FILE.svg, or FILE.html, which also has the table
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
}

#[derive(Clone, Debug)]
struct PlotFile(PathBuf);

impl FromStr for PlotFile {
    type Err = Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        Ok(Self(text.into()))
    }
}

/// A file that can be drawn into.
pub struct Canvas {
    path: PathBuf,
    is_page: bool,
}

impl PlotOptions {
    /// Makes sure of the file, if one is asked for: before anything is measured, so that it is not measured in vain.
    pub fn open(&self) -> Result<Option<Canvas>> {
        let Some(PlotFile(path)) = &self.plot else { return Ok(None) };
        let is_page = match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => false,
            Some("html") => true,
            _ => {
                return Err(Failure::bad_input(
                    format!("'{}' does not say what to draw", path.display()),
                    "let --plot name a file that ends with .svg or .html",
                ));
            }
        };
        // What was drawn there before stays until there is something new.
        File::options().append(true).create(true).open(path).map_err(|error| {
            Failure::bad_input(
                format!("cannot draw into '{}': {error}", path.display()),
                "let --plot name a file that you may write",
            )
        })?;
        Ok(Some(Canvas { path: path.clone(), is_page }))
    }
}

impl Canvas {
    /// Draws; on a page stands the table as well.
    pub fn draw(&self, figure: &Figure, table: &str) -> Result<()> {
        let text = if self.is_page { figure.html(&on_this_host(table)) } else { figure.svg() };
        fs::write(&self.path, text).map_err(|error| {
            Failure::failed(format!("cannot draw into '{}': {error}", self.path.display()))
        })
    }
}
