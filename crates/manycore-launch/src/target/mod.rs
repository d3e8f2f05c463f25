//! Whether a library can be preloaded into a program: found out before it is started.
//!
//! The dynamic linker silently ignores LD_PRELOAD in programs that run with other privileges, and a
//! statically linked program has no dynamic linker. Both would run unchanged, and a comparison
//! would find "no difference".

pub mod elf;
mod refusal;
mod script;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::regular;
use rustix::fs::{Access, AtFlags, CWD, accessat, getxattr};

use crate::failure::Result;
use refusal::{Reason, Refusal};

/// The most interpreters of interpreters that are followed; the kernel gives up at five.
const INTERPRETERS_MAX: u32 = 5;

/// Checks that locks can be replaced in the programs that `command` (a program and its arguments)
/// will run.
pub fn check(command: &[OsString]) -> Result<()> {
    Ok(can_be_preloaded(command)?)
}

/// The same, with what is wrong.
pub fn can_be_preloaded(command: &[OsString]) -> std::result::Result<(), Refusal> {
    let mut command = command.to_vec();
    let (mut script, mut by_loader) = (None, false);
    for _ in 0..=INTERPRETERS_MAX {
        let name = command.first().cloned().unwrap_or_default();
        // The dynamic linker does not look where the shell does, and needs no permission to
        // execute.
        let program = if by_loader { Ok(PathBuf::from(&name)) } else { find(&name) };
        let program = program.map_err(|reason| reason.about(&name, script.as_deref()))?;
        let next = examine(&program, &command)
            .map_err(|reason| reason.about(program.as_os_str(), script.as_deref()))?;
        let Some(next) = next else { return Ok(()) };
        by_loader = elf::is_loader(&program);
        if by_loader && !next[0].as_bytes().contains(&b'/') {
            // It is looked for where libraries are.
            return Ok(());
        }
        script.get_or_insert(name);
        command = next;
    }
    Err(Reason::Interpreters.about(&command[0], script.as_deref()))
}

/// Why the locks of a program that runs, or did, cannot be replaced; `None` if they can.
pub fn obstacle(program: &Path) -> Option<String> {
    let check = || {
        let file = regular::open(program).map_err(Reason::Unreadable)?;
        check_privileges(program, &file.metadata().map_err(Reason::Unreadable)?)?;
        // The program that it was told to run is not known here; it has the library if possible.
        if elf::is_loader(program) { Ok(()) } else { elf::check_program(file) }
    };
    check().err().map(Reason::message)
}

/// The runtime of ThreadSanitizer, if the command's program needs it as a library. It has to
/// precede the preloaded libraries, because it observes only the calls that reach it first.
pub fn thread_sanitizer(program: &OsStr) -> Option<OsString> {
    let file = File::open(find(program).ok()?).ok()?;
    elf::needed(file).into_iter().find(|name| is_thread_sanitizer(name))
}

/// Whether a library is the runtime of ThreadSanitizer, GCC's or LLVM's, by its name.
pub fn is_thread_sanitizer(library: &OsStr) -> bool {
    let name = Path::new(library).file_name().unwrap_or_default().as_bytes();
    name.starts_with(b"libtsan.so") || name.starts_with(b"libclang_rt.tsan")
}

/// Checks one file; returns the command that it represents if it is a script, or `env`.
fn examine(
    program: &Path,
    command: &[OsString],
) -> std::result::Result<Option<Vec<OsString>>, Reason> {
    let mut file = regular::open(program).map_err(Reason::Unreadable)?;
    let mut start = [0; 256];
    let length = read_up_to(&mut file, &mut start).map_err(Reason::Unreadable)?;
    if let Some(interpreter) = script::interpreter(&start[..length]) {
        return Ok(Some(interpreter));
    }
    // For a script the kernel ignores them.
    check_privileges(program, &file.metadata().map_err(Reason::Unreadable)?)?;
    if elf::is_loader(program) {
        return script::command_of_loader(command).map(Some).ok_or(Reason::LoaderAlone);
    }
    elf::check_program(file)?;
    Ok(script::command_of_env(command))
}

/// Finds a command as the shell would.
fn find(name: &OsStr) -> std::result::Result<PathBuf, Reason> {
    if name.as_bytes().contains(&b'/') {
        let metadata = fs::metadata(name).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Reason::NotFound,
            _ => Reason::Unreadable(error),
        })?;
        return runnable(Path::new(name), &metadata).map(|()| name.into());
    }
    let mut found = Reason::NotInPath;
    for directory in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        let path = directory.join(name);
        let Ok(metadata) = fs::metadata(&path) else { continue };
        match runnable(&path, &metadata) {
            Ok(()) => return Ok(path),
            Err(Reason::NotExecutable) => found = Reason::NotExecutable,
            Err(_) => {}
        }
    }
    Err(found)
}

fn runnable(path: &Path, metadata: &Metadata) -> std::result::Result<(), Reason> {
    if metadata.is_dir() {
        return Err(Reason::Directory);
    }
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).map_err(|_| Reason::NotExecutable)
}

/// Refuses a file with privileges of its own, which make the dynamic linker ignore the environment.
/// It would not do so if the caller had these privileges already, but then the effect of `run`
/// would depend on the caller.
fn check_privileges(program: &Path, metadata: &Metadata) -> std::result::Result<(), Reason> {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2000;
    if metadata.mode() & SET_USER != 0 {
        return Err(Reason::Privileged("setuid"));
    }
    if metadata.mode() & SET_GROUP != 0 {
        return Err(Reason::Privileged("setgid"));
    }
    let mut value = [0_u8; 64];
    match getxattr(program, "security.capability", &mut value[..]) {
        Ok(length) if length > 0 => Err(Reason::Privileged("file capabilities")),
        // No such attribute, or a file system without any.
        _ => Ok(()),
    }
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut bytes = Vec::with_capacity(buffer.len());
    file.take(buffer.len() as u64).read_to_end(&mut bytes)?;
    buffer[..bytes.len()].copy_from_slice(&bytes);
    Ok(bytes.len())
}
