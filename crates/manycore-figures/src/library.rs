//! The figures that come with manycore: the files in `figures/`.

use std::path::Path;

use crate::figure::{Extent, Figure, Problem};

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        /// The names and texts of figures, in the order of their display.
        const EMBEDDED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../figures/", $name, ".toml")))),*];
    };
}

embedded!(
    "innodb-scaling",
    "innodb-mixed",
    "innodb-locks",
    "mvrlu-list",
    "mvrlu-hash",
    "mvrlu-bst",
    "timestone-hash",
    "timestone-list",
    "khronos-list",
    "khronos-hash",
    "khronos-names",
    "khronos-rename",
    "khronos-pairs",
    "khronos-log",
    "linux-aim7",
    "linux-specjbb",
    "ldu-aim7",
    "ldu-exim",
    "ldu-lmbench",
    "timestamp-merge",
    "syscall-affinity",
);

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// The figure of this name. If the name has a slash or the ending `.toml`, the figure in the file
/// of this name.
pub fn find(name: &str, extent: Extent) -> Result<Figure, Problem> {
    if name.contains('/') || name.ends_with(".toml") {
        return read(Path::new(name), extent);
    }
    match EMBEDDED.iter().find(|(own, _)| *own == name) {
        Some((name, text)) => Figure::parse(name, text, extent),
        None => Err(Problem(format!(
            "there is no figure `{name}`; choose from {}, or give the path of a file, such as ./{name}.toml",
            names().collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn read(path: &Path, extent: Extent) -> Result<Figure, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem(format!("'{}' cannot be read: {error}; give the file of a figure", path.display()))
    })?;
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    Figure::parse(&id, &text, extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_embedded_and_can_be_read() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../figures");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            // Beside them is a directory with what others measured.
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let mut embedded: Vec<String> = names().map(str::to_owned).collect();
        files.sort();
        embedded.sort();
        assert_eq!(files, embedded);
        for name in names() {
            for extent in [Extent::Whole, Extent::Quick] {
                let figure = find(name, extent).unwrap_or_else(|problem| panic!("{problem}"));
                manycore_sim::model::find(&figure.machine).unwrap();
            }
        }
    }

    #[test]
    fn an_unknown_figure_is_named_with_those_that_there_are() {
        let problem = find("figure-4", Extent::Whole).unwrap_err().to_string();
        assert!(problem.contains("figure-4") && problem.contains("mvrlu-hash"), "{problem}");
        let problem = find("./no.toml", Extent::Whole).unwrap_err().to_string();
        assert!(problem.contains("./no.toml"), "{problem}");
    }
}
