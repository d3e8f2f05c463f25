//! Real servers and a real program under load: with three locks for some seconds, with every other
//! for as long in `make test-deep`, and with three for five minutes in `make soak`.
//!
//! `cargo test -p manycore-tests --test soak --release` is the short form. [`manycore_tests::soak`]
//! describes the checks.

use std::env;
use std::io::Write;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use manycore_tests::preload;
use manycore_tests::soak::launch::Launch;
use manycore_tests::soak::mariadb::transfers::Transfers;
use manycore_tests::soak::mariadb::{self, Database, Template};
use manycore_tests::soak::{Crowd, Result, kyoto, memcached};

/// How long the short form keeps each program under load.
const SHORT: Duration = Duration::from_secs(1);

/// The duration of the long form, in seconds, unless this variable says otherwise.
const LONG_SECONDS: u64 = 300;
const LONG_VARIABLE: &str = "MANYCORE_SOAK_SECONDS";

fn template() -> Result<&'static Template> {
    static TEMPLATE: LazyLock<Result<Template>> = LazyLock::new(Template::make);
    TEMPLATE.as_ref().map_err(Clone::clone)
}

fn mariadb(lock: &str, length: Duration) {
    let soak = || mariadb::soak(template()?, Launch::Lock(lock), length);
    report("MariaDB", lock, soak);
}

fn memcached(lock: &str, crowd: Crowd, length: Duration) {
    report("memcached", lock, || memcached::soak(Launch::Lock(lock), crowd, length));
}

fn kccachetest(lock: &str, crowd: Crowd, length: Duration) {
    report("kccachetest", lock, || kyoto::soak(Launch::Lock(lock), crowd, length));
}

/// Fails the test if the run failed. If it succeeded, prints the result directly, because the
/// harness shows only the output of failing tests.
#[track_caller]
fn report(program: &str, lock: &str, soak: impl FnOnce() -> Result<String>) {
    // If the command has to be built, that happens before the soak's time begins.
    preload::command();
    let start = Instant::now();
    match soak() {
        Ok(account) => {
            let seconds = start.elapsed().as_secs();
            _ = writeln!(std::io::stderr(), "{program} under {lock}, {seconds} s: {account}");
        }
        Err(failure) => panic!("{program} under {lock}: {failure}"),
    }
}

/// A test a lock, named as the lock's type.
#[allow(non_snake_case, reason = "named as the locks are")]
mod short {
    use super::*;
    use manycore::LockInfo;
    use manycore::lock::{self, PlainLock};

    fn soak(lock: &LockInfo) {
        let crowd = if lock.order.hands_over() { Crowd::Small } else { Crowd::Large };
        kccachetest(lock.name, crowd, SHORT);
        memcached(lock.name, crowd, SHORT);
        if crowd == Crowd::Large {
            mariadb(lock.name, SHORT);
        }
    }

    macro_rules! a_test_a_lock {
        ($($lock:ident),* $(,)?) => {
            $(
                #[test]
                fn $lock() {
                    soak(&<lock::$lock as PlainLock>::INFO);
                }
            )*
        };
    }
    a_test_a_lock!(Futex, Adaptive, Mcs);

    macro_rules! every_lock {
        ($($lock:ident),* $(,)?) => {
            const LOCKS: &[&LockInfo] = &[$(&<lock::$lock as PlainLock>::INFO),*];
        };
    }
    manycore::for_each_inline_lock!(every_lock);

    #[test]
    #[ignore = "takes a minute: make test-deep"]
    fn every_lock() {
        LOCKS.iter().for_each(|lock| soak(lock));
    }
}

/// Each lock that is promised to pass, with each program.
mod long {
    use super::*;

    fn length() -> Duration {
        let asked = env::var(LONG_VARIABLE).ok().filter(|seconds| !seconds.is_empty());
        let seconds = asked.map(|seconds| match seconds.parse() {
            Ok(seconds @ 1..) => seconds,
            _ => panic!("{LONG_VARIABLE}={seconds}: a number of seconds is needed"),
        });
        Duration::from_secs(seconds.unwrap_or(LONG_SECONDS))
    }

    macro_rules! a_test_a_program {
        ($($lock:ident: $name:literal)*) => {
            $(
                mod $lock {
                    use super::Crowd;

                    #[test]
                    #[ignore = "takes minutes: make soak"]
                    fn mariadb() {
                        super::super::mariadb($name, super::length());
                    }

                    #[test]
                    #[ignore = "takes minutes: make soak"]
                    fn memcached() {
                        super::super::memcached($name, Crowd::Large, super::length());
                    }

                    #[test]
                    #[ignore = "takes minutes: make soak"]
                    fn kccachetest() {
                        super::super::kccachetest($name, Crowd::Large, super::length());
                    }
                }
            )*
        };
    }
    a_test_a_program! {
        adaptive: "adaptive"
        hybrid: "hybrid"
        futex: "futex"
    }
}

/// The soak can fail.
mod notices {
    use super::*;
    use manycore_tests::toolchain::Workshop;

    fn memcached_with(fault: &str) -> String {
        let definition = format!("-DFAULT_{fault}");
        let library =
            Workshop::new().shared_library("faulty", &fault.to_lowercase(), &[&definition]);
        // If no lock excludes threads from each other, they may still not meet within a second, on
        // a machine that is busy with other tests.
        let soak = || memcached::soak(Launch::Library(&library), Crowd::Large, SHORT);
        let failure = (0..10).find_map(|_| soak().err());
        failure.expect("one of ten soaks of a broken library fails").to_string()
    }

    /// Servers take it differently: some crash.
    #[test]
    fn a_lock_that_excludes_nobody() {
        let failure = memcached_with("EXCLUDES_NOBODY");
        assert!(!failure.contains("start"), "{failure}");
    }

    #[test]
    fn a_leak() {
        let failure = memcached_with("LEAKS");
        assert!(failure.contains("growing descriptors"), "{failure}");
    }

    #[test]
    fn lost_updates() {
        let template = template().unwrap();
        let database = Database::start(template, Launch::Plain).unwrap();
        let update = |sql| database.query("soak", sql).unwrap();
        let transfers = Transfers::new(&database);
        update("UPDATE counter SET value = 7 WHERE id = 0");
        transfers.check(7).unwrap();
        let uncounted = transfers.check(8).unwrap_err().to_string();
        assert!(uncounted.contains("7 transfers are counted, 8"), "{uncounted}");
        update("UPDATE account SET balance = balance - 3 WHERE id = 1");
        let lost = transfers.check(7).unwrap_err().to_string();
        assert!(lost.contains("the balances sum to 49997"), "{lost}");
        database.stop().unwrap();
    }
}

/// The soak itself, on the unchanged program: a failure here is not a lock's fault.
#[test]
#[ignore = "for authors who change the soak"]
fn glibc() {
    let length = Duration::from_secs(env::var(LONG_VARIABLE).map_or(20, |s| s.parse().unwrap()));
    kccachetest("glibc", Crowd::Large, length);
    memcached("glibc", Crowd::Large, length);
    mariadb("glibc", length);
}
