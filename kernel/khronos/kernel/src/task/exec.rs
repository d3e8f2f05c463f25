//! Begins a program: `execve`.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use super::elf::{self, Program};
use super::{exit, signal, thread, user};
use crate::arch::frame::Frame;
use crate::call::errno::{Errno, Result};
use crate::mm::area::{PAGE, Protection, Source};
use crate::mm::space::Space;
use crate::mm::user as memory;
use crate::vfs::file::File;
use crate::vfs::tree::Held;
use crate::vfs::{dev, path};
use crate::watch::counters::{Event, count};

/// A program in an address space of its own, ready to run.
pub struct Image {
    /// The space.
    pub space: Arc<Space>,
    /// Its first moment.
    pub frame: Frame,
    /// Its path, and its arguments, each followed by a zero.
    pub names: (Vec<u8>, Vec<u8>),
}

/// Where movable programs are.
const BASE: u64 = 0x5555_5555_4000;
/// The end of a stack, and its largest size.
const STACK_TOP: u64 = memory::END - 0x1000;
const STACK_BYTES: u64 = 8 << 20;
/// Bytes of arguments and environment at most.
const ARGUMENTS_BYTES: usize = 1 << 20;
/// Scripts that interpret scripts.
const DEPTH: usize = 4;

/// Makes the image of the program at a path.
pub fn load(
    directory: Option<&Held>,
    name: &[u8],
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
) -> Result<Image> {
    let mut name = name.to_vec();
    let mut arguments = arguments.to_vec();
    for _ in 0..DEPTH {
        let file = path::open(directory, &name, 0, 0)?;
        check_executable(&file)?;
        let mut start = vec![0; elf::HEADER_BYTES];
        let bytes = file.read(Some(0), &mut start)?;
        start.truncate(bytes);
        let Some(line) = start.strip_prefix(b"#!") else {
            return make(&file, &start, name, &arguments, environment);
        };
        let mut new = interpreter(line).ok_or(Errno::NOT_EXECUTABLE)?;
        new.push(name);
        new.extend(arguments.into_iter().skip(1));
        name = new[0].clone();
        arguments = new;
    }
    Err(Errno::LOOP)
}

fn check_executable(file: &File) -> Result<()> {
    let stat = file.object.stat();
    if stat.kind != khronos_fs::Kind::File || stat.mode & 0o111 == 0 {
        return Err(Errno::ACCESS);
    }
    Ok(())
}

/// The words of a script's first line: the interpreter, and at most one argument.
fn interpreter(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let end = line.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(line.len());
    let (first, rest) = (&line[..end], line[end..].trim_ascii());
    let words = [first, rest];
    let words: Vec<_> = words.iter().filter(|word| !word.is_empty()).map(|w| w.to_vec()).collect();
    (!words.is_empty()).then_some(words)
}

fn make(
    file: &Arc<File>,
    start: &[u8],
    name: Vec<u8>,
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
) -> Result<Image> {
    let program = elf::parse(start)?;
    let space = Arc::new(Space::new()?);
    let base = if program.is_movable { BASE } else { 0 };
    map(&space, file, &program, base)?;
    let (_, end) = program.extent();
    space.set_heap((base + end).next_multiple_of(PAGE) + PAGE);
    let mut entry = base + program.entry;
    let mut interpreter_base = 0;
    if let Some((at, bytes)) = program.interpreter {
        (interpreter_base, entry) = map_interpreter(&space, file, at, bytes)?;
    }
    let protection = Protection(Protection::READ | Protection::WRITE);
    space.map(STACK_TOP - STACK_BYTES, STACK_BYTES, true, protection, Source::Zeros)?;
    let vector = Vector { program: &program, base, interpreter_base };
    let stack = fill_stack(&space, &vector, &name, arguments, environment)?;
    let mut line = arguments.join(&0u8);
    line.push(0);
    Ok(Image { space, frame: Frame::user(entry, stack), names: (name, line) })
}

/// Maps the interpreter whose path is in the file; returns its address, and its entry point.
fn map_interpreter(space: &Space, file: &File, at: u64, bytes: u64) -> Result<(u64, u64)> {
    let mut name = vec![0; bytes as usize];
    let read = file.read(Some(at), &mut name)?;
    name.truncate(read);
    let name = name.split(|&byte| byte == 0).next().ok_or(Errno::NOT_EXECUTABLE)?;
    let file = path::open(None, name, 0, 0)?;
    let mut start = vec![0; elf::HEADER_BYTES];
    let read = file.read(Some(0), &mut start)?;
    start.truncate(read);
    let program = elf::parse(&start)?;
    if !program.is_movable {
        return Err(Errno::NOT_EXECUTABLE);
    }
    let (first, end) = program.extent();
    // A place that is large enough for all of it.
    let place = space.map(0, end - first, false, Protection(0), Source::Zeros)?;
    map(space, &file, &program, place - first)?;
    Ok((place - first, place - first + program.entry))
}

fn map(space: &Space, file: &Arc<File>, program: &Program, base: u64) -> Result<()> {
    for segment in &program.segments {
        let skew = segment.address % PAGE;
        let start = base + segment.address - skew;
        let bytes = segment.memory_bytes + skew;
        if bytes == 0 {
            continue;
        }
        let has = |flag, what| if segment.flags & flag != 0 { what } else { 0 };
        let protection = Protection(
            has(4, Protection::READ) | has(2, Protection::WRITE) | has(1, Protection::EXECUTE),
        );
        let source =
            file.object.clone().source(segment.offset - skew, segment.file_bytes + skew)?;
        space.map(start, bytes, true, protection, source)?;
    }
    Ok(())
}

/// What programs are told of themselves.
struct Vector<'a> {
    program: &'a Program,
    base: u64,
    interpreter_base: u64,
}

impl Vector<'_> {
    /// The entries of the auxiliary vector: pairs of a key and a value.
    fn pairs(&self, name: u64, random: u64, platform: u64) -> [[u64; 2]; 16] {
        let Program { headers: (headers, count), entry, .. } = *self.program;
        [
            [3, self.base + headers],   // AT_PHDR
            [4, 56],                    // AT_PHENT
            [5, count],                 // AT_PHNUM
            [6, PAGE],                  // AT_PAGESZ
            [7, self.interpreter_base], // AT_BASE
            [8, 0],                     // AT_FLAGS
            [9, self.base + entry],     // AT_ENTRY
            [11, 0],                    // AT_UID
            [12, 0],                    // AT_EUID
            [13, 0],                    // AT_GID
            [14, 0],                    // AT_EGID
            [15, platform],             // AT_PLATFORM
            [17, 100],                  // AT_CLKTCK
            [25, random],               // AT_RANDOM
            [31, name],                 // AT_EXECFN
            [0, 0],
        ]
    }
}

/// Writes arguments, environment and the vector to the stack; returns where the stack begins.
fn fill_stack(
    space: &Space,
    vector: &Vector,
    name: &[u8],
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
) -> Result<u64> {
    let bytes: usize = arguments.iter().chain(environment).map(|text| text.len() + 1).sum();
    if bytes + name.len() > ARGUMENTS_BYTES {
        return Err(Errno::TOO_BIG);
    }
    let mut at = STACK_TOP;
    let mut push = |bytes: &[u8]| -> Result<u64> {
        at -= bytes.len() as u64;
        space.write(at, bytes)?;
        Ok(at)
    };
    let mut push_text = |text: &[u8]| -> Result<u64> {
        push(&[0])?;
        push(text)
    };
    let name = push_text(name)?;
    let platform = push_text(b"x86_64")?;
    let environment: Vec<u64> =
        environment.iter().map(|text| push_text(text)).collect::<Result<_>>()?;
    let arguments: Vec<u64> =
        arguments.iter().map(|text| push_text(text)).collect::<Result<_>>()?;
    let mut random = [0; 16];
    dev::fill_random(&mut random);
    let random = push(&random)?;

    let mut words = vec![arguments.len() as u64];
    words.extend(&arguments);
    words.push(0);
    words.extend(&environment);
    words.push(0);
    words.extend(vector.pairs(name, random, platform).as_flattened());
    let start = (at - 8 * words.len() as u64) & !15;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    space.write(start, &bytes)?;
    Ok(start)
}

/// Replaces the running process' program: its other threads end, and its thread leaves the kernel
/// by the new frame.
pub fn exec(
    frame: &mut Frame,
    directory: Option<&Held>,
    name: &[u8],
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
) -> Result<u64> {
    let image = load(directory, name, arguments, environment)?;
    let user = user::current().ok_or(Errno::INVALID)?;
    let process = &user.process;
    // Acquire: partner of the AcqRel with which threads end.
    if process.live_threads.load(Ordering::Acquire) > 1 {
        end_other_threads(user);
    }
    count(Event::Execs);
    user.change_space(None);
    let before = process.set_space(Some(image.space.clone()));
    user.change_space(Some(&image.space));
    drop(before);
    process.give_space_back();
    process.files.close_some(false);
    process.actions.lock().reset();
    *process.program.lock() = image.names;
    // Relaxed: the thread's own.
    user.clear_when_over.store(0, Ordering::Relaxed);
    user.signal_stack.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    user.set_fs_base(0);
    *frame = image.frame;
    Ok(0)
}

/// Ends the process' other threads, and waits until they have.
fn end_other_threads(user: &user::User) {
    let threads = user.process.relations.lock().threads.clone();
    let this = thread::current().number;
    for other in threads.iter().filter(|other| other.number != this) {
        signal::send_to_thread(other, signal::SIGKILL);
    }
    drop(threads);
    while user.process.live_threads.load(Ordering::Acquire) > 1 {
        // Acquire: partner of the AcqRel with which threads end
        let tick = crate::arch::tsc::now() + 10_000_000;
        if crate::sync::wait::sleep_until(tick).is_err() && signal::is_due() {
            // Another thread ends the process meanwhile.
            let ending = *user.process.ending.lock();
            if let Some(status) = ending {
                exit::end_process(status);
            }
        }
    }
}
