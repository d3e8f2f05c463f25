//! A table from descriptors to the routes on which their calls are executed.
//!
//! ```text
//! entries, by descriptor    epoch:32 | slot:24 | state:8        one word, replaced as a whole
//! slots                     references | next | traits | route   one for each open description
//! ```
//!
//! Descriptors that share an open description share a slot, and so do their calls in flight.
//! Dropping a slot's last reference closes its route. That happens in the `close` of the descriptor
//! if no call is in flight, and otherwise at the end of the last such call. So a descriptor's
//! number may already belong to another socket while calls on the earlier one still wait for their
//! answers.
//!
//! # Finding
//!
//! [`Table::find`] reads an entry, takes a reference to its slot unless the slot has none left, and
//! reads the entry again. The memory of slots is never freed, so reading a slot that has just been
//! released is harmless. If the slot serves another descriptor by now, the entry has changed, and
//! the reference is dropped.
//!
//! # Wrong entries
//!
//! A thread may have to ask the kernel for a descriptor's kind, while another thread closes the
//! descriptor. So a thread that closes one announces that before and after ([`Table::closes`],
//! [`Table::closed`]), and in between no thread notes the kernel's answer. A thread that has noted
//! an answer asks once more ([`Table::adopt`]). So no entry is left behind for a closed number.
//!
//! Not everything that happens to descriptors is seen here: code that is not interposed opens and
//! closes some. An entry is therefore never more than advice on where to execute a call. Unknown is
//! always a right answer.
//!
//! # Forks
//!
//! A child has a copy of the table, but none of the threads that serve routes. [`Table::forked`]
//! begins another epoch: entries of earlier epochs count as unknown, and all slots are free again.
//!
//! ```
//! # #[cfg(not(loom))] {
//! use std::cell::Cell;
//! use manycore_channel::descriptors::{Entry, Lookup, Slot, Table};
//!
//! let (entries, slots) = ([const { Entry::new() }; 8], [const { Slot::new() }; 4]);
//! let closed = Cell::new("none");
//! let table = Table::new(&entries, &slots, |route| closed.set(route));
//! assert!(matches!(table.find(3), Lookup::Unknown));
//! assert!(table.steer(3, "a route", 0));
//! let Lookup::Steered(held) = table.find(3) else { panic!("it is steered") };
//! assert_eq!(*table.route(&held), "a route");
//! // The descriptor is closed while a call is in flight: the route is closed when that comes back.
//! table.forget(3);
//! assert_eq!(closed.get(), "none");
//! table.leave(held);
//! assert_eq!(closed.get(), "a route");
//! # }
//! ```
mod slot;
mod table;

pub use slot::{Held, Slot};
pub use table::{Entry, Left, Lookup, SLOTS_MAX, Table};
