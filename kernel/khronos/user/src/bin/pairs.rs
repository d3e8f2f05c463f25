//! Does pairs of calls on two CPUs, for the plugin that counts which lines of memory both use.
//!
//! `pairs LIST` on KhronOS or Linux; as the first program of Linux, with the list in `/etc/pairs`.

use std::ffi::CString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::{fs, hint, io, mem, ptr, thread};

use khronos_pairs::call::{Call, Path};
use khronos_pairs::case::{Callers, Case, Side};
use khronos_pairs::mark::{self, Mark};
use khronos_pairs::report::RUNS;

/// Where names are made.
const BASE: &str = "/tmp/pairs";
const BYTES: usize = 4096;
/// The address of mapped memory, and the distance of pages: so large that the entries in page
/// tables are not adjacent.
const MEMORY: usize = 0x2000_0000_0000;
const STRIDE: usize = 64 << 10;

/// Descriptors by slot. Threads share them; processes do not.
static SLOTS: [AtomicI32; 16] = [const { AtomicI32::new(-1) }; 16];

/// Calls that gave something else than the model says.
static WRONG: AtomicU32 = AtomicU32::new(0);

/// One of the two callers.
struct Agent<'a> {
    side: Side,
    callers: Callers,
    /// How many steps both have done. They take turns.
    turn: &'a AtomicU32,
    steps: u32,
    buffer: Vec<u8>,
}

/// Names of a run. Each run has its own, so that they are not always in the same chain.
struct Names(String);

impl Names {
    fn of(&self, path: Path) -> CString {
        let directory = char::from(b'a' + path.directory);
        CString::new(format!("{BASE}/{directory}/{}-{}", path.name, self.0)).expect("no zero")
    }
}

/// A call that is ready to be made: its arguments' targets exist.
struct Ready {
    call: Call,
    paths: [CString; 2],
    buffer: *mut u8,
}

fn check(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn keep(slot: u8, file: i32) {
    SLOTS[usize::from(slot)].store(file, Ordering::Relaxed); // Relaxed, as below: the turns order the accesses
}

fn file(slot: u8) -> i32 {
    SLOTS[usize::from(slot)].load(Ordering::Relaxed)
}

fn address(page: u8) -> *mut libc::c_void {
    ptr::without_provenance_mut(MEMORY + usize::from(page) * STRIDE)
}

impl Ready {
    fn new(call: Call, names: &Names, buffer: &mut [u8]) -> Self {
        let paths = match call {
            Call::OpenNew { path, .. }
            | Call::OpenCreate { path, .. }
            | Call::Open { path, .. }
            | Call::Stat { path }
            | Call::Unlink { path }
            | Call::Mkdir { path }
            | Call::Rmdir { path } => [names.of(path), CString::default()],
            Call::Link { from, to } | Call::Rename { from, to } => [names.of(from), names.of(to)],
            _ => Default::default(),
        };
        Self { call, paths, buffer: buffer.as_mut_ptr() }
    }

    fn open(&self, slot: u8, flags: i32) -> i64 {
        // SAFETY: the path is a C string, which outlives the call.
        let file = unsafe { libc::open(self.paths[0].as_ptr(), libc::O_RDWR | flags, 0o644) };
        keep(slot, file);
        file.into()
    }

    /// Makes the call; less than 0 if it fails.
    fn make(&self) -> i64 {
        let [path, to] = [&self.paths[0], &self.paths[1]].map(|path| path.as_ptr());
        let buffer = self.buffer.cast::<libc::c_void>();
        let at = |page: u8| i64::from(page) * BYTES as i64;
        // SAFETY: paths end with a zero, the buffer has `BYTES` bytes and is this agent's, and the
        // memory that is mapped is used by nothing else.
        unsafe {
            match self.call {
                Call::OpenNew { slot, .. } => self.open(slot, libc::O_CREAT | libc::O_EXCL),
                Call::OpenCreate { slot, .. } => self.open(slot, libc::O_CREAT),
                Call::Open { slot, .. } => self.open(slot, 0),
                Call::Stat { .. } => libc::stat(path, buffer.cast()).into(),
                Call::Unlink { .. } => libc::unlink(path).into(),
                Call::Mkdir { .. } => libc::mkdir(path, 0o755).into(),
                Call::Rmdir { .. } => libc::rmdir(path).into(),
                Call::Link { .. } => libc::link(path, to).into(),
                Call::Rename { .. } => libc::rename(path, to).into(),
                Call::Close { slot } => libc::close(file(slot)).into(),
                Call::Read { slot } => libc::read(file(slot), buffer, BYTES) as i64,
                Call::Write { slot } => libc::write(file(slot), buffer, BYTES) as i64,
                Call::Pread { slot, page } => {
                    libc::pread(file(slot), buffer, BYTES, at(page)) as i64
                }
                Call::Pwrite { slot, page } => {
                    libc::pwrite(file(slot), buffer, BYTES, at(page)) as i64
                }
                Call::Lseek { slot, page } => libc::lseek(file(slot), at(page), libc::SEEK_SET),
                Call::Fstat { slot } => libc::fstat(file(slot), buffer.cast()).into(),
                Call::Dup { slot, to } => {
                    let copy = libc::dup(file(slot));
                    keep(to, copy);
                    copy.into()
                }
                Call::Pipe { reader, writer } => {
                    let mut both = [-1; 2];
                    let result = libc::pipe(both.as_mut_ptr());
                    keep(reader, both[0]);
                    keep(writer, both[1]);
                    result.into()
                }
                Call::Mmap { page } => {
                    let how = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                    let may = libc::PROT_READ | libc::PROT_WRITE;
                    libc::mmap(address(page), BYTES, may, how, -1, 0).addr() as i64
                }
                Call::Munmap { page } => libc::munmap(address(page), BYTES).into(),
                Call::Mprotect { page } => {
                    libc::mprotect(address(page), BYTES, libc::PROT_READ).into()
                }
                Call::MemRead { page } => address(page).cast::<u8>().read_volatile().into(),
                Call::MemWrite { page } => {
                    address(page).cast::<u8>().write_volatile(1);
                    0
                }
            }
        }
    }
}

impl Agent<'_> {
    /// Runs `f` if this agent is the next, and waits until it is done.
    fn turn(&mut self, side: Side, f: impl FnOnce(&mut Self)) {
        if side == self.side {
            f(self);
            // Release: partner of the Acquire below.
            self.turn.store(self.steps + 1, Ordering::Release);
        }
        self.steps += 1;
        // Acquire: partner of the Release above.
        while self.turn.load(Ordering::Acquire) < self.steps {
            hint::spin_loop();
        }
    }

    fn set_up(&mut self, call: Call, names: &Names) {
        if let Err(error) = check(Ready::new(call, names, &mut self.buffer).make()) {
            panic!("{call}, which is to come before: {error}");
        }
    }

    fn measure(&mut self, case: &Case, names: &Names, begin: Mark) {
        let call = Ready::new(case.calls[self.side], names, &mut self.buffer);
        mark::make(begin);
        let result = call.make();
        mark::make(Mark::End);
        let result = check(result);
        if result.is_ok() != case.succeeds[self.side] {
            WRONG.fetch_add(1, Ordering::Relaxed); // Relaxed: a number
            println!("pairs: wrong: {} gives {result:?} in {case}", call.call);
        }
    }

    fn clean_up(&mut self, case: &Case, names: &Names) {
        if self.callers == Callers::Processes || self.side == 0 {
            for slot in &SLOTS {
                let file = slot.swap(-1, Ordering::Relaxed);
                if file >= 0 {
                    // SAFETY: no code uses the number after that. It may be closed already.
                    unsafe { libc::close(file) };
                }
            }
            for page in 0..2 {
                // SAFETY: the memory is used by cases only.
                unsafe { libc::munmap(address(page), BYTES) };
            }
        }
        for path in case.paths(self.side) {
            let path = names.of(path);
            // SAFETY: the path ends with a zero. It may be neither.
            unsafe {
                if libc::unlink(path.as_ptr()) != 0 {
                    libc::rmdir(path.as_ptr());
                }
            }
        }
    }

    /// Both orders, several times.
    fn run(&mut self, case: &Case) {
        for run in 0..RUNS {
            let names = Names(format!("{}-{run}", case.number));
            for &(side, call) in &case.setup {
                self.turn(side, |agent| agent.set_up(call, &names));
            }
            let first = run as usize % 2;
            self.turn(first, |agent| agent.measure(case, &names, Mark::First));
            self.turn(1 - first, |agent| agent.measure(case, &names, Mark::Second));
            self.turn(0, |_| {
                mark::number(case.number * 16 + run);
                mark::make(Mark::Report);
            });
            self.turn(0, |agent| agent.clean_up(case, &names));
            self.turn(1, |agent| agent.clean_up(case, &names));
        }
    }
}

/// One side's part, on the CPU with its number.
fn take_part(side: Side, callers: Callers, turn: &AtomicU32, cases: &[Case]) {
    // SAFETY: the set is large enough, and made of zeros.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(side, &mut set);
        assert_eq!(libc::sched_setaffinity(0, mem::size_of_val(&set), &set), 0, "CPU {side}");
    }
    let buffer = vec![b'A' + side as u8; BYTES];
    let mut agent = Agent { side, callers, turn, steps: 0, buffer };
    cases.iter().filter(|case| case.place == callers).for_each(|case| agent.run(case));
}

/// A count that processes share.
fn shared_count() -> &'static AtomicU32 {
    let how = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: memory of its own, of zeros, that is never given back.
    unsafe {
        let page =
            libc::mmap(ptr::null_mut(), BYTES, libc::PROT_READ | libc::PROT_WRITE, how, -1, 0);
        assert_ne!(page, libc::MAP_FAILED, "memory for a count");
        &*page.cast()
    }
}

fn by_processes(cases: &[Case]) {
    let turn = shared_count();
    // SAFETY: the program has one thread, so that the child may do everything.
    match unsafe { libc::fork() } {
        0 => {
            take_part(1, Callers::Processes, turn, cases);
            std::process::exit(i32::from(WRONG.load(Ordering::Relaxed) > 0)); // Relaxed: its own
        }
        child if child > 0 => {
            take_part(0, Callers::Processes, turn, cases);
            let mut status = 0;
            // SAFETY: the child is this program's, and the kernel writes one number, into `status`.
            let ended = unsafe { libc::waitpid(child, &mut status, 0) };
            // Relaxed: a number
            WRONG.fetch_add(u32::from(ended != child || status != 0), Ordering::Relaxed);
        }
        _ => panic!("no second process: {}", io::Error::last_os_error()),
    }
}

fn by_threads(cases: &[Case]) {
    let turn = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| take_part(1, Callers::Threads, &turn, cases));
        take_part(0, Callers::Threads, &turn, cases);
    });
}

fn main() -> ExitCode {
    let is_first = std::process::id() == 1;
    // The first program gets the words of its boot line that Linux does not know.
    let list =
        std::env::args().nth(1).filter(|_| !is_first).unwrap_or_else(|| "/etc/pairs".to_owned());
    if is_first {
        fs::create_dir_all("/tmp").expect("/tmp");
        // SAFETY: all four are texts that end with a zero, or nothing.
        let result = unsafe {
            libc::mount(c"tmpfs".as_ptr(), c"/tmp".as_ptr(), c"tmpfs".as_ptr(), 0, ptr::null())
        };
        assert_eq!(result, 0, "tmpfs: {}", io::Error::last_os_error());
    }
    let text = fs::read_to_string(&list).unwrap_or_else(|error| panic!("{list}: {error}"));
    let cases: Vec<Case> = text.lines().map(|line| line.parse().expect("a case")).collect();
    for name in ["a", "b"] {
        fs::create_dir_all(format!("{BASE}/{name}")).expect("a directory for names");
    }
    by_processes(&cases);
    by_threads(&cases);
    // Relaxed: both counting threads have ended
    let is_right = WRONG.load(Ordering::Relaxed) == 0;
    println!(
        "pairs: {} cases done, {}",
        cases.len(),
        if is_right { "as expected" } else { "not all as expected" }
    );
    if is_first {
        // SAFETY: the machine's memory is of no use any more: the results are printed.
        unsafe { libc::reboot(libc::RB_POWER_OFF) };
    }
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
