//! iperf3 and nuttcp, both ends. nuttcp's receiver counts every byte; iperf3's stops when its sender does.

use super::{GRACE, await_port, free_port, succeeds};
use crate::soak::launch::Launch;
use crate::soak::process::Process;
use crate::soak::{Failure, Result, ensure, installed, place};

/// A fixed number of bytes, in each direction.
const BYTES: u64 = 32 << 20;

/// iperf3, with a check of its own of what arrives.
pub fn iperf3(launch: Launch) -> Result<()> {
    let program = installed("iperf3", "iperf3")?;
    let place = place()?;
    let port = free_port()?.to_string();
    let mut command = launch.command(&program);
    // Serves until it is asked to end: the look whether it is there is a connection, too.
    command.args(["-s", "-B", "127.0.0.1", "-p", &port]);
    let server = Process::start("iperf3", &mut command, place.path())?;
    await_port(&server, port.parse().map_err(Failure::because("a port"))?)?;
    for direction in [&[][..], &["-R"]] {
        let bytes = BYTES.to_string();
        let to = ["-c", "127.0.0.1", "-p", &port, "-n", &bytes, "--json"];
        let said = succeeds(launch, &program, &[&to[..], direction].concat())?;
        let received = number_after(&said, "\"sum_received\":", "\"bytes\":");
        // It stops receiving when the sender says that it has sent everything: the last buffers may not be there yet.
        ensure(received.is_some_and(|received| received >= BYTES / 2), || {
            format!("{received:?} of {BYTES} bytes arrive")
        })?;
    }
    // By the signal, as it has no other end.
    server.stop(GRACE).map(drop)
}

/// nuttcp: the server serves one client and goes on.
pub fn nuttcp(launch: Launch) -> Result<()> {
    let program = installed("nuttcp", "nuttcp")?;
    let place = place()?;
    let (control, data) = (free_port()?.to_string(), free_port()?.to_string());
    let mut command = launch.command(&program);
    command.args(["-S", "--nofork", "-P", &control, "-xt"]);
    command.args(["-p", &data]);
    let server = Process::start("nuttcp", &mut command, place.path())?;
    await_port(&server, control.parse().map_err(Failure::because("a port"))?)?;
    let to = ["-P", &control, "-p", &data, "-l", "65536", "-n", "256", "-fparse", "127.0.0.1"];
    let said = succeeds(launch, &program, &to)?;
    ensure(said.contains("megabytes=16.0000"), || format!("nuttcp says: {said}"))?;
    server.stop(GRACE).map(drop)
}

/// The first number after two marks.
fn number_after(text: &str, first: &str, second: &str) -> Option<u64> {
    let (_, rest) = text.split_once(first)?;
    let (_, rest) = rest.split_once(second)?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
