//! Telling the function that wants a lock from those that only pass the wish on.
//!
//! A lock on the heap is named after the place of its first use, and `std::mutex::lock` as that
//! place would be useless. A function is a mere wrapper if it is part of the C++ library, or if its
//! name only says that it locks: `Mutex::lock`, `inline_mysql_mutex_lock`, `ScopedRWLock`; but not
//! `item_lock` or `Cache::lock`, whose names say what they lock.

use crate::profile::Frame;

/// Words in the names of functions that use a lock or a condition variable.
const LOCKING: &[&str] = &[
    "acquire",
    "cnd",
    "cond",
    "condition",
    "guard",
    "latch",
    "lock",
    "locker",
    "mtx",
    "mutex",
    "rdlock",
    "rwlock",
    "semaphore",
    "spin",
    "spinlock",
    "timedlock",
    "timedwait",
    "trylock",
    "wrlock",
];

/// Words that tell how a function locks, or whose function it is, but not what it locks.
const MANNER: &[&str] = &[
    "alloc",
    "apr",
    "auto",
    "base",
    "clocklock",
    "clockwait",
    "construct",
    "create",
    "critical",
    "do",
    "enter",
    "exclusive",
    "fast",
    "for",
    "g",
    "gthread",
    "gthrw",
    "impl",
    "init",
    "initialise",
    "initialize",
    "inline",
    "internal",
    "kernel",
    "low",
    "make",
    "my",
    "mysql",
    "native",
    "new",
    "nptl",
    "of",
    "os",
    "pr",
    "prlock",
    "psi",
    "pthread",
    "raw",
    "rd",
    "read",
    "reader",
    "rec",
    "recursive",
    "rw",
    "scoped",
    "sdl",
    "section",
    "shared",
    "slow",
    "static",
    "std",
    "sys",
    "system",
    "thread",
    "timed",
    "to",
    "try",
    "unique",
    "until",
    "uv",
    "variable",
    "wait",
    "with",
    "wr",
    "write",
    "writer",
];

/// Name spaces whose names do not tell what a lock protects.
const NAME_SPACES: &[&str] = &["std", "core", "__gnu_cxx", "lock_api", "parking_lot_core"];

/// Files in which all functions are wrappers of locks.
const LIBRARIES: &[&str] = &["libc.so", "libpthread", "libstdc++", "libc++", "libmanycore_preload"];

/// The innermost frame that is not a mere wrapper; the innermost one if all are wrappers.
pub fn first_informative<'a>(frames: impl Iterator<Item = &'a Frame>) -> Option<usize> {
    let mut frames = frames.peekable();
    frames.peek()?;
    Some(frames.position(|frame| !is_wrapper(frame)).unwrap_or(0))
}

fn is_wrapper(frame: &Frame) -> bool {
    LIBRARIES.iter().any(|library| frame.module.starts_with(library))
        || frame.function.as_deref().is_some_and(only_locks)
}

fn only_locks(function: &str) -> bool {
    let path = plain_path(function);
    if path.first().is_some_and(|first| NAME_SPACES.contains(&first.as_str())) {
        return true;
    }
    // The last two parts of the path are the function and the class that it belongs to; those
    // before are name spaces.
    let said: Vec<_> = path.iter().rev().take(2).flat_map(|name| words(name)).collect();
    let knows = |list: &[&str], word: &str| list.contains(&word);
    said.iter().any(|word| knows(LOCKING, word))
        && said.iter().all(|word| knows(LOCKING, word) || knows(MANNER, word))
}

/// The parts of a C++ or C name, without template arguments and parameters.
pub fn plain_path(function: &str) -> Vec<String> {
    let mut depth = 0usize;
    let mut plain = String::new();
    for c in without_self_type(&function.replace("(anonymous namespace)::", "")).chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            // Parameters, or what marks a clone.
            '(' | '[' if depth == 0 => break,
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    // A template's name begins with its return type.
    let name = plain.trim().rsplit(' ').next().unwrap_or_default();
    name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Rust's `<type>::method` and `<type as trait>::method` as `type::method`.
fn without_self_type(function: &str) -> String {
    let Some(inner) = function.strip_prefix('<') else { return function.to_owned() };
    let mut depth = 1usize;
    let end = inner.char_indices().find(|(_, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let Some((end, _)) = end else { return function.to_owned() };
    let of = inner[..end].split(" as ").next().unwrap_or_default();
    of.to_owned() + &inner[end + 1..]
}

/// The words of a name such as `rw_pr_wrlock` or `ScopedRWLock`, in lower case, without suffixes
/// that a compiler appended.
pub fn words(name: &str) -> Vec<String> {
    let name = name.split('.').next().unwrap_or_default();
    let mut words = vec![String::new()];
    let chars: Vec<char> = name.chars().collect();
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let next_is_lower = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || (next_is_lower && before.is_some_and(char::is_uppercase)));
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty() && !word.chars().all(|c| c.is_ascii_digit()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_only_that_they_lock() {
        for wrapper in [
            "pthread_mutex_lock",
            "__gthread_mutex_lock",
            "std::mutex::lock()",
            "std::unique_lock<std::mutex>::lock()",
            "std::lock_guard<std::mutex>::lock_guard(std::mutex&)",
            "void std::condition_variable::wait<f(int)::{lambda()#1}>(std::unique_lock<std::mutex>&)",
            "boost::unique_lock<boost::mutex>::lock()",
            "kyotocabinet::Mutex::lock()",
            "kyotocabinet::ScopedRWLock::ScopedRWLock(kyotocabinet::RWLock*, bool)",
            "inline_mysql_mutex_lock",
            "psi_rwlock_rdlock",
            "rw_pr_wrlock",
            "my_mutex_lock.part.0",
            "apr_thread_mutex_lock",
            "uv_mutex_lock",
            "SDL_LockMutex",
            "SDL_CreateMutex",
            "inline_mysql_mutex_init",
            "Mutex::Mutex()",
            "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
            "<parking_lot::raw_mutex::RawMutex as lock_api::RawMutex>::lock_slow",
            "parking_lot_core::parking_lot::park",
        ] {
            assert!(only_locks(wrapper), "{wrapper}");
        }
    }

    #[test]
    fn names_that_say_what_is_locked() {
        for wanted in [
            "main",
            "item_lock",
            "Cache::lock()",
            "Cache::get(std::mutex&)",
            "tc_acquire_table",
            "threads_init",
            "item_lock_init",
            "(anonymous namespace)::Pool::wait()",
            "kyotocabinet::CacheDB::accept(char const*, unsigned long)",
            "Queue<std::lock_guard<std::mutex> >::push()",
            "worker::{lambda()#1}::operator()() const",
        ] {
            assert!(!only_locks(wanted), "{wanted}");
        }
    }

    #[test]
    fn the_innermost_that_tells() {
        let frame = |module: &str, function: Option<&str>| Frame {
            module: module.into(),
            address: 0,
            function: function.map(str::to_owned),
            offset: None,
            file: None,
            line: None,
        };
        let chain = [
            frame("libstdc++.so.6", None),
            frame("prog", Some("Mutex::lock()")),
            frame("prog", None),
            frame("prog", Some("main")),
        ];
        assert_eq!(first_informative(chain.iter()), Some(2));
        assert_eq!(first_informative(chain[..2].iter()), Some(0));
        assert_eq!(first_informative([].iter()), None);
    }

    #[test]
    fn paths_are_without_arguments() {
        assert_eq!(plain_path("void a::B<C<int> >::f<D>(int (*)(long)) const"), ["a", "B", "f"]);
        assert_eq!(plain_path("(anonymous namespace)::g()"), ["g"]);
        assert_eq!(
            plain_path("<a::B<C> as d::E<F>>::f::{closure#0}"),
            ["a", "B", "f", "{closure#0}"]
        );
        assert_eq!(plain_path("<a::B<C>>::f"), ["a", "B", "f"]);
    }
}
