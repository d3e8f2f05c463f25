//! `ordered`: a stack on which each thread pushes in cache lines of its own, and from which the
//! newest item comes first.

use crate::clock::Ordo;
use crate::ldu::ordered::{Handle, Newest, Ordered};
use crate::lock::Adaptive;

/// A stack on which each thread pushes items, and from which it withdraws them again, without
/// accessing a line that others write. A thread that pops the newest item of all reads the others'
/// items. See [`ldu::ordered`](crate::ldu::ordered) for the guarantees about that order.
///
/// ```
/// use manycore::collections::stack::OrderedStack;
///
/// let stack = OrderedStack::<_>::default();
/// let mut own = stack.handle();
/// own.push(1);
/// std::thread::scope(|s| {
///     s.spawn(|| stack.handle().push(2));
/// });
/// assert_eq!(stack.pop(), Some(2), "the newest of all");
/// own.push(3);
/// assert_eq!(own.take_back(), Some(3), "its own newest");
/// assert_eq!(own.take_back(), None, "`pop` has got hold of the other one");
/// assert_eq!(stack.pop(), Some(1));
/// ```
pub type OrderedStack<T, C = Ordo, L = Adaptive> = Ordered<T, Newest, C, L>;

/// A thread's right to put things on an [`OrderedStack`].
pub type OrderedStackHandle<'a, T, C = Ordo, L = Adaptive> = Handle<'a, T, Newest, C, L>;
