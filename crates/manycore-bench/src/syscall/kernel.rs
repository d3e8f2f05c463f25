//! The kernel's data about connections, and the operations of calls and interrupts on it.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use manycore_sim::thread::{self, Phase};
use manycore_simulated::lock::{PlainLock, Ttas};
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU32, Ordering};
use manycore_simulated::sync::cell::UnsafeCell;
use manycore_simulated::sync::{futex, hint};

use super::assumptions::Assumptions;

/// The calls in a request of Apache's prefork, according to strace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Accept,
    Fcntl,
    Read,
    ReadNothing,
    Write,
    Shutdown,
    Poll,
    Close,
}

impl Call {
    /// In the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Accept,
        Self::Fcntl,
        Self::Read,
        Self::ReadNothing,
        Self::Write,
        Self::Shutdown,
        Self::Poll,
        Self::Close,
    ];
}

/// What `accept` gives when the server ends.
pub(super) const ENDED: u32 = u32::MAX;

/// The longest time for which an interrupt CPU does not poll its card, in cycles.
const POLL: u64 = 2_000;

/// Cache lines that are read and written as a whole.
struct Lines(Vec<CachePadded<UnsafeCell<u64>>>);

impl Lines {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| CachePadded(UnsafeCell::default())).collect())
    }

    /// Reads the first this many.
    fn read(&self, count: usize) -> u64 {
        // SAFETY: all simulated threads are one thread of the host, and none stops within this
        // access.
        let line = |line: &CachePadded<UnsafeCell<u64>>| line.with(|value| unsafe { *value });
        self.0.iter().take(count).map(line).max().unwrap_or_default()
    }

    /// Writes the first this many.
    fn write(&self, count: usize, value: u64) {
        for line in self.0.iter().take(count) {
            // SAFETY: all simulated threads are one thread of the host, and none stops within this
            // access.
            line.with_mut(|line| unsafe { *line = value });
        }
    }
}

/// A spin lock of the kernel's, with a line that it guards.
struct Locked {
    lock: CachePadded<Ttas>,
    data: Lines,
}

impl Locked {
    fn new() -> Self {
        Self { lock: CachePadded(Ttas::new()), data: Lines::new(1) }
    }

    fn section<R>(&self, cycles: u64, inside: impl FnOnce() -> R) -> R {
        thread::in_phase(Phase::Lock, || self.lock.acquire());
        self.data.write(1, 0);
        thread::compute(cycles);
        let result = inside();
        // SAFETY: this thread has acquired the lock at the begin of this function.
        unsafe { self.lock.release() };
        result
    }
}

/// What there is of a client's connection.
struct Connection {
    socket: Lines,
    file: Lines,
    request: Lines,
    answer: Lines,
    /// The number of the request, and the time at which it arrived. They are the client's, and so
    /// not in simulated memory.
    number: Cell<u64>,
    arrived: Cell<u64>,
}

/// The card's work for an interrupt CPU: the due time, the kind, and the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Packet {
    Request,
    Acknowledgement,
}

type Arrivals = BinaryHeap<Reverse<(u64, Packet, u32)>>;

/// All of it.
pub(super) struct Kernel<'a> {
    assumed: &'a Assumptions,
    ghz: f64,
    listener: Locked,
    /// All sockets are in one list of the kernel.
    sockets: Locked,
    /// Connections that are not accepted yet, in order. Their line is the listener's.
    backlog: RefCell<VecDeque<u32>>,
    /// Changes when a connection arrives, or the server ends.
    news: CachePadded<AtomicU32>,
    waiting: CachePadded<AtomicU32>,
    connections: Vec<Connection>,
    cards: Vec<RefCell<Arrivals>>,
    /// For each queue, the line that its CPU polls. This access keeps the simulator from letting
    /// the CPU run ahead of others.
    rings: Vec<Lines>,
    end: u64,
}

impl<'a> Kernel<'a> {
    pub fn new(assumed: &'a Assumptions, ghz: f64, clients: u32, end: u64) -> Self {
        let lines = &assumed.lines;
        let connection = |_| Connection {
            socket: Lines::new(lines.socket),
            file: Lines::new(lines.file),
            request: Lines::new(lines.request),
            answer: Lines::new(lines.answer),
            number: Cell::new(0),
            arrived: Cell::new(0),
        };
        let kernel = Self {
            assumed,
            ghz,
            listener: Locked::new(),
            sockets: Locked::new(),
            backlog: RefCell::default(),
            news: CachePadded(AtomicU32::new(0)),
            waiting: CachePadded(AtomicU32::new(0)),
            connections: (0..clients).map(connection).collect(),
            cards: (0..assumed.interrupt_cpus).map(|_| RefCell::default()).collect(),
            rings: (0..assumed.interrupt_cpus).map(|_| Lines::new(1)).collect(),
            end,
        };
        let apart = kernel.cycles(assumed.round_trip_ns) / u64::from(clients);
        for client in 0..clients {
            kernel.arrive(apart * u64::from(client), Packet::Request, client);
        }
        kernel
    }

    fn cycles(&self, ns: f64) -> u64 {
        (ns * self.ghz) as u64
    }

    fn compute(&self, ns: f64) {
        thread::compute(self.cycles(ns));
    }

    /// The card spreads connections over its queues.
    fn arrive(&self, at: u64, packet: Packet, client: u32) {
        let card = &self.cards[client as usize % self.cards.len()];
        card.borrow_mut().push(Reverse((at, packet, client)));
    }

    /// The work, until the end, of a CPU that serves a queue of the card.
    pub fn interrupts(&self, queue: usize) {
        loop {
            self.rings[queue].read(1);
            let now = thread::now();
            if now >= self.end {
                // Relaxed, both: the word is what sleepers compare, and nothing else.
                self.news.store(ENDED, Ordering::Relaxed);
                futex::wake(&*self.news, u32::MAX);
                return;
            }
            let next = self.cards[queue].borrow().peek().map(|Reverse((at, ..))| *at);
            match next {
                Some(at) if at <= now => self.interrupt(queue),
                next => hint::delay(next.map_or(POLL, |at| at - now).min(POLL)),
            }
        }
    }

    fn interrupt(&self, queue: usize) {
        let Some(Reverse((at, packet, client))) = self.cards[queue].borrow_mut().pop() else {
            return;
        };
        let connection = &self.connections[client as usize];
        let (times, lines) = (&self.assumed.times, &self.assumed.lines);
        match packet {
            Packet::Acknowledgement => {
                self.compute(times.acknowledge);
                connection.socket.write(lines.socket / 2, connection.number.get());
                connection.answer.read(lines.answer);
            }
            Packet::Request => {
                let number = connection.number.get() + 1;
                connection.number.set(number);
                connection.arrived.set(at);
                // Up to Linux 4.3 the listening socket is locked while a connection is made on it.
                self.listener.section(self.cycles(times.handshake), || {
                    connection.socket.write(lines.socket, number);
                    self.backlog.borrow_mut().push_back(client);
                });
                self.compute(times.deliver);
                connection.request.write(lines.request, number);
                connection.socket.write(lines.socket / 2, number);
                // SeqCst: with the load below, against the store and the read of the backlog in
                // `accept`.
                self.news.fetch_add(1, Ordering::SeqCst);
                // SeqCst: as above.
                if self.waiting.load(Ordering::SeqCst) > 0 {
                    futex::wake(&*self.news, 1);
                }
            }
        }
    }

    /// Executes a call on the connection of a client, on the caller's CPU. `accept` returns the
    /// client.
    pub fn execute(&self, call: Call, client: u32) -> u32 {
        let times = &self.assumed.times;
        let lines = &self.assumed.lines;
        if call == Call::Accept {
            return self.accept();
        }
        let connection = &self.connections[client as usize];
        let number = connection.number.get();
        match call {
            Call::Accept => unreachable!("above"),
            Call::Fcntl => {
                self.compute(times.fcntl);
                connection.file.read(1);
            }
            Call::Read => {
                self.compute(times.read);
                connection.socket.write(lines.socket / 2, number);
                return connection.request.read(lines.request) as u32;
            }
            Call::ReadNothing => {
                self.compute(times.read);
                connection.socket.read(2);
            }
            Call::Write => {
                self.compute(times.write);
                connection.answer.write(lines.answer, number);
                connection.socket.write(lines.socket / 2, number);
                let back = thread::now() + self.cycles(self.assumed.round_trip_ns);
                self.arrive(back, Packet::Acknowledgement, client);
            }
            Call::Shutdown => {
                self.compute(times.shutdown);
                connection.socket.write(lines.socket / 2, number);
            }
            Call::Poll => {
                self.compute(times.poll);
                connection.socket.read(2);
            }
            Call::Close => {
                self.compute(times.close);
                connection.socket.write(lines.socket / 2, number);
                connection.file.write(lines.file, number);
                self.sockets.section(self.cycles(times.locked), || ());
                // The client sends its next request when it has received the end of this
                // connection.
                let pause = self.assumed.round_trip_ns + self.assumed.think_ns;
                self.arrive(thread::now() + self.cycles(pause), Packet::Request, client);
            }
        }
        0
    }

    fn accept(&self) -> u32 {
        let times = &self.assumed.times;
        loop {
            // SeqCst: before the look at the backlog, against `interrupt`.
            let news = self.news.load(Ordering::SeqCst);
            if news == ENDED {
                return ENDED;
            }
            let first = self
                .listener
                .section(self.cycles(times.locked), || self.backlog.borrow_mut().pop_front());
            let Some(client) = first else {
                // SeqCst: before the wait compares the word, against `interrupt`.
                self.waiting.fetch_add(1, Ordering::SeqCst);
                futex::wait(&self.news, news, None);
                // Relaxed: too high a number costs a wake-up of no thread.
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                continue;
            };
            self.compute(times.accept);
            let connection = &self.connections[client as usize];
            connection.file.write(self.assumed.lines.file, connection.number.get());
            connection.socket.write(self.assumed.lines.socket / 2, connection.number.get());
            self.sockets.section(self.cycles(times.locked), || ());
            return client;
        }
    }

    /// The number of a client's request, and when it arrived.
    pub fn asked(&self, client: u32) -> (u32, u64) {
        let connection = &self.connections[client as usize];
        (connection.number.get() as u32, connection.arrived.get())
    }

    /// What the page takes.
    pub fn page(&self) {
        self.compute(self.assumed.page_ns);
    }
}
