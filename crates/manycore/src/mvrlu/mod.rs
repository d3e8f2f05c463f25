//! MV-RLU, multi-version read-log-update: readers never wait, and writers of different objects do
//! not either.
//!
//! # Idea
//!
//! An object that is about to be changed is copied into the log of the thread that changes it, and
//! linked before the object (and before older copies) by one compare-and-swap, which is the lock. A
//! transaction changes as many objects as it likes; its commit gives all of its copies one time
//! stamp. A session reads, of each object, the newest version that is not later than the session's
//! own begin. So it sees one moment, however long it takes, and no writer waits for it.
//!
//! ```text
//!   session of time 25         object       30: by thread A     20: by thread B
//!        |                    +--------+     +--------+          +--------+
//!        +------------------->|  head -+---->|        +--------->|  <=25  |  master: time 12
//!                             | master |     +--------+          +--------+
//!                             +--------+
//! ```
//!
//! Old versions are discarded by the thread in whose log they are, when no session needs them; the
//! newest one is written back to the object before, so that readers find one word of null there
//! instead of a chain.
//!
//! # Source
//!
//! Kim, Mathew, Kashyap, Ramanathan & Min: MV-RLU: Scaling Read-Log-Update with Multi-Versioning.
//! ASPLOS 2019. The interface is that of RLU (Matveev, Shavit, Felber & Marlier, SOSP 2015), the
//! clock ORDO (EuroSys 2018, see [`clock`](crate::clock)). Deviations:
//!
//! - *One word* is both the lock and the newest version (`p-pending` and `p-copy` in the paper):
//!   the newest version must not be seen while its stamp is open. An object has 8 bytes more than
//!   its data.
//! - *Interrupted commits.* In the paper a reader may begin between the moment when a commit takes
//!   its stamp and the moment when it stores it, and miss a commit that is before its begin. Here a
//!   reader that finds a version without a stamp writes its own time into the transaction's
//!   decision, and goes on: the stamp has to be later than that time. So no thread waits for a
//!   thread that is preempted in its commit.
//! - *Strict.* A snapshot sees every commit that has returned. For that, either commits wait until
//!   every clock has passed their stamps, or snapshots wait when they begin, whichever are fewer;
//!   [`RelaxedClock`](crate::clock::RelaxedClock) does without.
//! - *Two views.* [`View::Snapshot`](manycore_traits::View) is the paper's. `View::Latest` reads
//!   the committed version of each object, and uses no clock. That is enough for an operation on
//!   one key of a structure in which it is right under RCU, too. If a session has changed an object
//!   and then freed it, threads that have found the object before see its state before that
//!   session.
//! - *No thread for grace periods.* A thread searches for one in three cases: when it has committed
//!   this many versions ([`Config::versions_max`]), when its log is half full, or when it has
//!   passed over this many versions ([`Config::hops_max`]), which costs as much as a search. A few
//!   times, it leaves the search to a thread that is doing it. Then all threads write back what
//!   they can, at their next session's end; a thread that has searched helps those that did not get
//!   to it in the whole period before. That keeps chains short where a few objects are hot.
//! - *Segments.* A log is a list of segments: it can grow, and reuses the segment that became free
//!   last, which is in the cache.
//!
//! # Sessions and grace periods
//!
//! All threads read two numbers of the domain, which are written once in a grace period. The
//! *epoch* is a time that every CPU's clock had passed when the epoch was announced; a session that
//! begins stores the epoch in its thread's record. The *watermark* is the least epoch in any
//! record: every open session has begun after that epoch was announced. All of reclamation follows
//! from this:
//!
//! 1. A version whose successor was committed up to the watermark is not needed: all sessions see
//!    the successor.
//! 2. If the newest version was committed up to the watermark, all sessions see it or a newer one.
//!    No session reads the object itself, so the version can be written over it.
//! 3. No session has a version that was detached at a time up to the watermark: the sessions that
//!    could have found it have ended.
//! 4. A thread that reclaims is in a session. While it reads an object through a version that is
//!    not superseded, the object is not freed: its end would have superseded the version, at a time
//!    after this session's begin.
//!
//! A session for the latest has no time. For 1 and 2 it must not pass by a commit with a stamp up
//! to its epoch; so it raises the decisions of commits that it finds under way past its epoch.
//!
//! *No clock is trusted for this.* A wrong clock, or a boundary that is too small, makes snapshots
//! inconsistent, but their reads are of valid memory. The points 1 to 4 treat a stamp as the moment
//! when it was taken; with wrong clocks a session could miss a version whose stamp is earlier than
//! its epoch. So the time of a snapshot is not before its epoch. And a stamp is later than the
//! epoch that its thread finds in the domain after it has inserted or removed the versions. If a
//! thread's epoch is not before the stamp, it was announced later than that, so the thread finds
//! the versions, too. Between finding the epoch and storing it in the record, other threads may
//! have computed a watermark without the session; so the session reads the epoch again, and uses
//! the new value.
//!
//! # Memory order
//!
//! *A snapshot is consistent.* Let R be a session's time and W a stamp. If R >= W, the session sees
//! all of the commit: the stamp was taken after the decision was opened and the versions were
//! linked, so that a thread that has a time of W or later sees both
//! ([`Clock::stamp`](crate::clock::Clock::stamp)). The session then finds the decision made: if it
//! were open, the session would make the stamp later than R, in contradiction to R >= W. If R < W
//! the session does not read the commit's versions, because their stamp is later than R. Either it
//! has found the stamp, or it has made the stamp later.
//!
//! *The next transaction of a thread reuses its record.* So a reader may find the decision of a
//! later transaction. It therefore reads the version's stamp again, which was set before the later
//! transaction began (Release in `open`).
//!
//! *Begin against watermark* is a store and a load on either side. The session stores its epoch and
//! then reads objects. The other thread stores the new epoch, after it has detached something, and
//! then reads the sessions' epochs. Both sides have full fences in between, or the other side has a
//! membarrier: `src/asymmetry.rs` says when, and why that is as good. Either the other thread sees
//! the session, or the session sees the new epoch and the detached state.
//!
//! *Stamp against begin*, without a clock, is a store and a load on either side, too. The commit
//! inserts its versions and then reads the epoch. A thread raises the epoch by a store, and a
//! session that finds this epoch then reads objects. The insertion, the read of the epoch, and its
//! raising are in one order (SeqCst), which costs a load nothing on x86 and a load-acquire
//! elsewhere. The session's end (Release) comes after all that it has read, and `advance` acquires
//! that for the thread that acts on the watermark.
//!
//! *Writing back.* Data is copied to the object, then the head is set to null (Release); a session
//! that finds null (Acquire) reads it.
//!
//! # A horizon
//!
//! A program that writes commits to a disk, in their order, needs to know when it has all commits
//! up to a time. After [`Domain::close`] no commit with a stamp up to that time can appear any
//! more. Sessions may then read at the *floor*, the last time up to which everything is on the disk
//! ([`Handle::begin_at_floor`]). The watermark is not above the floor, so the versions for these
//! sessions are kept. Such a session stores the floor in its record rather than the epoch. It then
//! reads the floor again, as other sessions read the epoch. So a thread that searches for a grace
//! period and has not seen the session has read the same floor before, or an earlier one.
//!
//! # Cost
//!
//! Beginning and ending a session for the latest versions takes two stores to the thread's own
//! line, and loads of a line that rarely changes; where grace periods are frequent, also a fence. A
//! snapshot also reads the clock. Either snapshots or commits, whichever are rarer, wait for the
//! clocks: twice their boundary, 0.2 us on a machine with one socket. Reading an object without
//! versions takes the load of a word on its line. A commit takes a read-modify-write of the
//! thread's own line, one for each object, and a stamp. A grace period reads each thread's line,
//! and takes some tens of nanoseconds for each version. Where it is so rare that sessions do
//! without a fence, it also takes a membarrier, of 1 to 9 us on two virtual CPUs. Memory: a line or
//! more for each version, in the thread's log of [`Config::segments`] times
//! [`Config::segment_bytes`]; objects are aligned to 32 bytes. The memory of objects is reused, but
//! not given back before the domain's end.
//!
//! # When not to use it
//!
//! Where all threads change one object: one transaction at a time succeeds, and the others run
//! again. For long sessions: they keep versions, up to [`Config::segments_max`] segments for each
//! thread; then writers wait, and [`Config::on_stall`] reports the blocking session. For objects of
//! kilobytes, which are copied for each change. For code that reads repeatedly in one session to
//! wait for a change: a session sees the same moment for ever.

#[cfg(not(loom))]
mod bytes;
mod config;
mod domain;
mod durable;
mod handle;
mod log;
mod object;
#[cfg(not(loom))]
mod pair;
mod reclaim;
mod record;
mod stats;
mod waits;
mod write;

#[cfg(not(loom))]
pub use bytes::object_of;
pub use config::{Config, OnStall, Stall};
pub use domain::Domain;
pub use durable::{MemberId, Write};
pub use handle::Handle;
#[cfg(not(loom))]
pub(crate) use pair::Pair;
pub use stats::Stats;

pub use crate::object_pool::Memory;
