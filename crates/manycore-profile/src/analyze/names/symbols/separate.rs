//! Where distributions put the data that they strip off a program: a separate file, found by the
//! program's build id, or by the name that is in the program.

use std::fs::File;
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::{Object, ReadRef};

use manycore_launch::regular;

/// Where packages with debugging information put it.
pub const DEBUG: &str = "/usr/lib/debug";

/// The files that belong to one that was stripped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Separate {
    /// Its symbols and DWARF.
    pub debug: Option<PathBuf>,
    /// What several such files have in common.
    pub supplement: Option<PathBuf>,
}

/// Searches for the files that belong to `file`, next to it and below the directory `root`.
pub fn find<'d, R: ReadRef<'d>>(path: &Path, file: &object::File<'d, R>, root: &Path) -> Separate {
    let build_id = file.build_id().ok().flatten();
    let debug = build_id
        .and_then(|id| by_build_id(id, root))
        .or_else(|| by_link(path, file, build_id, root));
    let supplement = match &debug {
        Some(debug) => opened(debug)
            .and_then(|cache| supplement(debug, &object::File::parse(&cache).ok()?, root)),
        None => supplement(path, file, root),
    };
    Separate { debug, supplement }
}

fn opened(path: &Path) -> Option<ReadCache<File>> {
    regular::open(path).ok().map(ReadCache::new)
}

/// `ROOT/.build-id/ab/cdef.debug`
fn by_build_id(id: &[u8], root: &Path) -> Option<PathBuf> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (first, rest) = id.split_at_checked(1)?;
    let found = root.join(".build-id").join(hex(first)).join(hex(rest) + ".debug");
    found.is_file().then_some(found)
}

/// The separate file that the program names, in the places where gdb looks for it.
fn by_link<'d, R: ReadRef<'d>>(
    path: &Path,
    file: &object::File<'d, R>,
    build_id: Option<&[u8]>,
    root: &Path,
) -> Option<PathBuf> {
    let (name, sum) = file.gnu_debuglink().ok().flatten()?;
    let name = str::from_utf8(name).ok().filter(|name| !name.contains('/'))?;
    let directory = path.parent()?;
    let below = root.join(directory.strip_prefix("/").ok()?);
    let places = [directory.to_owned(), directory.join(".debug"), below];
    let fits = |found: &PathBuf| found != path && belongs(found, build_id, sum);
    places.into_iter().map(|place| place.join(name)).find(fits)
}

/// Whether a file is of the same build: an older file of the same name would give wrong results.
fn belongs(found: &Path, build_id: Option<&[u8]>, sum: u32) -> bool {
    match build_id {
        Some(id) => opened(found).is_some_and(|cache| {
            let file = object::File::parse(&cache);
            file.is_ok_and(|file| file.build_id().ok().flatten() == Some(id))
        }),
        None => regular::read(found).is_ok_and(|bytes| crc32fast::hash(&bytes) == sum),
    }
}

/// The data that `dwz` has moved out of a file, because other files have it as well.
fn supplement<'d, R: ReadRef<'d>>(
    path: &Path,
    file: &object::File<'d, R>,
    root: &Path,
) -> Option<PathBuf> {
    let (name, id) = file.gnu_debugaltlink().ok().flatten()?;
    by_build_id(id, root).or_else(|| {
        let named = path.parent()?.join(str::from_utf8(name).ok()?);
        named.is_file().then_some(named)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// Makes a program with debugging information, and the same program as a distribution would
    /// strip it, with a link.
    fn stripped(directory: &Path, linker: &str) -> PathBuf {
        let source = "int main(void) { return 0; }";
        fs::write(directory.join("x.c"), source).unwrap();
        for command in [
            &["cc", "-g", linker, "-o", "x", "x.c"][..],
            &["objcopy", "--only-keep-debug", "x", "x.debug"],
            &["strip", "x"],
            &["objcopy", "--add-gnu-debuglink=x.debug", "x"],
        ] {
            let done = Command::new(command[0]).args(&command[1..]).current_dir(directory).status();
            assert!(done.unwrap().success(), "{command:?}");
        }
        directory.join("x")
    }

    fn debug_of(path: &Path, root: &Path) -> Option<PathBuf> {
        let cache = opened(path).unwrap();
        find(path, &object::File::parse(&cache).unwrap(), root).debug
    }

    #[test]
    fn by_the_name_that_the_program_has_of_it() {
        let (directory, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for linker in ["-Wl,--build-id", "-Wl,--build-id=none"] {
            let program = stripped(directory.path(), linker);
            let debug = directory.path().join("x.debug");
            assert_eq!(debug_of(&program, root.path()), Some(debug.clone()), "{linker}");
            // One of another build.
            fs::copy(&program, &debug).unwrap();
            let status = Command::new("objcopy")
                .args(["--remove-section=.note.gnu.build-id".as_ref(), debug.as_os_str()])
                .status();
            assert!(status.unwrap().success());
            assert_eq!(debug_of(&program, root.path()), None, "{linker}");
        }
    }

    #[test]
    fn by_the_build_id() {
        let (directory, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let id = "ab0123456789";
        let program = stripped(directory.path(), &format!("-Wl,--build-id=0x{id}"));
        let place = root.path().join(".build-id").join(&id[..2]);
        fs::create_dir_all(&place).unwrap();
        let debug = place.join(format!("{}.debug", &id[2..]));
        fs::rename(directory.path().join("x.debug"), &debug).unwrap();
        assert_eq!(debug_of(&program, root.path()), Some(debug));
    }
}
