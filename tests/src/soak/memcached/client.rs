//! A client that checks each answer: memcached's text protocol, a batch of requests at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::soak::drive::Shift;
use crate::soak::{Failure, Result, ensure};

// Relaxed throughout: counts, which are read after their writers have been joined.

const COUNTERS: usize = 4;
const KEYS: u32 = 2_000;
const VALUE_MAX: usize = 2_000;
/// Requests that are sent before their answers are read.
const BATCH: usize = 16;
/// Batches on one connection.
const BATCHES: usize = 500;

/// What the server has acknowledged to all clients together.
#[derive(Debug, Default)]
pub struct Tally {
    /// The increments of each counter.
    pub increments: [AtomicU64; COUNTERS],
    /// Values set.
    pub sets: AtomicU64,
    /// Values asked for, found or not.
    pub gets: AtomicU64,
}

enum Request {
    Set(u32),
    Get(u32),
    Delete(u32),
    Increment(usize),
}

/// Sets the counters to zero, and each key to a value.
pub fn prepare(port: u16) -> Result<()> {
    let mut client = Client::connect(port)?;
    for number in 0..COUNTERS {
        client.send(&format!("set counter{number} 0 0 1\r\n0\r\n"))?;
        client.expect("STORED")?;
    }
    for key in 0..KEYS {
        client.send(&set(key))?;
        client.expect("STORED")?;
    }
    Ok(())
}

/// How many values [`prepare`] sets.
pub fn prepared() -> u64 {
    COUNTERS as u64 + u64::from(KEYS)
}

/// Sends requests until the shift is over; returns their number as the amount of work.
pub fn work(port: u16, tally: &Tally, shift: &Shift) -> Result<()> {
    while !shift.is_over() {
        let mut client = Client::connect(port)?;
        for _ in 0..BATCHES {
            client.batch(tally)?;
            shift.did(BATCH as u64);
            if shift.is_over() {
                break;
            }
        }
    }
    Ok(())
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    requests: TcpStream,
    answers: BufReader<TcpStream>,
    /// What each counter was when this client last saw it.
    seen: [u64; COUNTERS],
}

impl Client {
    /// Connects to a server on the loopback device.
    pub fn connect(port: u16) -> Result<Self> {
        let connect = || -> std::io::Result<Self> {
            let requests = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            requests.set_nodelay(true)?;
            let answers = BufReader::new(requests.try_clone()?);
            Ok(Self { requests, answers, seen: [0; COUNTERS] })
        };
        connect().map_err(Failure::because("cannot connect"))
    }

    /// What a counter stands at.
    pub fn counter(&mut self, number: usize) -> Result<u64> {
        self.send(&format!("get counter{number}\r\n"))?;
        let line = self.line()?;
        ensure(line.starts_with("VALUE "), || format!("no counter {number}: {line}"))?;
        let value = self.line()?;
        self.expect("END")?;
        // memcached pads a counter with spaces to the greatest width that it has had.
        value.trim().parse().map_err(Failure::because(format!("counter {number}: {value}")))
    }

    /// One of the server's statistics.
    pub fn statistic(&mut self, name: &str) -> Result<u64> {
        self.send("stats\r\n")?;
        let mut found = None;
        loop {
            let line = self.line()?;
            if line == "END" {
                break;
            }
            let value = line.strip_prefix("STAT ").and_then(|line| line.strip_prefix(name));
            found = found.or(value.and_then(|value| value.trim().parse().ok()));
        }
        found.ok_or_else(|| Failure::new(format!("the server keeps no {name}")))
    }

    fn batch(&mut self, tally: &Tally) -> Result<()> {
        let requests: Vec<_> = (0..BATCH).map(|_| Request::draw()).collect();
        self.send(&requests.iter().map(Request::text).collect::<String>())?;
        for request in &requests {
            self.answer(request, tally)?;
        }
        Ok(())
    }

    fn answer(&mut self, request: &Request, tally: &Tally) -> Result<()> {
        match request {
            Request::Set(_) => {
                self.expect("STORED")?;
                tally.sets.fetch_add(1, Ordering::Relaxed);
            }
            Request::Get(key) => {
                self.value(*key)?;
                tally.gets.fetch_add(1, Ordering::Relaxed);
            }
            Request::Delete(_) => {
                let line = self.line()?;
                let expected = ["DELETED", "NOT_FOUND"].contains(&line.as_str());
                ensure(expected, || format!("a deletion answers {line}"))?;
            }
            Request::Increment(number) => {
                let line = self.line()?;
                let value = line.parse().map_err(Failure::because(format!("incr: {line}")))?;
                let before = std::mem::replace(&mut self.seen[*number], value);
                ensure(value > before, || {
                    format!("counter {number} was {before}, and is {value} after an increment")
                })?;
                tally.increments[*number].fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// A value, or none. A value has to be one that was set under this key.
    fn value(&mut self, key: u32) -> Result<()> {
        let line = self.line()?;
        if line == "END" {
            return Ok(());
        }
        let length = line.strip_prefix(&format!("VALUE key{key} 0 "));
        let length = length.and_then(|length| length.parse::<usize>().ok());
        let length = length.ok_or_else(|| Failure::new(format!("get key{key}: {line}")))?;
        let mut data = vec![0; length + 2];
        self.answers.read_exact(&mut data).map_err(Failure::because("no answer"))?;
        data.truncate(length);
        ensure(belongs(key, &data), || {
            format!("key{key} has another's value: {}", String::from_utf8_lossy(&data))
        })?;
        self.expect("END")
    }

    fn send(&mut self, text: &str) -> Result<()> {
        self.requests.write_all(text.as_bytes()).map_err(Failure::because("cannot send"))
    }

    fn expect(&mut self, expected: &str) -> Result<()> {
        let line = self.line()?;
        ensure(line == expected, || format!("the server answers {line}, not {expected}"))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).map_err(Failure::because("no answer"))?;
        ensure(read > 0, || "the server has closed the connection".to_owned())?;
        Ok(line.trim_end().to_owned())
    }
}

impl Request {
    fn draw() -> Self {
        let key = fastrand::u32(..KEYS);
        match fastrand::u32(..100) {
            0..50 => Self::Get(key),
            50..75 => Self::Set(key),
            75..80 => Self::Delete(key),
            _ => Self::Increment(fastrand::usize(..COUNTERS)),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Set(key) => set(*key),
            Self::Get(key) => format!("get key{key}\r\n"),
            Self::Delete(key) => format!("delete key{key}\r\n"),
            Self::Increment(number) => format!("incr counter{number} 1\r\n"),
        }
    }
}

fn set(key: u32) -> String {
    let value = value(key, fastrand::u8(b'a'..=b'z'), fastrand::usize(..VALUE_MAX));
    format!("set key{key} 0 0 {}\r\n{value}\r\n", value.len())
}

/// `KEY LENGTH LLL...`: the letter L, LENGTH times.
fn value(key: u32, letter: u8, length: usize) -> String {
    format!("{key} {length} {}", char::from(letter).to_string().repeat(length))
}

/// Whether a value was made for this key, and is whole.
fn belongs(key: u32, data: &[u8]) -> bool {
    let letter = data.last().copied().unwrap_or(b' ');
    let text = std::str::from_utf8(data).unwrap_or_default();
    let length = text.split(' ').nth(1).and_then(|length| length.parse().ok());
    length.is_some_and(|length| text == value(key, letter, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_belong_to_their_keys() {
        assert!(belongs(7, value(7, b'x', 100).as_bytes()));
        assert!(belongs(7, value(7, b'x', 0).as_bytes()));
        assert!(!belongs(8, value(7, b'x', 100).as_bytes()));
        assert!(!belongs(7, &value(7, b'x', 100).as_bytes()[..50]));
        assert!(!belongs(7, b"7 3 xxy"));
        assert!(!belongs(7, b""));
    }
}
