//! A web server's sessions: looked up at every request, prolonged by some, and thrown out when they
//! are old, without a lock that all requests take.
//!
//!     cargo run --release -p manycore --example session_store
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an ordinary program: the rules for algorithms are not for it"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use manycore::collections::HashMap;

#[derive(Clone)]
struct Session {
    user: String,
    expires: Instant,
}

const LASTS: Duration = Duration::from_millis(if cfg!(miri) { 1 } else { 20 });
/// Fewer in the interpreter, which takes a thousand times as long.
const REQUESTS: u32 = if cfg!(miri) { 40 } else { 50_000 };

/// The user of a session that has not expired; it lasts from now on.
fn user(sessions: &HashMap<String, Session>, token: &str) -> Option<String> {
    let now = Instant::now();
    // A reference that stays valid as long as the guard: a look-up copies nothing.
    let sessions = sessions.pin();
    let session = sessions.get(token).filter(|session| session.expires > now)?;
    if session.expires - now < LASTS / 2 {
        // Values never change; another takes this one's place, if it is still there.
        sessions.update(token, |session| Session { expires: now + LASTS, ..session.clone() });
    }
    Some(session.user.clone())
}

fn main() {
    let sessions = HashMap::<String, Session>::new();
    let (logins, served) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads = (0..3).map(|thread| {
            let (sessions, logins, served) = (&sessions, &logins, &served);
            scope.spawn(move || {
                for request in 0..REQUESTS {
                    let name = format!("user {}", (request * 7 + thread) % 100);
                    let token = format!("token of {name}");
                    match user(sessions, &token) {
                        Some(found) => {
                            assert_eq!(found, name);
                            served.fetch_add(1, Ordering::Relaxed); // Relaxed: a count
                        }
                        None => {
                            let expires = Instant::now() + LASTS;
                            sessions.insert(token, Session { user: name, expires });
                            logins.fetch_add(1, Ordering::Relaxed); // Relaxed: a count
                        }
                    }
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        scope.spawn(|| {
            // Relaxed: only says when to stop.
            while !is_over.load(Ordering::Relaxed) {
                let now = Instant::now();
                // Each session is checked and removed in one step: a session that was prolonged
                // meanwhile stays.
                sessions.retain(|_token, session| session.expires > now);
                std::thread::sleep(LASTS);
            }
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        is_over.store(true, Ordering::Relaxed); // Relaxed: as above
    });
    println!(
        "{} requests, {} logins, {} sessions",
        served.into_inner(),
        logins.into_inner(),
        sessions.len()
    );
}

#[test]
fn runs() {
    main();
}
