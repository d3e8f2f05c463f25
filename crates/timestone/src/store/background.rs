//! The threads that a store has for itself.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::flusher::Flusher;
use crate::error::{Error, Result};

/// Two threads: one writes commits for which no thread waits, the other one writes images.
pub struct Background {
    threads: Vec<JoinHandle<()>>,
}

impl Background {
    pub fn start(flusher: &Arc<Flusher>, window: Duration) -> Result<Self> {
        let mut background = Self { threads: Vec::new() };
        // A simulation has only the threads that it knows: commits for which no thread waits are
        // written by `Store::sync`, and images by `Store::checkpoint`.
        if cfg!(feature = "sim") {
            return Ok(background);
        }
        let (writer, imager) = (flusher.clone(), flusher.clone());
        let started =
            background.spawn("timestone", move || writer.write_in_background(window)).and_then(
                |()| background.spawn("timestone-image", move || imager.image_in_background()),
            );
        match started {
            Ok(()) => Ok(background),
            Err(error) => {
                background.stop(flusher);
                Err(error)
            }
        }
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = Builder::new().name(name.to_owned()).spawn(run);
        self.threads.push(thread.map_err(Error::io("start a thread"))?);
        Ok(())
    }

    pub fn stop(self, flusher: &Flusher) {
        flusher.end();
        for thread in self.threads {
            // A panic there has been reported.
            let _ = thread.join();
        }
    }
}
