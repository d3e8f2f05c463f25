//! `ordered`: a queue to which each thread adds in cache lines of its own, and from which the
//! oldest item comes first.

use crate::clock::Ordo;
use crate::ldu::ordered::{Handle, Oldest, Ordered};
use crate::lock::Adaptive;

/// A queue to which each thread adds without accessing a line that others write. A thread that
/// removes items puts the ones that it needs in order. See [`ldu::ordered`](crate::ldu::ordered)
/// for the guarantees about that order.
///
/// ```
/// use manycore::collections::queue::OrderedQueue;
///
/// let queue = OrderedQueue::<_>::default();
/// std::thread::scope(|s| {
///     s.spawn(|| {
///         let mut handle = queue.handle();
///         (0..3).for_each(|n| handle.push(n));
///         handle.push(100);
///         assert_eq!(handle.take_back(), Some(100)); // no thread has seen it
///     });
/// });
/// assert_eq!(queue.pop(), Some(0));
/// let mut rest = Vec::new();
/// assert_eq!(queue.pop_into(10, &mut rest), 2);
/// assert_eq!(rest, [1, 2]);
/// ```
pub type OrderedQueue<T, C = Ordo, L = Adaptive> = Ordered<T, Oldest, C, L>;

/// A thread's right to add to an [`OrderedQueue`].
pub type OrderedQueueHandle<'a, T, C = Ordo, L = Adaptive> = Handle<'a, T, Oldest, C, L>;
