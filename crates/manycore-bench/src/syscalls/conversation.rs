//! Two processes that talk over TCP on the loopback interface: bandwidth and latency by the size of
//! messages.
//!
//! The measurement of TTCP and its descendants. Both ends are made in the same way, so a library
//! that is preloaded under the first process is under both. The first process listens and starts
//! the second, which sends. Every byte is counted, and a message begins with its number. For
//! latency the ends compare the whole message, for bandwidth its first byte.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use clap::Args;
use manycore_launch::terminal::Terminal;

use crate::failure::Failure;
use crate::front::Run;

/// The longest message.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// What is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Which of the two.
    pub what: What,
    /// The length of a message, and of the buffer on either side.
    pub message_bytes: usize,
    /// How long they talk before it counts.
    pub warm_up: Duration,
    /// How long it counts.
    pub measured: Duration,
    /// The port on which the first process listens. Only the second process is told.
    pub port: Option<u16>,
}

/// Bandwidth or latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// One end sends and the other receives: bytes a second, as received.
    Bandwidth,
    /// A message goes to the other process and back before the next one: nanoseconds for both ways.
    Latency,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Bytes a second, or nanoseconds.
    pub value: f64,
    /// The number of bytes that went from the second process to the first, from beginning to end.
    pub sent_bytes: u64,
}

/// A process that talks to another. This command starts it itself.
#[derive(Args, Debug)]
#[command(hide = true)]
pub(super) struct Serve {
    order: String,
}

impl Run for Serve {
    fn run(&self, _: &Terminal) -> manycore_launch::failure::Result<()> {
        Ok(serve(&self.order)?)
    }
}

/// Executes an order, given as JSON, and prints the answer. This is all that either process does.
fn serve(order: &str) -> Result<(), Failure> {
    let order: Order = serde_json::from_str(order)
        .map_err(|error| Failure::Usage(format!("no order for a conversation: {error}")))?;
    if !(1..=MESSAGE_BYTES_MAX).contains(&order.message_bytes) {
        let given = order.message_bytes;
        return Err(Failure::Usage(format!("messages of {given} bytes: 1 to {MESSAGE_BYTES_MAX}")));
    }
    let done = match order.port {
        Some(port) => speak(&order, port),
        None => listen(order),
    };
    let failed = |error: io::Error| Failure::Failed(format!("the conversation failed: {error}"));
    let text = serde_json::to_string(&done.map_err(failed)?).expect("numbers can be written");
    writeln!(io::stdout(), "{text}").map_err(failed)
}

/// The first process.
fn listen(order: Order) -> io::Result<Answer> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let mut other = start(&Order { port: Some(port), ..order })?;
    let talked = accept(&listener, &mut other).and_then(|stream| match order.what {
        What::Bandwidth => receive(&order, stream),
        What::Latency => echo(&order, stream),
    });
    if talked.is_err() {
        // It may wait for us; if it has ended already, there is nothing to kill.
        _ = other.kill();
    }
    let (rate, arrived) = talked?;
    let output = other.wait_with_output()?;
    let said: Answer = serde_json::from_slice(&output.stdout).map_err(io::Error::other)?;
    if said.sent_bytes != arrived {
        let text = format!("{} bytes were sent, and {arrived} arrived", said.sent_bytes);
        return Err(io::Error::other(text));
    }
    let value = if order.what == What::Bandwidth { rate } else { said.value };
    Ok(Answer { value, sent_bytes: arrived })
}

/// Starts the second process.
fn start(order: &Order) -> io::Result<Child> {
    let text = serde_json::to_string(order).map_err(io::Error::other)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "conversation", &text]).stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn()
}

/// The second process's connection, unless it ends without one.
fn accept(listener: &TcpListener, other: &mut Child) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            accepted => {
                let (stream, _) = accepted?;
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
        }
        if let Some(status) = other.try_wait()? {
            return Err(io::Error::other(format!("the other process ended: {status}")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Receives to the end. Returns bytes a second, without the beginning, and the number of bytes.
fn receive(order: &Order, mut stream: TcpStream) -> io::Result<(f64, u64)> {
    let mut buffer = vec![0; order.message_bytes];
    let (mut all, mut numbers) = (0, Numbers::new(order));
    let mut counted_from = None;
    let begin = Instant::now();
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        numbers.check(all, &buffer[..length])?;
        all += length as u64;
        if counted_from.is_none() && begin.elapsed() >= order.warm_up {
            counted_from = Some((Instant::now(), all));
        }
    }
    let (from, before) = counted_from.unwrap_or((begin, 0));
    Ok(((all - before) as f64 / from.elapsed().as_secs_f64(), all))
}

/// Sends back everything that it receives. The other process determines the rate.
fn echo(order: &Order, mut stream: TcpStream) -> io::Result<(f64, u64)> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; order.message_bytes];
    let mut all = 0;
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Ok((0.0, all));
        }
        stream.write_all(&buffer[..length])?;
        all += length as u64;
    }
}

/// The second process.
fn speak(order: &Order, port: u16) -> io::Result<Answer> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let begin = Instant::now();
    let end = begin + order.warm_up + order.measured;
    let (mut message, mut back) = (vec![0; order.message_bytes], vec![0; order.message_bytes]);
    let mut numbers = Numbers::new(order);
    let mut counted = (None, 0);
    let mut sent = 0;
    if order.what == What::Latency {
        stream.set_nodelay(true)?;
    }
    // One message is measured at least, however long a busy machine takes for it.
    while Instant::now() < end || order.what == What::Latency && counted.1 == 0 {
        numbers.write(&mut message);
        stream.write_all(&message)?;
        sent += message.len() as u64;
        if order.what == What::Bandwidth {
            continue;
        }
        stream.read_exact(&mut back)?;
        if back != message {
            return Err(io::Error::other("a message came back changed"));
        }
        match counted {
            (None, _) if begin.elapsed() >= order.warm_up => counted.0 = Some(Instant::now()),
            (None, _) => {}
            (Some(_), ref mut rounds) => *rounds += 1,
        }
    }
    let value = match counted {
        (Some(from), rounds) => from.elapsed().as_nanos() as f64 / f64::from(rounds),
        (None, _) => 0.0,
    };
    stream.shutdown(Shutdown::Write)?;
    // What was received is known when the other end has closed.
    stream.read_to_end(&mut Vec::new())?;
    Ok(Answer { value, sent_bytes: sent })
}

/// Bytes that make a loss, a repetition or a reordering of messages noticeable: each message begins
/// with its number, and is zeros otherwise.
struct Numbers {
    message_bytes: u64,
    next: u64,
}

impl Numbers {
    fn new(order: &Order) -> Self {
        Self { message_bytes: order.message_bytes as u64, next: 0 }
    }

    /// Writes the next number over the first bytes. That is enough, and costs the same for every
    /// size.
    fn write(&mut self, message: &mut [u8]) {
        let number = self.next.to_le_bytes();
        let length = message.len().min(number.len());
        message[..length].copy_from_slice(&number[..length]);
        self.next += 1;
    }

    /// Checks each first byte of a message among those that arrived at this place of the stream.
    fn check(&mut self, place: u64, bytes: &[u8]) -> io::Result<()> {
        let to_next = (self.message_bytes - place % self.message_bytes) % self.message_bytes;
        let mut at = to_next;
        while at < bytes.len() as u64 {
            let expected = ((place + at) / self.message_bytes) as u8;
            if bytes[at as usize] != expected {
                let place = place + at;
                return Err(io::Error::other(format!("another byte than was sent at {place}")));
            }
            at += self.message_bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(message_bytes: usize) -> Order {
        let (warm_up, measured) = (Duration::ZERO, Duration::from_millis(10));
        Order { what: What::Bandwidth, message_bytes, warm_up, measured, port: None }
    }

    #[test]
    fn messages_are_recognised_wherever_the_stream_is_cut() {
        let mut stream = Vec::new();
        let mut numbers = Numbers::new(&order(5));
        for _ in 0..600 {
            let mut message = [0xff; 5];
            numbers.write(&mut message);
            stream.extend(message);
        }
        for piece in [1, 2, 3, 5, 7, 64] {
            let mut place = 0;
            for bytes in stream.chunks(piece) {
                numbers.check(place, bytes).unwrap();
                place += bytes.len() as u64;
            }
        }
        // Lost, repeated.
        assert!(numbers.check(0, &stream[5..]).is_err());
        assert!(numbers.check(10, &stream[5..]).is_err());
    }

    /// Both ends in one process: the second one is a thread.
    fn talk(what: What, message_bytes: usize) -> (Answer, (f64, u64)) {
        let order = Order { what, ..order(message_bytes) };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let other = std::thread::spawn(move || speak(&order, port).unwrap());
        let (stream, _) = listener.accept().unwrap();
        let heard = match what {
            What::Bandwidth => receive(&order, stream).unwrap(),
            What::Latency => echo(&order, stream).unwrap(),
        };
        (other.join().unwrap(), heard)
    }

    #[test]
    fn what_was_sent_arrives() {
        for message_bytes in [1, 100, 100_000] {
            let (said, (rate, arrived)) = talk(What::Bandwidth, message_bytes);
            assert_eq!(said.sent_bytes, arrived);
            assert!(rate > 0.0 && arrived.is_multiple_of(message_bytes as u64), "{rate} {arrived}");
            let (said, (_, arrived)) = talk(What::Latency, message_bytes);
            assert_eq!(said.sent_bytes, arrived);
            assert!(said.value > 0.0);
        }
    }

    #[test]
    fn an_order_that_makes_no_sense_is_refused() {
        for text in ["", "{}", &serde_json::to_string(&order(0)).unwrap()] {
            assert!(matches!(serve(text), Err(Failure::Usage(_))), "{text}");
        }
    }
}
