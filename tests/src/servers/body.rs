//! Contents with a known checksum, and their transfer over HTTP by curl.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::soak::launch::Launch;
use crate::soak::{Failure, Result, ensure, installed};

use super::succeeds;

/// Files of a site: one that fits into a packet, one that is sent in parts, one that fills every
/// buffer.
pub const FILES: [(&str, usize); 3] =
    [("small.bin", 100), ("middle.bin", 70_001), ("large.bin", 5_000_003)];

/// Bytes for a file in which no long sequence occurs twice.
pub fn contents(length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(length as u64);
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

/// Writes the files of a site, readable by everybody.
pub fn write_site(place: &Path) -> Result<()> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot write a site: {error}"));
    for (name, length) in FILES {
        fs::write(place.join(name), contents(length)).map_err(failed)?;
        fs::set_permissions(place.join(name), Permissions::from_mode(0o644)).map_err(failed)?;
    }
    fs::set_permissions(place, Permissions::from_mode(0o755)).map_err(failed)
}

/// Fetches every file with curl, which is launched in this way, and compares the files byte for
/// byte.
pub fn fetch_all(launch: Launch, port: u16, place: &Path) -> Result<()> {
    let curl = installed("curl", "curl")?;
    for (name, length) in FILES {
        let address = format!("http://127.0.0.1:{port}/{name}");
        let file = place.join(format!("fetched-{name}"));
        let path = file.to_str().ok_or_else(|| Failure::new("a path that is no text"))?;
        succeeds(launch, &curl, &["-sS", "--fail", "--max-time", "30", "-o", path, &address])?;
        let got = fs::read(&file).map_err(Failure::because("what curl has fetched"))?;
        ensure(got == contents(length), || format!("{name} arrives with other bytes"))?;
    }
    Ok(())
}
