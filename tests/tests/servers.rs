//! Real network programs with their system calls moved: they send the same bytes, end in the same
//! way, and their calls are in fact moved.
//!
//! `cargo test -p manycore-tests --test servers --release` is a short selection.
//! `MANYCORE_SERVERS=all` runs every program under every mechanism, `MANYCORE_SERVERS=uring` under
//! that one, and `MANYCORE_SOAK_SECONDS` sets the time of servers under load. `make soak-servers`
//! sets both.

use std::collections::BTreeMap;
use std::env;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use manycore_tests::moved::Counted;
use manycore_tests::servers::web::{Kind, PAGE_SUM, Site};
use manycore_tests::servers::{body, stores, streams, succeeds, trace};
use manycore_tests::soak::drive::{Account, Worker, drive};
use manycore_tests::soak::launch::Launch;
use manycore_tests::soak::mariadb::{self, Template};
use manycore_tests::soak::process::Process;
use manycore_tests::soak::{Failure, Result, ensure};
use manycore_tests::toolchain::Workshop;

const MECHANISMS: [&str; 4] = ["in-place", "thread", "pool", "uring"];

/// The mechanisms of the short form, in which each program runs under one mechanism.
fn mechanisms(short: &'static str) -> Vec<&'static str> {
    let asked = env::var("MANYCORE_SERVERS").unwrap_or_default();
    match asked.as_str() {
        "" => vec![short],
        "all" => MECHANISMS.to_vec(),
        name => match MECHANISMS.into_iter().find(|mechanism| *mechanism == name) {
            Some(one) => vec![one],
            None => panic!("MANYCORE_SERVERS={name}: all, or one of {MECHANISMS:?}"),
        },
    }
}

/// Does the same without the library and under mechanisms. A failure without the library is not the
/// library's fault, and is reported as such.
#[track_caller]
fn same(program: &str, short: &'static str, run: impl Fn(Launch) -> Result<()>) {
    if let Err(failure) = run(Launch::Plain) {
        panic!("{program} as it is: {failure}");
    }
    let start = Instant::now();
    for mechanism in mechanisms(short) {
        if let Err(failure) = run(Launch::Calls(mechanism)) {
            panic!("{program} under {mechanism}: {failure}");
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    _ = writeln!(std::io::stderr(), "{program} under {:?}: {seconds:.1} s", mechanisms(short));
}

/// A site, from which curl, launched like the server, fetches several files at a time.
fn site(kind: Kind) -> impl Fn(Launch) -> Result<()> {
    move |launch| {
        let site = Site::start(kind, launch)?;
        let fetched = body::fetch_all(launch, site.port(), site.place())
            .and_then(|()| (0..40).try_for_each(|_| small(site.port())));
        fetched.map_err(|failure| site.process().blame(failure))?;
        site.stop(kind)
    }
}

/// A small file over a connection of its own.
fn small(port: u16) -> Result<()> {
    let (name, length) = body::FILES[0];
    let answer = get(port, name).map_err(Failure::because(format!("GET /{name}")))?;
    let (_, got) = split(&answer);
    ensure(got == body::contents(length), || format!("{name} arrives with other bytes"))
}

fn get(port: u16, name: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(format!("GET /{name} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// An answer's head and body.
fn split(answer: &[u8]) -> (&[u8], &[u8]) {
    let end =
        answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
    answer.split_at(end)
}

#[test]
fn apache() {
    same("Apache", "thread", |launch| {
        site(Kind::Apache)(launch)?;
        let site = Site::start(Kind::Apache, launch)?;
        for _ in 0..40 {
            page(site.port()).map_err(|failure| site.process().blame(failure))?;
        }
        site.stop(Kind::Apache)
    });
}

/// The page that loops.
fn page(port: u16) -> Result<()> {
    let answer = get(port, "loop.php").map_err(Failure::because("the page"))?;
    let (_, sum) = split(&answer);
    ensure(sum == PAGE_SUM.as_bytes(), || format!("the page is {:?}", String::from_utf8_lossy(sum)))
}

#[test]
fn nginx() {
    same("nginx", "pool", site(Kind::Nginx));
}

#[test]
fn python_http_server() {
    same("http.server", "thread", site(Kind::Python));
}

#[test]
fn python_asyncio() {
    same("asyncio", "uring", site(Kind::Asyncio));
}

#[test]
fn java() {
    same("HttpServer", "pool", site(Kind::Java));
}

#[test]
fn redis() {
    same("Redis", "pool", stores::redis);
}

#[test]
fn memcached() {
    same("memcached", "uring", |launch| stores::memcached(launch, load_length() / 2));
}

/// The sums are right, the tables are intact, and the server's memory does not grow.
#[test]
fn mariadb() {
    let template = Template::make().unwrap_or_else(|failure| panic!("{failure}"));
    same("MariaDB", "pool", |launch| mariadb::soak(&template, launch, load_length() / 2).map(drop));
}

#[test]
fn postgresql() {
    same("PostgreSQL", "thread", stores::postgres);
}

#[test]
fn iperf3() {
    same("iperf3", "pool", streams::iperf3);
}

#[test]
fn nuttcp() {
    same("nuttcp", "thread", streams::nuttcp);
}

/// At least this share of the calls on sockets that Apache's children make is executed by threads
/// other than their own.
const MOVED_MIN: f64 = 0.95;

/// Calls that strace has to see during 30 requests: each takes an accept4, a shutdown, a close, and
/// more.
const SEEN_MIN: u64 = 150;

/// The calls that the children's own threads make while 30 pages are served.
fn own_calls(launch: Launch) -> Result<trace::Seen> {
    let site = Site::start(Kind::Apache, launch)?;
    let load = || (0..30).try_for_each(|_| page(site.port()));
    // The server listens before it has children. When it has answered for a while it has all of
    // them.
    load()?;
    thread::sleep(Duration::from_secs(1));
    if launch != Launch::Plain && site.process().stderr().contains("system calls go to the pool") {
        _ = writeln!(std::io::stderr(), "the kernel refuses io_uring: this is the pool");
    }
    let seen = trace::watch(site.process().id(), site.place(), load)?;
    site.stop(Kind::Apache)?;
    Ok(seen)
}

#[track_caller]
fn moves(mechanism: &'static str) {
    static PLAIN: LazyLock<Result<trace::Seen>> = LazyLock::new(|| own_calls(Launch::Plain));
    let counted = Counted::new();
    let launch = Launch::Counted(mechanism, counted.path());
    let seen = PLAIN.clone().and_then(|plain| Ok((plain, own_calls(launch)?)));
    let (plain, moved) = seen.unwrap_or_else(|failure| panic!("under {mechanism}: {failure}"));
    assert!(plain.own() >= SEEN_MIN, "strace sees too little: {plain:?}");
    let share = 1.0 - moved.own() as f64 / plain.own() as f64;
    _ = writeln!(
        std::io::stderr(),
        "Apache under {mechanism}: {share:.3} moved; {plain:?}; {moved:?}"
    );
    assert!(share >= MOVED_MIN, "{share:.3} of the calls are moved: {plain:?}, {moved:?}");
    // For a ring, strace sees only those calls that go to the pool.
    let seen = mechanism == "uring" || moved.others() >= SEEN_MIN;
    assert!(seen, "they are made by nobody: {plain:?}, {moved:?}");
    // The library says the same, of the whole run.
    let calls = counted.calls();
    for name in trace::CALLS.split(',') {
        let function = calls.functions.iter().find(|function| function.name == name);
        let function = function.unwrap_or_else(|| panic!("{name} is not counted: {calls:?}"));
        // A child that has to end closes its descriptors in the handler, and a file lock chooses
        // the next child that accepts: neither is a call of a request.
        let apart = |reason| function.reasons.get(reason).copied().unwrap_or(0);
        let locks = if name == "fcntl" { apart("not known to be movable") } else { 0 };
        let others = locks + apart("in a handler that interrupted a call");
        let on_sockets = function.moved + function.bypassed + function.in_place - others;
        let share = function.moved as f64 / on_sockets as f64;
        assert!(share >= MOVED_MIN, "{share:.3} of {name} are moved: {function:?}");
    }
}

mod apaches_calls_are_made_by_other_threads {
    #[test]
    fn thread() {
        super::moves("thread");
    }

    #[test]
    fn pool() {
        super::moves("pool");
    }

    #[test]
    fn uring() {
        super::moves("uring");
    }

    /// The test can fail: in place nothing moves.
    #[test]
    #[should_panic(expected = "of the calls are moved")]
    fn but_not_in_place() {
        super::moves("in-place");
    }
}

/// Ten thousand connections that are open and idle take few threads, and little memory each.
#[test]
fn ten_thousand_connections_cost_little() {
    let program = Workshop::of("programs/servers").c("idle", &[]);
    let run = |launch: Launch| {
        let said = succeeds(launch, program.path(), &["10000"])?;
        let number = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|number| number.trim().parse::<i64>().ok())
        };
        let both = number("threads").zip(number("bytes"));
        both.ok_or_else(|| Failure::new(format!("the program says: {said}")))
    };
    let seen = run(Launch::Plain).and_then(|plain| Ok((plain, run(Launch::Calls("pool"))?)));
    let ((_, plain), (threads, bytes)) = seen.unwrap_or_else(|failure| panic!("{failure}"));
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get() as i64);
    let more = bytes - plain;
    _ = writeln!(std::io::stderr(), "10000 connections: {threads} threads, {more} bytes each");
    // The program's own is one of them.
    assert!(threads - 1 <= cpus + 4, "{threads} threads on {cpus} CPUs");
    assert!(more < 200, "{more} bytes for an idle connection");
}

/// Clients that leave in the middle of a request, and children that are killed: the server still
/// answers.
#[test]
fn apache_survives_clients_and_children() {
    for mechanism in mechanisms("pool") {
        let site =
            Site::start(Kind::Apache, Launch::Calls(mechanism)).unwrap_or_else(|f| panic!("{f}"));
        let survived = survive(&site).map_err(|failure| site.process().blame(failure));
        survived.unwrap_or_else(|failure| panic!("under {mechanism}: {failure}"));
        site.stop(Kind::Apache).unwrap_or_else(|failure| panic!("under {mechanism}: {failure}"));
    }
}

/// Ends a child of the server, which has not reaped it: the number is the child's own. Returns when
/// the server has reaped it. A connection that the child takes before is lost, as it would be
/// without the library.
fn kill(child: rustix::process::Pid) -> rustix::io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let child = pidfd_open(child, PidfdFlags::empty())?;
    pidfd_send_signal(&child, Signal::KILL)?;
    poll(&mut [PollFd::new(&child, PollFlags::IN)], None).map(drop)
}

fn survive(site: &Site) -> Result<()> {
    let failed = |error: std::io::Error| Failure::new(format!("a client: {error}"));
    for round in 0..10 {
        // Sends half of a request, or does not read the answer, and leaves.
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, site.port())).map_err(failed)?;
        let text = if round % 2 == 0 { "GET /lar" } else { "GET /large.bin HTTP/1.0\r\n\r\n" };
        stream.write_all(text.as_bytes()).map_err(failed)?;
        thread::sleep(Duration::from_millis(20));
        drop(stream);
        page(site.port())?;
    }
    for _ in 0..3 {
        let children = trace::children(site.process().id())?;
        let child = children.first().and_then(|child| child.parse().ok());
        let child = child.and_then(rustix::process::Pid::from_raw);
        let child = child.ok_or_else(|| Failure::new("the server has no children"))?;
        kill(child).map_err(Failure::because("kill a child"))?;
        (0..5).try_for_each(|_| page(site.port()))?;
    }
    Ok(())
}

/// How long a server stays under load: seconds of `MANYCORE_SOAK_SECONDS`, or this.
const LOAD_SECONDS: u64 = 4;

fn load_length() -> Duration {
    let asked = env::var("MANYCORE_SOAK_SECONDS").ok().filter(|seconds| !seconds.is_empty());
    let seconds = asked.map(|seconds| match seconds.parse() {
        Ok(seconds @ 1..) => seconds,
        _ => panic!("MANYCORE_SOAK_SECONDS={seconds}: a number of seconds is needed"),
    });
    Duration::from_secs(seconds.unwrap_or(LOAD_SECONDS))
}

/// Clients come and go at servers of five kinds. The servers use no more resources than unchanged
/// ones.
#[test]
fn nothing_leaks_under_mixed_load() {
    let length = load_length();
    let plain = mixed(Launch::Plain, length).unwrap_or_else(|f| panic!("as they are: {f}"));
    for mechanism in mechanisms("pool") {
        let moved = mixed(Launch::Calls(mechanism), length);
        let moved = moved.unwrap_or_else(|failure| panic!("under {mechanism}: {failure}"));
        for (name, moved) in &moved {
            let served: u64 = moved.done.iter().sum();
            let account = format!("{name} under {mechanism}, {served} requests: {}", moved.course);
            _ = writeln!(std::io::stderr(), "{account}");
            let flat = moved.course.expect_flat_beside(&plain[name].course);
            flat.unwrap_or_else(|failure| panic!("{account}: {failure}"));
        }
    }
}

const KINDS: [Kind; 4] = [Kind::Apache, Kind::Asyncio, Kind::Python, Kind::Java];

/// All of these servers at once, and PostgreSQL. Each has two clients that make a connection for
/// each request.
fn mixed(launch: Launch, length: Duration) -> Result<BTreeMap<String, Account>> {
    let sites = KINDS.map(|kind| Ok((kind, Site::start(kind, launch)?)));
    let sites = sites.into_iter().collect::<Result<Vec<_>>>()?;
    let postgres = stores::Postgres::start(launch)?;
    let accounts = thread::scope(|scope| {
        let sites = sites.iter().map(|(kind, site)| {
            let request = move || small(site.port());
            scope.spawn(move || (format!("{kind:?}"), driven(site.process(), length, request)))
        });
        let mut driven_ones: Vec<_> = sites.collect();
        driven_ones.push(scope.spawn(|| {
            let request = || postgres.query();
            ("PostgreSQL".to_owned(), driven(postgres.process(), length, request))
        }));
        let joined = driven_ones.into_iter().map(|thread| thread.join().expect("no panic"));
        joined.map(|(name, account)| Ok((name, account?))).collect::<Result<BTreeMap<_, _>>>()
    })?;
    for (kind, site) in sites {
        site.stop(kind)?;
    }
    postgres.stop()?;
    Ok(accounts)
}

/// Two clients make requests for this long.
fn driven(
    server: &Process,
    length: Duration,
    request: impl Fn() -> Result<()> + Sync,
) -> Result<Account> {
    let clients = ["client 1", "client 2"].map(|name| {
        Worker::new(name, |shift: &_| {
            while !shift.is_over() {
                request()?;
                shift.did(1);
            }
            Ok(())
        })
    });
    drive(server, length, clients.into()).map_err(|failure| server.blame(failure))
}
