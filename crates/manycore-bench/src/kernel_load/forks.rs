//! Processes that each do one job after the other, and are counted.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::jobs::{ALLOW_MORE, Deck, Kind, Mix, PROGRAM, Site, explained, wait};
use super::{Answer, Counter, Order, count};
use crate::failure::Failure;

/// Runs the load. The calling process has a single thread. Its processes end with it, however it
/// ends.
pub fn run(order: &Order, mix: Mix, directory: &Path) -> Result<Answer, Failure> {
    let program = PROGRAM.to_string_lossy();
    if mix.has(Kind::Exec) && !Path::new(&*program).is_file() {
        return Err(Failure::Usage(format!(
            "there is no {program} to start: let --mix have no exec"
        )));
    }
    let failed = |error: io::Error| Failure::Failed(format!("the load on the kernel: {error}"));
    let scene = Scene {
        order,
        mix,
        directory,
        board: Board::new(order.parallel).map_err(failed)?,
        shared: Site::shared(directory).map_err(failed)?,
    };
    scene.play().map_err(failed)
}

/// What all processes of a load have.
struct Scene<'a> {
    order: &'a Order,
    mix: Mix,
    directory: &'a Path,
    board: Board,
    shared: File,
}

impl Scene<'_> {
    fn play(&self) -> io::Result<Answer> {
        // All processes begin at the same moment, when the pipe's other end is closed.
        let (gate, opener) = io::pipe()?;
        let mut pool = SimulatorPool { processes: Vec::new() };
        // Waits during their creation are observed, too.
        let begin = Instant::now();
        for number in 0..self.order.parallel {
            // SAFETY: the process has a single thread, so the child finds no lock that another
            // thread holds.
            match unsafe { libc::fork() } {
                -1 => {
                    let error = io::Error::last_os_error();
                    let what = format!("make process {} of {}", number + 1, self.order.parallel);
                    return Err(explained(&error, &what, ALLOW_MORE));
                }
                0 => {
                    drop(opener);
                    self.be_a_process(number, gate);
                }
                process => pool.processes.push(process),
            }
        }
        drop((gate, opener));
        let (operations, elapsed_ns) =
            count(self.order, self.board.counters(), self.board.enough());
        pool.end()?;
        Ok(Answer { operations, elapsed_ns, whole_ns: begin.elapsed().as_nanos() as f64 })
    }

    /// The life of one of the processes, which uses none of its parent's memory.
    fn be_a_process(&self, number: u32, gate: PipeReader) -> ! {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.work(number, gate)));
        let status = match outcome {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => {
                eprintln!("process {number}: {error}");
                1
            }
            // The message is out.
            Err(_) => 2,
        };
        // SAFETY: ends this process, and runs nothing more of it.
        unsafe { libc::_exit(status) }
    }

    fn work(&self, number: u32, mut gate: PipeReader) -> io::Result<()> {
        end_with(self.board.parent)?;
        let mut deck = Deck::new(self.mix, self.order.seed, number);
        let mut site = Site::new(self.directory, number, &self.shared);
        let counter = &self.board.counters()[number as usize];
        gate.read_to_end(&mut Vec::new())?;
        // Relaxed: an order that is seen a little later does no harm.
        while self.board.enough().load(Ordering::Relaxed) == 0 {
            let kind = deck.draw();
            site.job(kind)
                .map_err(|error| io::Error::new(error.kind(), format!("{kind:?}: {error}")))?;
            counter.count();
        }
        Ok(())
    }
}

/// Makes the kernel kill this process when its parent has ended.
fn end_with(parent: libc::pid_t) -> io::Result<()> {
    // SAFETY: the call takes numbers only, and changes nothing in memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call takes no arguments, and changes nothing in memory.
    match unsafe { libc::getppid() } == parent {
        true => Ok(()),
        false => Err(io::Error::other("the parent is gone already")),
    }
}

/// Running processes. Those that have not ended when it is dropped are killed.
struct SimulatorPool {
    processes: Vec<libc::pid_t>,
}

impl SimulatorPool {
    /// Waits until all have ended by themselves, as they do at the end of the measurement.
    fn end(mut self) -> io::Result<()> {
        let mut failed = 0;
        while let Some(process) = self.processes.pop() {
            failed += u32::from(wait(process)? != 0);
        }
        match failed {
            0 => Ok(()),
            failed => Err(io::Error::other(format!("{failed} of its processes failed"))),
        }
    }
}

impl Drop for SimulatorPool {
    fn drop(&mut self) {
        for process in &self.processes {
            // SAFETY: a child that was not reaped, so the number is still its own. It fails only if
            // the child has ended already.
            unsafe { libc::kill(*process, libc::SIGKILL) };
            // It is dead or dying, and there is no one left to report to.
            let _ = wait(*process);
        }
    }
}

/// Memory that the parent and its processes share.
struct Board {
    /// The first cell is set when the measurement is over. One cell for each process follows.
    cells: NonNull<Counter>,
    count: usize,
    parent: libc::pid_t,
}

impl Board {
    fn new(processes: u32) -> io::Result<Self> {
        let count = processes as usize + 1;
        let (rights, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, placed by the kernel, overlaps no other.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), count * size_of::<Counter>(), rights, flags, -1, 0)
        };
        // SAFETY: the call takes no arguments, and changes nothing in memory.
        let parent = unsafe { libc::getpid() };
        match NonNull::new(at.cast()) {
            Some(cells) if at != libc::MAP_FAILED => Ok(Self { cells, count, parent }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn cells(&self) -> &[Counter] {
        // SAFETY: `new` has mapped `count` counters, which stay mapped until `self` is dropped;
        // zero is a value of an atomic, and all access is atomic.
        unsafe { std::slice::from_raw_parts(self.cells.as_ptr(), self.count) }
    }

    fn enough(&self) -> &AtomicU64 {
        &self.cells()[0].0
    }

    fn counters(&self) -> &[Counter] {
        &self.cells()[1..]
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, to which no reference is left. Fails for bad arguments
        // only.
        unsafe { libc::munmap(self.cells.as_ptr().cast(), self.count * size_of::<Counter>()) };
    }
}
