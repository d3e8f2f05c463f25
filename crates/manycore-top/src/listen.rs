//! `manycore top --listen`: the latest metrics for each client, by HTTP.
//!
//! It reads requests of at most [`REQUEST_MAX`] bytes, in at most [`PATIENCE`], on
//! [`CONNECTIONS_MAX`] connections at a time; others wait in the kernel's queue. There are two
//! pages, `/metrics` and `/`, and nothing that a request could change.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use manycore_launch::failure::{Failure, Result};

use crate::metrics::{Format, Metrics};

const REQUEST_MAX: usize = 8 * 1024;
const CONNECTIONS_MAX: usize = 4;
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause after a connection could not be accepted: there may be no file descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads the value of `--listen`: `ADDRESS:PORT`, or a port of this machine's own address.
pub fn address(text: &str) -> std::result::Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "neither a port nor ADDRESS:PORT, as 9464 or [::1]:9464".to_owned())
}

/// The readable data, as of the last picture.
#[derive(Debug, Default)]
struct Page {
    open_metrics: String,
    prometheus: String,
}

/// Answers requests until the command ends.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    page: Arc<Mutex<Arc<Page>>>,
}

impl Listener {
    /// Begins to listen.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let cannot = |error: io::Error| {
            Failure::bad_input(
                format!("cannot listen at {address}: {error}"),
                "let --listen name a free port and an address of this machine",
            )
        };
        let listener = TcpListener::bind(address).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let page = Arc::<Mutex<Arc<Page>>>::default();
        for _ in 0..CONNECTIONS_MAX {
            let (listener, page) = (listener.try_clone().map_err(cannot)?, Arc::clone(&page));
            thread::Builder::new()
                .name("listen".into())
                .spawn(move || accept(&listener, &page))
                .map_err(cannot)?;
        }
        Ok(Self { address, page })
    }

    /// The address. If port 0 was requested, its port was chosen among the free ones.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows these from now on.
    pub fn show(&self, metrics: &Metrics) {
        let page = Page {
            open_metrics: metrics.text(Format::OpenMetrics),
            prometheus: metrics.text(Format::Prometheus),
        };
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(page);
    }
}

fn accept(listener: &TcpListener, page: &Mutex<Arc<Page>>) {
    loop {
        let Ok((mut stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        // The other end has gone, or is too slow: it connects again.
        let _ = answer(&mut stream, page);
    }
}

fn answer(stream: &mut TcpStream, page: &Mutex<Arc<Page>>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = read(stream)?;
    let page = Arc::clone(&page.lock().unwrap_or_else(PoisonError::into_inner));
    let reply = reply(&request, &page);
    stream.write_all(reply.head().as_bytes())?;
    if reply.has_body {
        stream.write_all(reply.body.as_bytes())?;
    }
    stream.flush()
}

/// The head of a request; or its received part, if it was too long or took too long.
fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + PATIENCE;
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    while request.len() < REQUEST_MAX && !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        // No time at all would be for ever.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut part)? {
            0 => break,
            n => request.extend_from_slice(&part[..n]),
        }
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(request)
}

struct Reply<'a> {
    status: &'static str,
    content_type: &'static str,
    body: &'a str,
    has_body: bool,
}

impl Reply<'_> {
    fn head(&self) -> String {
        format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        )
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn reply<'a>(request: &[u8], page: &'a Page) -> Reply<'a> {
    let refused = |status, body| Reply { status, content_type: PLAIN, body, has_body: true };
    let text = String::from_utf8_lossy(request);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return match request.len() >= REQUEST_MAX {
            true => refused("431 Request Header Fields Too Large", "The request is too long.\n"),
            false => refused("400 Bad Request", "This is no whole request.\n"),
        };
    };
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else {
        return refused("400 Bad Request", "The first line is no request.\n");
    };
    if !version.starts_with("HTTP/1.") {
        return refused("505 HTTP Version Not Supported", "This is for HTTP/1.\n");
    }
    let has_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return refused("405 Method Not Allowed", "There is only something to GET.\n"),
    };
    match target.split('?').next().unwrap_or_default() {
        "/metrics" => Reply { has_body, ..metrics(lines, page) },
        "/" => Reply { has_body, ..refused("200 OK", "manycore top: see /metrics\n") },
        _ => refused("404 Not Found", "There is /metrics.\n"),
    }
}

/// The metrics in the format that the client accepts, or in the older one.
fn metrics<'a, 'h>(headers: impl Iterator<Item = &'h str>, page: &'a Page) -> Reply<'a> {
    let accepts = |header: &str| {
        let (name, value) = header.split_once(':').unwrap_or_default();
        name.eq_ignore_ascii_case("accept") && value.contains("application/openmetrics-text")
    };
    let mut headers = headers;
    let (content_type, body) = match headers.any(accepts) {
        true => ("application/openmetrics-text; version=1.0.0; charset=utf-8", &page.open_metrics),
        false => ("text/plain; version=0.0.4; charset=utf-8", &page.prometheus),
    };
    Reply { status: "200 OK", content_type, body, has_body: true }
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use super::*;
    use crate::metrics::tests::metrics;

    fn listener() -> Listener {
        let listener = Listener::open(address("0").unwrap()).unwrap();
        listener.show(&metrics());
        listener
    }

    fn ask(listener: &Listener, request: &str) -> String {
        let mut stream = TcpStream::connect(listener.address()).unwrap();
        // It may be refused before all of it has come.
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        String::from_utf8(reply).unwrap()
    }

    #[test]
    fn addresses_are_this_machines_own_unless_others_are_named() {
        assert_eq!(address("9464").unwrap().to_string(), "127.0.0.1:9464");
        assert_eq!(address("0.0.0.0:1").unwrap().to_string(), "0.0.0.0:1");
        assert!(address("somewhere").is_err() && address("65536").is_err());
        let taken = listener();
        let why = Listener::open(taken.address()).unwrap_err().to_string();
        assert!(why.contains("cannot listen at 127.0.0.1:") && why.contains("free port"), "{why}");
    }

    #[test]
    fn metrics_come_in_the_format_that_is_asked_for() {
        let listener = listener();
        let plain = ask(&listener, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(plain.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
        let (_, body) = plain.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, metrics().text(Format::Prometheus));
        let open =
            "GET /metrics?x HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
        let open = ask(&listener, open);
        assert!(
            open.contains("Content-Type: application/openmetrics-text")
                && open.ends_with("# EOF\n")
        );
        let head = ask(&listener, "HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.contains("Content-Length: ") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[test]
    fn other_requests_are_refused() {
        let listener = listener();
        let status = |request: &str| {
            let reply = ask(&listener, request);
            reply.split(' ').nth(1).unwrap_or_default().to_owned()
        };
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "200");
        assert_eq!(status("GET /../etc/passwd HTTP/1.1\r\n\r\n"), "404");
        assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), "405");
        assert_eq!(status("GET /metrics HTTP/2\r\n\r\n"), "505");
        assert_eq!(status("hello\r\n\r\n"), "400");
        assert_eq!(status("GET /metrics HTTP/1.1\r\n"), "400");
        assert_eq!(
            status(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(REQUEST_MAX - 6))),
            "431"
        );
    }

    #[test]
    fn who_says_nothing_keeps_nobody_else_waiting_for_long() {
        let listener = listener();
        let silent: Vec<_> = (0..2 * CONNECTIONS_MAX)
            .map(|_| TcpStream::connect(listener.address()).unwrap())
            .collect();
        let begun = Instant::now();
        assert!(ask(&listener, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
        assert!(begun.elapsed() < 15 * PATIENCE, "{:?}", begun.elapsed());
        drop(silent);
    }

    #[test]
    fn whatever_is_sent_gets_an_answer() {
        let page = Page::default();
        let valid = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n";
        manycore_fuzz::texts("a request", &[valid], |text| {
            _ = reply(text.as_bytes(), &page);
        });
    }
}
