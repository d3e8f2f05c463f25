//! How many files may be open: events take many, most limits are low, and programs may raise theirs
//! up to another one.

use std::os::fd::OwnedFd;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The old limit, which is restored when this is dropped. A started program must have the old
/// limit, since some programs make a table with a row for each file that they may open.
#[derive(Debug)]
pub struct Raised(Rlimit);

/// Raises the limit as far as this process may.
pub fn as_many_as_permitted() -> Raised {
    let before = getrlimit(Resource::Nofile);
    // Else it stays as it is, and may do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before });
    Raised(before)
}

impl Raised {
    /// Moves a file to a number beyond the old limit, if there are such numbers: those below are
    /// for other files.
    pub fn out_of_the_way(&self, file: OwnedFd) -> OwnedFd {
        let first = self.0.current.and_then(|limit| i32::try_from(limit).ok());
        let moved = first.and_then(|first| fcntl_dupfd_cloexec(&file, first).ok());
        moved.unwrap_or(file)
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        // To lower it is permitted, also below what is open.
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn there_are_more_files_for_a_while_and_none_fewer_later() {
        let before = getrlimit(Resource::Nofile);
        let few = before.current.map_or(4_096, |limit| (limit - 1).min(4_096));
        let few = Rlimit { current: Some(few), ..before };
        setrlimit(Resource::Nofile, few).unwrap();
        let raised = as_many_as_permitted();
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
        let file = raised.out_of_the_way(File::open("/dev/null").unwrap().into());
        drop(raised);
        // Another test may raise it meanwhile.
        let deadline = Instant::now() + Duration::from_secs(10);
        while getrlimit(Resource::Nofile) != few {
            assert!(Instant::now() < deadline, "{:?}", getrlimit(Resource::Nofile));
            std::thread::yield_now();
        }
        if let Some(limit) = few.current {
            assert!(file.as_raw_fd() as u64 >= limit, "{file:?}");
        }
        setrlimit(Resource::Nofile, before).unwrap();
    }
}
