//! `--plot FILE`: the result as a picture.

use std::convert::Infallible;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use manycore_measure::Figure;

use super::output::on_this_host;
use manycore_launch::failure::{Failure, Result};

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
    /// Opens the picture's file if one is requested. It checks before any measurement that the file
    /// can be written, so that no measurement is lost.
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
        // Where a link leads to: it stays a link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        can_be_replaced(&path).map_err(|error| {
            Failure::bad_input(
                format!("cannot draw into '{}': {error}", path.display()),
                "let --plot name a file that you may write, in a directory that you may write to",
            )
        })?;
        Ok(Some(Canvas { path, is_page }))
    }
}

/// Checks that the file can be written, without a change: there may be nothing to draw in the end.
fn can_be_replaced(path: &Path) -> io::Result<()> {
    match File::options().append(true).open(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    tempfile::tempfile_in(directory(path)).map(drop)
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl Canvas {
    /// Draws; on a page stands the table as well.
    pub fn draw(&self, figure: &Figure, table: &str) -> Result<()> {
        let text = if self.is_page { figure.html(&on_this_host(table)) } else { figure.svg() };
        self.replace(&text).map_err(|error| {
            Failure::failed(format!("cannot draw into '{}': {error}", self.path.display()))
        })
    }

    /// The old drawing stays until the new one is completely written.
    fn replace(&self, text: &str) -> io::Result<()> {
        let rights = match fs::metadata(&self.path) {
            Ok(old) => old.permissions(),
            Err(_) => Permissions::from_mode(0o666), // less what the umask takes
        };
        let mut file =
            tempfile::Builder::new().permissions(rights).tempfile_in(directory(&self.path))?;
        file.write_all(text.as_bytes())?;
        file.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(path: &Path) -> PlotOptions {
        PlotOptions { plot: Some(PlotFile(path.to_owned())) }
    }

    fn figure() -> Figure {
        Figure { title: "new".into(), panels: Vec::new() }
    }

    fn files(directory: &Path) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    #[test]
    fn nothing_is_there_until_it_is_drawn() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.svg");
        let canvas = options(&path).open().unwrap().unwrap();
        assert!(files(place.path()).is_empty());
        canvas.draw(&figure(), "").unwrap();
        assert_eq!(files(place.path()), [path.as_path()]);
        assert!(fs::read_to_string(&path).unwrap().starts_with("<svg"));
    }

    #[test]
    fn the_old_picture_stays_until_there_is_a_new_one() {
        let place = tempfile::tempdir().unwrap();
        let [path, link] = ["a.svg", "link.svg"].map(|name| place.path().join(name));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("a.svg", &link).unwrap();
        // Another name of the old file, to see that it is not written to.
        let old = place.path().join("old");
        fs::hard_link(&path, &old).unwrap();
        let canvas = options(&link).open().unwrap().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        canvas.draw(&figure(), "").unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "old");
        assert!(fs::read_to_string(&path).unwrap().starts_with("<svg"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(files(place.path()), [path, link, old]);
    }

    #[test]
    fn a_directory_is_no_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.svg");
        fs::create_dir(&path).unwrap();
        assert!(matches!(options(&path).open(), Err(Failure::BadInput(_))));
    }
}
