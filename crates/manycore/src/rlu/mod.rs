//! RLU, read-log-update: readers never wait. Writers of different objects run at the same time, and
//! wait for readers.
//!
//! # Idea
//!
//! A thread locks an object by a copy of it, and changes the copy. The commit takes a stamp from
//! the clock. From then on, a session reads the copy if it has begun at the stamp or later, and
//! otherwise reads the object. So a session sees all of a commit or nothing. When the sessions have
//! ended that read the object, the writer copies the data back, and unlocks the object.
//!
//! ```text
//!   session of time 25         object              copy
//!        |                    +--------+        +----------+
//!        +------------------->|  head -+------->| stamp 20 |     read: 25 is not before 20
//!   session of time 15        |        |        +----------+
//!        +------------------->|  data  |                          read: the writer waits for it
//!                             +--------+
//! ```
//!
//! There are at most two versions of an object: while sessions are open that are older than a
//! commit, no thread can change the commit's objects again. That is the difference to
//! [MV-RLU](crate::mvrlu), and the reason why RLU is smaller: it has no chains, no log that can
//! become full, and no reclamation at the same time as commits.
//!
//! # Source
//!
//! Matveev, Shavit, Felber & Marlier: Read-Log-Update: A Lightweight Synchronization Mechanism for
//! Concurrent Programming. SOSP 2015. With [`Ordo`](crate::clock::Ordo) as the clock it is the
//! RLU-ORDO of Kashyap and others (EuroSys 2018). Deviations:
//!
//! - *The write clock.* In the paper a writer reads the clock, announces the next time as that of
//!   its commit, and then increments the clock. If two writers do so at once, they announce the
//!   same time. A session that has begun at that time may then have seen the object of one and see
//!   the copy of the other. Here the stamp comes from one increment, and is decided as in
//!   [MV-RLU](crate::mvrlu): a reader that finds a commit under way makes the commit's stamp later
//!   than its own time.
//! - *Stamps are in the copies*, so that a thread may commit again before the last commit is
//!   written back.
//! - *Deferring.* In the paper others do not see a deferred commit until it is written back, even
//!   when the call has returned. Here they see it from the commit on: only the wait for readers and
//!   the writing back are deferred ([`Config::deferred`]). A thread that meets an object locked by
//!   a deferred commit aborts its own session, and writes back for the owner, which may sleep or
//!   have ended. So no thread depends on the owner.
//! - *Waiting.* The original spins until each session has ended, even if the session's thread is
//!   not running. Here a writer polls for some microseconds, then yields the CPU, then sleeps. It
//!   does not wait for sessions that began after the commit. A thread that would wait for itself
//!   panics.
//! - *Two views.* [`View::Snapshot`](manycore_traits::View) is the paper's. `View::Latest` uses no
//!   clock; a writer then waits for the session's end even if the session has read the copy. If a
//!   session has changed an object and then freed it, others see the object's state before the
//!   change, as in [MV-RLU](crate::mvrlu).
//! - *No clock is trusted*, see below. So commits and snapshots do not wait for clocks, unlike
//!   those of [MV-RLU](crate::mvrlu).
//! - *Logs* are lists of copies, whose memory comes from the domain's pool, like that of objects.
//!
//! # Invariants
//!
//! 1. The data of an object without a copy is its last commit. It changes only while there is a
//!    copy, and every open session reads the copy.
//! 2. A committed copy stays until no session is open that may miss its stamp: such a session reads
//!    the object.
//! 3. A copy that was removed is in *limbo*, in the thread that removed it, until that thread's
//!    next stamp and then a wait for all sessions that may miss that stamp. Sessions that see the
//!    stamp have begun after the copy was removed, and did not find it.
//! 4. No thread waits in a session. So no two threads wait for each other's sessions.
//!
//! Rule 1 implies that a session may lock an object that has no copy: if the object had changed
//! since the session began, it would have one.
//!
//! # Memory order
//!
//! *Begin against wait* is a store and a load on either side. The session writes into its record
//! that it begins, and then reads objects. The writer has stamped its copies and announced the
//! stamp, and then reads the records. Between store and load each side has a full fence, or an
//! asymmetric barrier (membarrier) where eight commits share one. Either the writer sees the
//! session, or the session sees the commit. The session's end (Release) comes after all that it has
//! read, and the writer acquires it.
//!
//! *A session that has a time* stores the *epoch* in its record. The epoch is not before any
//! announced stamp. The session reads at the clock's time or the epoch, whichever is later. A
//! writer need not wait for the session if the stamp is not later than the epoch in the session's
//! record:
//!
//! 1. The writer has locked its objects, passed a fence, and found an epoch that is before its
//!    stamp, and so before the session's epoch. The session has found the later epoch, and then
//!    passed its own fence. So the writer's fence was before the session's, and the session sees
//!    the locks. It finds that the stamp is decided: if the decision had been under way, the
//!    session would have made the stamp later than its own time, and so later than its epoch.
//! 2. A session that the writer has not seen has passed its fence after the writer's. It reads the
//!    epoch again, finds one that is not before the stamp, and reads the copies.
//!
//! For an *exact* clock ([`Counter`](crate::clock::Counter)) the epoch is the clock itself. *Other
//! clocks* ([`Ordo`](crate::clock::Ordo)) decide only which moment a session sees: 1 and 2 do not
//! depend on the clock. A wrong clock makes snapshots inconsistent, but their reads are of valid
//! memory. Where the barrier is asymmetric, the load of the epoch (Acquire) takes the place of the
//! writer's fence in the first case. That is enough where a store becomes visible to all other CPUs
//! at once, as on x86 and AArch64.
//!
//! *The first session that has a time.* Before it, the epoch is not used, so that commits do not
//! write a line that they all share. Each thread keeps the latest stamp that it knows in its
//! record, executes a fence, and checks whether the epoch is used. The first such session marks the
//! epoch as used, executes a fence, and raises the epoch to the latest stamp in the records. Either
//! the session finds the stamp, or the thread announces it (`epoch.rs`).
//!
//! *Writing back.* Data is copied to the object, then the head is set to null (Release); a session
//! that finds null (Acquire) reads it.
//!
//! # Cost
//!
//! A session for the latest versions takes two stores to the thread's own line and a fence; a
//! snapshot also reads the clock and the epoch. Reading an object without a copy takes the load of
//! a word on its line. A commit takes a stamp, two fences, a read of each thread's record, and the
//! wait for sessions; if snapshots are used, it also writes a line that all commits write. So a
//! commit costs more with more threads; [`Config::deferred`] lets several commits share that cost.
//! Memory: a copy of each changed object, until the following commit is written back; objects and
//! copies are aligned to 32 bytes.
//!
//! # When not to use it
//!
//! Where updates are frequent on many CPUs, or sessions are long: every commit waits for the
//! sessions, and [`Config::on_stall`] reports a long wait. Where a thread commits while it is in a
//! session of another handle of the domain.

mod config;
mod domain;
mod epoch;
mod handle;
mod record;
mod stats;
mod write;
mod write_back;

pub use config::{Config, OnStall, Stall};
pub use domain::Domain;
pub use handle::Handle;
pub use stats::Stats;
