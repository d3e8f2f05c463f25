//! iperf3 and nuttcp, both ends. nuttcp's receiver counts every byte; iperf3's stops when its
//! sender does.

use super::{GRACE, await_port, await_ready, free_port, succeeds};
use crate::soak::launch::Launch;
use crate::soak::process::Process;
use crate::soak::{Failure, Result, ensure, installed, place};
use crate::toolchain::Workshop;

/// A fixed number of bytes, in each direction.
const BYTES: u64 = 32 << 20;
/// The buffer that iperf3 requests from the kernel between the two ends, and the size of each of
/// its writes.
const WINDOW: u64 = 128 << 10;
/// The largest number of bytes that may still be on their way when the sender has sent everything:
/// twice each end's window, because the kernel doubles it, and one block.
const ON_THE_WAY: u64 = 2 * 2 * WINDOW + WINDOW;

/// Runs iperf3, and checks by itself how much has arrived.
pub fn iperf3(launch: Launch) -> Result<()> {
    let program = installed("iperf3", "iperf3")?;
    let place = place()?;
    for direction in [&[][..], &["-R"]] {
        let port = free_port()?.to_string();
        let mut command = launch.command(&program);
        // The server serves one client, and reports that it listens. A test connection would be
        // that client.
        command.args(["-s", "-1", "--forceflush", "-B", "127.0.0.1", "-p", &port]);
        let server = Process::start("iperf3", &mut command, place.path())?;
        await_ready(&server, || server.stdout().contains("Server listening"))?;
        let (bytes, window) = (BYTES.to_string(), WINDOW.to_string());
        let size = ["-n", &bytes, "-w", &window, "-l", &window, "--json"];
        let to = ["-c", "127.0.0.1", "-p", &port];
        let said = succeeds(launch, &program, &[&to[..], &size, direction].concat())?;
        let sum = |of: &str| number_after(&said, of, "\"bytes\":").unwrap_or(0);
        let (sent, received) = (sum("\"sum_sent\":"), sum("\"sum_received\":"));
        // The server stops receiving when the sender reports that it has sent everything. Bytes
        // that are then on their way are not counted.
        ensure(sent >= BYTES && received + ON_THE_WAY >= sent && received <= sent, || {
            format!("{sent} of {BYTES} bytes are sent, {received} arrive; it says: {said}")
        })?;
        let status = server.finish(GRACE)?;
        ensure(status.success(), || format!("iperf3's server ends with {status}"))?;
    }
    Ok(())
}

/// nuttcp: the server serves one client and goes on.
pub fn nuttcp(launch: Launch) -> Result<()> {
    // The program listens on every address, and has no option for one address.
    let loopback = Workshop::of("programs/servers").shared_library("loopback", "loopback", &[]);
    let program = installed("nuttcp", "nuttcp")?;
    let place = place()?;
    let (control, data) = (free_port()?.to_string(), free_port()?.to_string());
    let mut command = launch.command_on(&loopback, &program);
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
