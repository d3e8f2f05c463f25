//! `rcu`: readers that never wait, and memory that is freed when none of them can have a reference
//! to it any more.
//!
//! # Idea
//!
//! A writer that unlinks a node from a structure cannot free it: a reader may still use it. So the
//! writer *retires* the node. The node is freed after a *grace period*: when every *critical
//! section* has ended in which a reader could have found it. A reader writes only to a record of
//! its own, when it enters a section and when it leaves.
//!
//! Time is counted in *epochs*. A thread that enters a section writes the epoch into its record.
//! The next epoch begins when all threads inside have the current one. So no thread is further
//! behind than one epoch:
//!
//! ```text
//!   epoch        4              5              6              7
//!   reader A  [------]       [----]                [-----]
//!   reader B       [-----------]   [--------------------]
//!                       ^ unlinked, retired in 4   ^ no reader has it any more: freed from here on
//! ```
//!
//! Retired objects wait in bags of up to 61. A full bag is closed with the current epoch, and
//! pushed onto a stack of its thread's record, from which any thread can take it. A thread frees
//! what it has retired itself, because that memory is in its caches. Other threads free the bags of
//! a thread that has ended, and all expired bags when the limit is near. If a thread ends with a
//! bag that is not full, the bag stays in the record, and the next thread fills it.
//!
//! At the end of a section, a thread that has retired eight objects or more frees as many expired
//! objects as it has retired. So an allocator that keeps a few free blocks for each thread can
//! reuse them. If it got hundreds of blocks at a time, it would move them to a list that all
//! threads share, and would have to fetch them from there.
//!
//! ```
//! use std::sync::atomic::{AtomicPtr, Ordering};
//! use manycore::reclaim::{Config, Domain};
//!
//! let domain = Domain::new(Config::default());
//! let newest = AtomicPtr::new(Box::into_raw(Box::new(String::from("first"))));
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         let handle = domain.register();
//!         let guard = handle.pin();
//!         // SAFETY: it was there during the section, and so is not dropped before the guard.
//!         let text = unsafe { &*newest.load(Ordering::Acquire) };
//!         assert!(["first", "second"].contains(&text.as_str()));
//!     });
//!     let handle = domain.register();
//!     let guard = handle.pin();
//!     let old = newest.swap(Box::into_raw(Box::new(String::from("second"))), Ordering::AcqRel);
//!     // SAFETY: from a box, and not reachable any more.
//!     unsafe { guard.retire(old) };
//! });
//! # drop(unsafe { Box::from_raw(newest.into_inner()) });
//! ```
//!
//! [`Atomic`] is such a pointer without `unsafe`.
//!
//! Where no handle can be passed on, use `section`. It does the same with a domain that belongs to
//! the process, like `crossbeam_epoch::pin`. A thread that reads for long repins now and then:
//! [`Guard::repin`].
//!
//! ## Bounded garbage
//!
//! A reader that stays in its section keeps everything from being freed. [`Config::limit_bytes`]
//! bounds the garbage: near it, a thread that has retired something waits at the end of its
//! section. [`Config::on_stall`] gets the reader's thread, the duration of the block, and the
//! amount of garbage. Readers never wait. When the reader leaves, the waiting threads go on.
//!
//! Without such a reader, a thread scans for expired objects when it has retired 253 objects. It
//! also scans when it has retired 8 objects and its last scan was 2^17 ticks ago: 2^19 where a scan
//! takes a system call, and 2^19 and 32 objects on 32 CPUs or more. So a thread that retires slowly
//! keeps little garbage, and a thread that retires fast spends little time on scans.
//!
//! A thread that has retired something may wait when it leaves its section, and destructors run
//! there. So it must not hold, at that time, a lock that other threads acquire in sections: acquire
//! and release locks inside.
//!
//! ## Quiescent states
//!
//! [`QsbrHandle`] is for threads that can report, now and then, that they hold no reference. Their
//! sections cost nothing. A structure leaves this choice to its user by a type, [`Mode`].
//!
//! # Source
//!
//! P. McKenney and J. Slingwine, "Read-copy update", PDCS 1998, for what it guarantees; K. Fraser,
//! "Practical lock-freedom", PhD thesis, Cambridge 2004, for epochs; M. Desnoyers, P. McKenney, A.
//! Stern, M. Dagenais and J. Walpole, "User-level implementations of read-copy update", TPDS 2012,
//! for readers without fences; D. Kim, T. Brown and A. Singh, "Are your epochs too epic? Batch free
//! can be harmful", PPoPP 2024, for destroying one by one. Our own parts are the bags on stacks
//! from which any thread can take them, the limit, and that there is no list of threads to lock.
//!
//! # Memory order
//!
//! A *writer* W unlinks an object and retires it, in a section; at the end of the section or later
//! it reads the epoch *t* with which it closes the bag. A *reader* R writes the epoch into its
//! record, passes a fence, and then reads pointers. An *advancer* A reads the epoch *n*, passes a
//! fence, and then reads the records, before it begins *n* + 1. So does W, like any reader, when it
//! enters. The fences are sequentially consistent: of two, one comes first, and a thread that has
//! passed the second sees what was written before the first. The object is freed when a thread sees
//! the epoch *t* + 3.
//!
//! *What W did comes before the epoch t + 2.* The advancer that began this epoch has read *t* + 1.
//! It has seen W enter: otherwise its fence came before W's, and W, which reads the epoch after its
//! own fence, would have found *t* + 1 and not *t*. It has not seen W inside, because W did not
//! enter with *t* + 1: then W would have found *t* + 1. So the advancer has seen that W had left
//! (Release, Acquire), and passes this on with the epoch (Release).
//!
//! *R does not have the object at t + 3.* If R has entered with *t* + 2 or later (Acquire), it sees
//! that the object is unlinked. If R has entered with an earlier epoch, the advancer that began the
//! epoch *t* + 3 did not see R inside. There are two cases. Either the advancer saw that R had
//! left. Then what R did inside comes before R's Release, in `leave` or, if R is inside again, in
//! `enter`. The advancer acquires this, and releases it with the epoch, which a thread that frees
//! acquires. Or the advancer did not see R enter. Then its fence came before R's, and it has read
//! *t* + 2 before its fence, so that R sees what W did.
//!
//! [`Domain::synchronize`] is called by a thread that need not have been inside. The thread passes
//! a fence before it reads *t*. This fence takes the place of W's section: it comes before that of
//! the advancer that began *t* + 2.
//!
//! *Without fences in readers.* Suppose that threads rarely wait for readers, and that the system
//! can make all threads execute a fence ([`sync::barrier`](crate::sync::barrier)). Then A calls the
//! system for it, after its own fence, and R only keeps the compiler from exchanging its accesses.
//! There are two cases for each R. Either R has made its write, and A sees the write; or R's reads
//! are yet to come, and see everything before A's fence. The argument above needs no more of the
//! fences. `src/asymmetry.rs` has the full argument, and the transition between the two ways.
//!
//! Release and Acquire of a stack's head pass bags from one thread to the next. The counts of a
//! record pass with the record.
//!
//! # Cost
//!
//! A section costs two writes of a line of the thread's own, and a read of the epoch's line, which
//! changes once for some hundred retired objects. It also costs a fence, unless threads had 4,096
//! sections or more between two scans for garbage and [`Barriers::Auto`] is granted. Retiring costs
//! a write of two words. Now and then a thread reads each thread's line. If readers execute no
//! fence, and a thread has been in a section recently, the scan also makes a system call that
//! interrupts the CPUs on which threads of the process run. A thread takes 128 bytes. If it retires
//! objects, it also takes the bags of about four epochs, of 1 KiB each.
//!
//! # When not to use it
//!
//! Where memory has to be freed immediately, or where readers stay pinned for a long time. After a
//! fork the child must not use the domains of its parent: records of threads that do not exist in
//! the child stay unchanged.

mod atomic;
mod bag;
mod config;
mod cpu_handles;
mod domain;
mod handle;
mod mode;
mod nodes;
#[cfg(all(feature = "std", not(any(loom, feature = "sim"))))]
mod process;
mod qsbr;
mod record;
mod unpublished;

pub use atomic::Atomic;
pub use bag::BAG_BYTES;
pub use config::{Barriers, Config, OnStall, Stall};
pub(crate) use cpu_handles::CpuHandles;
pub use domain::Domain;
pub(crate) use handle::Section;
pub use handle::{Guard, Handle};
pub use mode::{AutoQsbrHandle, Epoch, Mode, Qsbr};
#[cfg(all(feature = "std", not(any(loom, feature = "sim"))))]
pub use process::{domain, is_pinned, section, synchronize};
pub use qsbr::QsbrHandle;
pub(crate) use unpublished::{UnpublishedNode, end_with_structure};
