//! The models that come with the crate, and those in files.

use std::path::Path;

use super::{Model, Problem};

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        /// The models that come with the crate: file name and text.
        pub const EMBEDDED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*];
    };
}

embedded!(
    "xeon-e7-8870-8x15-like",
    "xeon-8180-8x28x2-like",
    "xeon-e5-2697-2x18x2-like",
    "xeon-8280m-2x28x2-like",
    "xeon-4x6-like",
    "ivybridge-2x10-like",
    "epyc-2x96-like",
    "graviton-64-like",
    "xeon-e5-2699v4-2x22-like",
    "epyc-9454p-8x8-like",
    "m1-ultra-18-like",
    "core-12500-6x2-like",
    "xeon-6148-2x20-like",
    "xeon-8488c-2x48x2-like",
    "xeon-e5-2680v4-2x14x2-like",
    "xeon-e5-2680v2-2x10x2-like",
    "xeon-e5-2660-2x8x2-like",
    "xeon-e7-8895v3-4x18x2-like",
    "xeon-e7-8890v4-4x24-like",
    "xeon-e5-2699v3-2x18x2-like",
    "xeon-d-2191-18x2-like",
    "icelake-8375c-2x32x2-like",
    "graviton2-16-like",
    "graviton1-a72-16-like",
    "xeon-e7-8870-8x10-like",
    "opteron-6172-8x6-like",
    "opteron-6272-8x8-like",
    "opteron-8431-8x6-like",
);

/// The names of the models that come with the crate.
pub fn names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// Finds a model. A name with a slash, or with the ending `.toml`, is the path of a file. Other
/// names are those of models that come with the crate, with or without `-like`.
pub fn find(name: &str) -> Result<Model, Problem> {
    if name.contains('/') || name.ends_with(".toml") {
        return read(Path::new(name));
    }
    let known = |embedded: &&(&str, &str)| {
        embedded.0 == name || embedded.0.strip_suffix("-like") == Some(name)
    };
    match EMBEDDED.iter().find(known) {
        Some((name, text)) => Model::parse(name, text),
        None => Err(Problem::of_name(format!(
            "there is no machine `{name}`; choose from {}, or give the path of a file, such as ./{name}.toml",
            names().collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn read(path: &Path) -> Result<Model, Problem> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let remedy = "`manycore machines measure --out FILE` writes one of this host";
        Problem::of_file(&file, format_args!("cannot be read: {error}"), remedy)
    })?;
    Model::parse(&file, &text)
}
