//! The state of each line, and the table of all lines.

use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::arena;
use crate::machine::Cycles;

/// A line. All zero means that no core has touched it.
///
/// Requests are served in the order in which they reserve a time. So the directory's part can have
/// the line's state after all requests so far, although they are served later: the next request
/// finds that state at its own time. The other part has the cores' present copies, and changes when
/// a service starts.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Line {
    /// Directory: the time until which the requests so far occupy its home.
    pub(super) busy: Cycles,
    /// Directory: until when it is taken by requests that a write waits for.
    pub(super) held: Cycles,
    /// Directory: the sockets that will have clean copies.
    pub(super) sharers: u64,
    /// Directory: the core that will own the line.
    pub(super) owner: CoreId,
    /// Directory: whether the owner has changed the line, or will have.
    pub(super) changed: bool,
    /// Directory: whether no core will have a copy, as the home has executed an operation on it.
    /// Counts if there are sharers.
    pub(super) at_home: bool,
    /// Now: the core that may write without a request.
    pub(super) holder: CoreId,
    /// Now: how often the line has moved to a writer, or was taken over. Copies of other versions
    /// are stale.
    pub(super) version: u32,
    /// Now: how often the line was written.
    pub(crate) writes: u32,
    /// The threads that wait until it is written: a link of [`Watchers`](crate::engine).
    pub(crate) watchers: u32,
    /// The simulation to which this belongs; data of an earlier one do not count.
    epoch: u32,
    /// Whether memory has an older value.
    pub(super) dirty: bool,
    /// The home of the line's page, plus 1; only in the page's first line.
    page_home: u8,
}

/// The number of a core, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct CoreId(u16);

impl CoreId {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn new(core: u32) -> Self {
        Self(core as u16 + 1)
    }

    pub(crate) fn get(self) -> Option<u32> {
        self.0.checked_sub(1).map(u32::from)
    }
}

/// All lines of the arena. There is one table, for the thread that has the arena.
#[derive(Debug)]
pub(crate) struct Lines {
    table: NonNull<Line>,
    epoch: u32,
}

struct Table(NonNull<Line>);

// SAFETY: the table is reached only through `Lines`, of which there is one at a time: for the
// simulation with the arena's lease, in any thread.
unsafe impl Send for Table {}
// SAFETY: a shared `Table` gives its pointer only, and one `Lines` at a time follows that.
unsafe impl Sync for Table {}

impl Lines {
    /// Creates the table, without valid lines. The caller has the arena, and has never used this
    /// epoch.
    pub(crate) fn new(epoch: u32) -> Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        let table = TABLE.get_or_init(|| {
            let mapped = arena::map(0, arena::LINES * size_of::<Line>());
            Table(mapped.expect("address space for the simulated lines").cast())
        });
        Self { table: table.0, epoch }
    }

    /// A line.
    #[inline]
    pub(crate) fn get(&mut self, line: u32) -> &mut Line {
        debug_assert!((line as usize) < arena::LINES);
        // SAFETY: within the table, which is completely initialised by zeroes, and only used
        // through this exclusive borrow.
        let line = unsafe { self.table.add(line as usize).as_mut() };
        if line.epoch != self.epoch {
            line.reset(self.epoch);
        }
        line
    }

    /// The home of a line's page, plus 1.
    pub(super) fn page_home(&mut self, line: u32) -> &mut u8 {
        const LINES_A_PAGE: u32 = (arena::PAGE / arena::LINE) as u32;
        &mut self.get(line - line % LINES_A_PAGE).page_home
    }
}

impl Line {
    #[cold]
    fn reset(&mut self, epoch: u32) {
        *self = Self {
            busy: 0,
            held: 0,
            sharers: 0,
            owner: CoreId::NONE,
            changed: false,
            at_home: false,
            holder: CoreId::NONE,
            version: 0,
            writes: 0,
            watchers: 0,
            epoch,
            dirty: false,
            page_home: 0,
        };
    }
}
