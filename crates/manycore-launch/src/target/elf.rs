//! ELF headers: for which machine a file is, and which dynamic linker loads it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::regular;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef};

use super::refusal::Reason;

type Header = FileHeader64<Endianness>;

/// The machine for which this command was built, and whose programs it runs.
#[cfg(target_arch = "x86_64")]
const MACHINE: elf::Machine = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: elf::Machine = elf::EM_AARCH64;

/// Checks that glibc's dynamic linker for this architecture loads the program.
pub fn check_program(file: File) -> Result<(), Reason> {
    let cache = ReadCache::new(file);
    let header = header(&cache)?;
    let loader = interpreter(header, &cache)?.ok_or(Reason::Static)?;
    let name = Path::new(&loader).file_name().unwrap_or_default().to_string_lossy().into_owned();
    if name.starts_with("ld-musl") {
        return Err(Reason::Musl);
    }
    if !name.starts_with("ld-linux") {
        return Err(Reason::OtherLoader(loader));
    }
    if !Path::new(&loader).exists() {
        return Err(Reason::MissingLoader(loader));
    }
    Ok(())
}

/// The libraries that the file needs, in its order; empty if it cannot be read.
pub fn needed(file: File) -> Vec<OsString> {
    let cache = ReadCache::new(file);
    let names = || -> object::Result<Vec<OsString>> {
        let header = Header::parse(&cache)?;
        let endian = header.endian()?;
        let table = header.sections(endian, &cache)?.dynamic_table(endian, &cache)?;
        let needed = table.iter().filter(|entry| entry.tag == elf::DT_NEEDED);
        needed.map(|entry| Ok(OsStr::from_bytes(table.string(entry)?).to_owned())).collect()
    };
    names().unwrap_or_default()
}

/// Whether a program is glibc's dynamic linker, which runs the program in its arguments.
pub fn is_loader(program: &Path) -> bool {
    // The links to it have its name, or another.
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    [program, &real].iter().filter_map(|path| path.file_name()).any(|name| {
        let name = name.to_string_lossy();
        name.starts_with("ld-linux-") && name.contains(".so")
    })
}

/// Checks that the file is a shared library for this architecture; otherwise describes the file.
pub fn check_library(path: &Path) -> Result<(), String> {
    let file = regular::open(path).map_err(|error| error.to_string())?;
    let cache = ReadCache::new(file);
    let header = header(&cache)
        .map_err(|_| format!("it is not an {} shared library", machine_name(MACHINE)))?;
    match header.e_type(header.endian().unwrap_or_default()) {
        elf::ET_DYN => Ok(()),
        _ => Err("it is not a shared library".into()),
    }
}

fn header<'a, R: ReadRef<'a>>(data: R) -> Result<&'a Header, Reason> {
    match FileKind::parse(data) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => return Err(Reason::Bits32),
        _ => return Err(Reason::NotAProgram),
    }
    let header = Header::parse(data).map_err(|_| Reason::NotAProgram)?;
    let endian = header.endian().map_err(|_| Reason::NotAProgram)?;
    match header.e_machine(endian) {
        MACHINE => Ok(header),
        machine => Err(Reason::Foreign(machine_name(machine))),
    }
}

fn interpreter<'a, R: ReadRef<'a>>(header: &Header, data: R) -> Result<Option<String>, Reason> {
    let endian = header.endian().map_err(|_| Reason::NotAProgram)?;
    for segment in header.program_headers(endian, data).map_err(|_| Reason::NotAProgram)? {
        if let Some(path) = segment.interpreter(endian, data).map_err(|_| Reason::NotAProgram)? {
            return Ok(Some(String::from_utf8_lossy(path).into_owned()));
        }
    }
    Ok(None)
}

fn machine_name(machine: elf::Machine) -> String {
    match machine {
        elf::EM_X86_64 => "x86-64".into(),
        elf::EM_AARCH64 => "64-bit Arm".into(),
        elf::EM_RISCV => "RISC-V".into(),
        elf::EM_PPC64 => "64-bit PowerPC".into(),
        elf::EM_S390 => "s390x".into(),
        elf::EM_LOONGARCH => "LoongArch".into(),
        other => format!("another machine ({other:?})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_in_the_program() {
        // The headers are what is read of it.
        let program = std::fs::read("/bin/true").expect("a program");
        let headers = &program[..program.len().min(4096)];
        let path = tempfile::NamedTempFile::new().expect("a file");
        manycore_fuzz::bytes("a program", &[headers], |input| {
            std::fs::write(&path, input).expect("room for a page");
            _ = check_program(File::open(&path).expect("just written"));
            _ = check_library(path.path());
        });
    }
}
