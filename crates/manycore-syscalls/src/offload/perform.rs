//! How each mechanism sends a call to the thread that executes it, and the meaning of the answer.

use core::sync::atomic::Ordering;

use manycore::sync::{clock, node};

use super::affinity;
use super::attempt;
use super::cpu_worker::CpuWorker;
use super::internal_fds;
use super::lifecycle::{Offload, Route};
use super::pending::PendingCall;
use super::raw;
use super::routes::{RouteState, RouteTable};
use super::settings::{Maker, Mechanism, Settings};
use super::uring::{self, Meaning};
use super::worker_pool::WORKERS_MAX;
use manycore_channel::call::{Answer, Call, Kind, Reason};
use manycore_channel::slot::{IN_PLACE, Order, Reply, Slot};

impl Offload {
    /// Executes the call on the route's CPU, and waits for the answer; or returns the reason why it
    /// has to be executed in place.
    ///
    /// If the call causes SIGPIPE or SIGXFSZ, the signal has been raised in the calling thread when
    /// this returns.
    ///
    /// # Safety
    ///
    /// Any thread of the process may execute the call. Its arguments' targets are valid until this
    /// returns. If the thread leaves this without returning, they are valid until
    /// [`abandon`](Self::abandon) has returned, which is called only in that case. The flight is
    /// empty.
    pub unsafe fn perform(
        &'static self,
        route: &Route,
        call: &Call,
        kind: Kind,
        flight: &PendingCall,
    ) -> Result<Answer, Reason> {
        let (settings, cpu_workers) = self.chosen().ok_or(Reason::Off)?;
        affinity::look();
        if affinity::is_one() {
            return Err(Reason::OneCpu);
        }
        let state = self.routes.get(route.number).ok_or(Reason::Off)?;
        let at = RouteTable::at(state);
        let cpu = settings.groups.cpus()[at];
        let place = Destination { settings, route: state, cpu_worker: &cpu_workers[at], at, cpu };
        let (began, threads) =
            if settings.bypass { (clock::now(), self.threads()) } else { (0, 0) };
        // SAFETY: the targets of the call's arguments are valid until this returns or `abandon`
        // has, and no call is in flight (contract of this function): each of these ends before the
        // next begins.
        let reply = unsafe {
            let by = |call: &Call, way| self.execute(place, (call, kind), flight, way);
            let way = match (settings.mechanism, kind) {
                (Mechanism::Thread, _) => Way::Threads,
                // The call may take as long as a disk access, and the worker has other calls to
                // serve.
                (_, Kind::File) => Way::BlockingWorker { is_rest: false, done: 0, descriptor: -1 },
                (Mechanism::Uring, _) => Way::Ring,
                _ => Way::Threads,
            };
            match by(call, way) {
                Some(Meaning::Other) => by(call, Way::Threads),
                Some(Meaning::Part(sent)) if !attempt::is_non_blocking(call.args[0]) => {
                    let rest = by(&after(call, sent), Way::Rest);
                    Some(Meaning::Answer(both(sent, rest)))
                }
                first => first,
            }
        };
        let answer = match reply {
            Some(Meaning::Answer(reply)) => deliver(reply),
            Some(Meaning::Part(sent)) => sent as Answer,
            Some(Meaning::Other) | None => return Err(Reason::NoThread),
        };
        // A call that no thread has executed takes less time than any other, and one for which a
        // thread was made takes more. Neither tells anything about moved calls.
        if settings.bypass && self.threads() == threads {
            state.habit.moved(began, &self.family.page().habit);
        }
        Ok(answer)
    }

    /// Sends the call and waits for the answer; `None` if there is no thread for it.
    ///
    /// # Safety
    ///
    /// As in [`perform`](Self::perform).
    unsafe fn execute(
        &'static self,
        place: Destination,
        (call, kind): (&Call, Kind),
        flight: &PendingCall,
        way: Way,
    ) -> Option<Meaning> {
        // All signals are blocked, so no handler can jump out of this in the middle. The call was
        // either sent or not begun, and no lock is held.
        let before = raw::block(!0);
        // SAFETY: all signals are blocked by the line above, and the slot stays until `land` or
        // `hand_on`; the rest is the contract of this function.
        let sent = unsafe { self.send(place, (call, kind), flight, way, before) };
        raw::block(before);
        let by = sent?;
        let reply = flight.wait(place.settings, kind, place.cpu);
        if reply.answer == IN_PLACE {
            // SAFETY: `wait` has returned, so the slot is answered, and it was not given back; the
            // rest is the contract of this function.
            return unsafe { self.hand_on(place, (call, kind), flight, way == Way::Rest) };
        }
        flight.land();
        Some(match by {
            By::Ring => uring::meaning(call, reply),
            By::Thread => Meaning::Answer(reply),
        })
    }

    /// Continues a call for which the worker found no worker that can block, and may not make one.
    /// Sends it to a worker that is made here; or returns the call's result, `None` if it was not
    /// executed.
    ///
    /// # Safety
    ///
    /// The flight's slot is answered; otherwise as for [`perform`](Self::perform).
    #[cold]
    unsafe fn hand_on(
        &'static self,
        place: Destination,
        (call, kind): (&Call, Kind),
        flight: &PendingCall,
        is_rest: bool,
    ) -> Option<Meaning> {
        // Until a worker has it, only this function knows the worker's duplicate: no handler may
        // jump out of here, or fork.
        let before = raw::block(!0);
        let slot = flight.slot();
        // SAFETY: the slot is answered (contract of this function), and so this thread's until
        // `land`.
        let (order, is_cancelled) = unsafe { ((*slot).order(), (*slot).is_cancelled()) };
        flight.land();
        let Order { done, descriptor, .. } = order;
        let ends = is_cancelled && kind.ends_early();
        let way = Way::BlockingWorker { is_rest: is_rest || done > 0, done, descriptor };
        // SAFETY: all signals are blocked by the first line, no call is in flight since `land`; the
        // rest is the contract of this function.
        let is_sent =
            !ends && unsafe { self.send(place, (call, kind), flight, way, before) }.is_some();
        if !is_sent && descriptor >= 0 {
            internal_fds::close(descriptor);
        }
        raw::block(before);
        if is_sent {
            let reply = flight.wait(place.settings, kind, place.cpu);
            flight.land();
            return Some(Meaning::Answer(reply));
        }
        let answer = match (ends, done) {
            // A handler came before there was a thread for it.
            (true, 0) => raw::error(libc::EINTR),
            (true, _) => done as Answer,
            (false, 0) => return None,
            // There was no thread for the rest of a send. SAFETY: no other thread has the call,
            // whose arguments are valid, and for which this thread waits (contract of this
            // function).
            (false, _) => unsafe { attempt::finish(call, done, || true) },
        };
        Some(Meaning::Answer(Reply { answer, signal: 0 }))
    }

    /// Sends the call. Returns `None` if there is no thread for it: then it is not in flight, so a
    /// handler that jumps out does not wait for its end.
    ///
    /// # Safety
    ///
    /// All signals are blocked, and `before` are those that were blocked before; no call is in
    /// flight; otherwise as for [`perform`](Self::perform).
    unsafe fn send(
        &'static self,
        place: Destination,
        (call, kind): (&Call, Kind),
        flight: &PendingCall,
        way: Way,
        before: u64,
    ) -> Option<By> {
        let Destination { settings, route, cpu_worker, at, cpu } = place;
        let maker = Maker { settings, blocked: before };
        let slot = node::take::<Slot>().as_ptr();
        // SAFETY: the slot is new, and no other thread has it until it is handed on below.
        unsafe { (*slot).write(call, kind) };
        flight.begin(slot);
        if let Way::Rest | Way::BlockingWorker { is_rest: true, .. } = way {
            // SAFETY: the slot is new, and no other thread has it until it is handed on below.
            unsafe { (*slot).note_part() };
        }
        // SAFETY: the slot is written, no other thread has it, and it stays until it is answered
        // and `land` gives it back; all signals are blocked (contract of this function).
        let (by, is_sent) = unsafe {
            match way {
                Way::Ring if self.feed(call, kind, cpu_worker, (at, cpu), flight, maker) => {
                    (By::Ring, true)
                }
                Way::BlockingWorker { done, descriptor, .. } => {
                    (*slot).go_on_behind(done);
                    if descriptor >= 0 {
                        (*slot).redirect(descriptor);
                    }
                    (By::Thread, self.blocking.send(slot, maker))
                }
                _ if settings.mechanism == Mechanism::Thread => {
                    (By::Thread, self.give(cpu, route, at, slot, maker))
                }
                _ => {
                    flight.goes_to(cpu_worker);
                    (By::Thread, cpu_worker.send(slot, cpu, &self.blocking, maker))
                }
            }
        };
        if !is_sent {
            flight.land();
        }
        is_sent.then_some(by)
    }

    /// The mechanism `uring`: puts the call into the ring of its CPU; returns false if it is a call
    /// for the pool.
    ///
    /// # Safety
    ///
    /// The flight's slot is initialised, no other thread has it, and it stays until it is answered;
    /// all signals are blocked.
    unsafe fn feed(
        &'static self,
        call: &Call,
        kind: Kind,
        cpu_worker: &'static CpuWorker,
        (at, cpu): (usize, u16),
        flight: &PendingCall,
        maker: Maker,
    ) -> bool {
        // A thread of the kernel's stays where it was bound.
        if !affinity::has(cpu) {
            return false;
        }
        let Some(feed) = self.feeds.get().map(|feeds| &feeds[at]) else { return false };
        if feed.lateness.rests(clock::now) {
            return false;
        }
        // SAFETY: all signals are blocked (contract of this function).
        let has_worker = || unsafe { cpu_worker.is_running(cpu, &self.blocking, maker) };
        let listen = |ring| cpu_worker.feed(feed, ring);
        let ring = feed.started(cpu, has_worker, listen, maker.settings.say);
        let Some(ring) = ring else { return false };
        flight.goes_into(Some(feed), cpu_worker.epoll());
        // SAFETY: the slot is written, no other thread has it, and it stays until it is answered
        // (contract of this function).
        let is_sent = unsafe { feed.send(ring, call, kind, flight.slot()) };
        if !is_sent {
            flight.goes_into(None, -1);
        }
        is_sent
    }

    /// The mechanism `thread`: sends the call to a worker of the route. If all of them are busy,
    /// uses a resting or a new one.
    ///
    /// # Safety
    ///
    /// The slot is initialised, no other thread has it, and it stays until it is answered; all
    /// signals are blocked.
    unsafe fn give(
        &'static self,
        cpu: u16,
        route: &'static RouteState,
        at: usize,
        slot: *const Slot,
        maker: Maker,
    ) -> bool {
        let pool = &self.blocking.pool;
        let resting = || {
            let worker = pool.take(&self.resting[at])?;
            self.rest.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `rest`
            Some(worker)
        };
        // SAFETY: all signals are blocked (contract of this function).
        let new = || unsafe { pool.make(maker, Some(cpu), WORKERS_MAX as u32) };
        let worker = pool.take(&route.idle).or_else(resting).or_else(new);
        // SAFETY: the worker was taken off a stack or made here, and was sent nothing; the slot is
        // written, and stays until it is answered (contract of this function). Routes are never
        // freed.
        worker.map(|worker| unsafe { pool.send(worker, slot, &raw const route.idle) }).is_some()
    }
}

/// The CPU and the worker that execute the calls on a route.
#[derive(Clone, Copy)]
struct Destination {
    settings: &'static Settings,
    route: &'static RouteState,
    cpu_worker: &'static CpuWorker,
    /// The CPU: its index among the route's CPUs, and its number.
    at: usize,
    cpu: u16,
}

/// The thread or ring that has a call which was sent.
enum By {
    Ring,
    Thread,
}

/// How a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Through the ring of the route's CPU, if the call is suitable.
    Ring,
    /// To threads of ours.
    Threads,
    /// After a part of a send was sent: by a new call for the rest.
    Rest,
    /// By a worker of the pool, which is made if there is none, after `done` bytes of a send or of
    /// its rest. `descriptor` is a duplicate of ours, which the call uses and which is closed
    /// afterwards; -1 if there is none.
    BlockingWorker { is_rest: bool, done: usize, descriptor: i32 },
}

/// A send of the bytes that remain after `sent` bytes.
fn after(call: &Call, sent: usize) -> Call {
    let mut rest = *call;
    rest.args[1] += sent;
    rest.args[2] -= sent;
    rest
}

/// The answer to a send in two parts. Of the second part's result, only the number of sent bytes
/// counts.
fn both(sent: usize, rest: Option<Meaning>) -> Reply {
    let more = match rest {
        Some(Meaning::Answer(Reply { answer, .. })) if answer > 0 => answer,
        _ => 0,
    };
    Reply { answer: sent as Answer + more, signal: 0 }
}

/// The caller's answer. Also sends the caller the signal that belongs to it.
fn deliver(reply: Reply) -> Answer {
    if reply.signal != 0 {
        raw::signal(raw::thread_id(), reply.signal);
    }
    reply.answer
}
