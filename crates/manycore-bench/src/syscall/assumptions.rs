//! The model's assumptions, number by number: none of these is measured, and all are in the output.

use serde::{Deserialize, Serialize};

/// A server on a machine whose card interrupts CPUs of its first package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assumptions {
    /// CPUs of the first package that serve the card, and do nothing else.
    pub interrupt_cpus: u32,
    /// What a worker computes for a page.
    pub page_ns: f64,
    /// The time from an answer to the client's next request: the round trip.
    pub round_trip_ns: f64,
    /// The client's own time between an answer and its next request, beyond the round trip.
    pub think_ns: f64,
    /// How long a side of the channel polls before it sleeps.
    pub spin_ns: f64,
    /// What the kernel computes, apart from the lines below.
    pub times: Times,
    /// Lines of a connection.
    pub lines: Counts,
}

/// The kernel's computation, in nanoseconds, without the time for the lines of connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The interrupt's part of a new connection, with the listening socket locked.
    pub handshake: f64,
    /// The interrupt's part of its first packet.
    pub deliver: f64,
    /// The interrupt's part of the acknowledgement of an answer.
    pub acknowledge: f64,
    /// `accept4`, when there is a connection.
    pub accept: f64,
    /// Each of two `fcntl`.
    pub fcntl: f64,
    /// Each of three `read`.
    pub read: f64,
    /// `writev` with the answer, down to the card.
    pub write: f64,
    /// `shutdown`.
    pub shutdown: f64,
    /// `poll`.
    pub poll: f64,
    /// `close`.
    pub close: f64,
    /// The part of `accept4` with the lock of the listening socket, and the part with the lock of
    /// all sockets; the part of `close` with the latter.
    pub locked: f64,
}

/// How many cache lines there are of each kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Lines of a socket that interrupts and calls write.
    pub socket: usize,
    /// Lines of its file, which only calls touch.
    pub file: usize,
    /// Lines of the packet with the request.
    pub request: usize,
    /// Lines of the packets with the answer.
    pub answer: usize,
}

/// The value in `manycore-syscalls`, `tuning::spin_limit`: 800 pauses, of 10 cycles each at 2.8
/// GHz.
const SPIN_NS: f64 = 2_860.0;

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            // Two until a ratio of 0.61 had been seen with them; `docs/src/commands/sim.md` has
            // both.
            interrupt_cpus: 1,
            page_ns: 100_000.0,
            round_trip_ns: 50_000.0,
            think_ns: 0.0,
            spin_ns: SPIN_NS,
            times: Times {
                // Out of 8 us in all: this split is a guess, and came with the change above.
                handshake: 5_000.0,
                deliver: 3_000.0,
                acknowledge: 3_000.0,
                accept: 3_000.0,
                fcntl: 100.0,
                read: 600.0,
                write: 5_000.0,
                shutdown: 2_000.0,
                poll: 400.0,
                close: 2_000.0,
                locked: 150.0,
            },
            lines: Counts { socket: 16, file: 6, request: 6, answer: 16 },
        }
    }
}

impl Assumptions {
    /// Each number with its value, its unit and its meaning; the names are those of the parameters
    /// in a record.
    pub fn listed(&self) -> Vec<(&'static str, f64, &'static str, &'static str)> {
        let Self { times, lines, .. } = self;
        let count = |number: usize| number as f64;
        vec![
            (
                "interrupt_cpus",
                f64::from(self.interrupt_cpus),
                "",
                "CPUs of the first package for interrupts only",
            ),
            ("page_ns", self.page_ns, "ns", "computation for a page"),
            ("round_trip_ns", self.round_trip_ns, "ns", "to a client and back"),
            ("think_ns", self.think_ns, "ns", "a client waits before it asks again"),
            ("spin_ns", self.spin_ns, "ns", "a side of the channel looks before it sleeps"),
            (
                "handshake_ns",
                times.handshake,
                "ns",
                "interrupt: a connection, in the lock of the listening socket",
            ),
            ("deliver_ns", times.deliver, "ns", "interrupt: its first packet"),
            ("acknowledge_ns", times.acknowledge, "ns", "interrupt: an acknowledgement"),
            ("accept_ns", times.accept, "ns", "accept4"),
            ("fcntl_ns", times.fcntl, "ns", "each of two fcntl"),
            ("read_ns", times.read, "ns", "each of three read"),
            ("write_ns", times.write, "ns", "writev"),
            ("shutdown_ns", times.shutdown, "ns", "shutdown"),
            ("poll_ns", times.poll, "ns", "poll"),
            ("close_ns", times.close, "ns", "close"),
            (
                "locked_ns",
                times.locked,
                "ns",
                "accept4 in the same lock and in that of all sockets, close in the latter",
            ),
            ("socket_lines", count(lines.socket), "", "lines of a socket"),
            ("file_lines", count(lines.file), "", "lines of its file"),
            ("request_lines", count(lines.request), "", "lines of a request's packet"),
            ("answer_lines", count(lines.answer), "", "lines of an answer's packets"),
        ]
    }
}
