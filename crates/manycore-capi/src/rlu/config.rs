//! What the program asks for before it begins.

use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::time::Duration;

use manycore::clock::{Clock, Counter, Ordo};
use manycore::mvrlu;

use crate::stall::{Report, Stall};
use manycore_capi_base::status::Status;

/// Limits, and the clock that orders commits: `manycore_rlu_config_t`. Zero is the default of each
/// member.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Config {
    /// `sizeof(manycore_rlu_config_t)` as the program knows it.
    pub size: usize,
    /// `MANYCORE_CLOCK_...`
    pub clock: c_int,
    /// `Config::patience` in milliseconds.
    pub patience_ms: u32,
    /// Bytes of a segment of a log.
    pub segment_bytes: usize,
    /// Segments of a thread's log when it registers.
    pub segments: usize,
    /// Segments to which it may grow.
    pub segments_max: usize,
    /// The function to which sessions are reported that last too long.
    pub report: Option<Report>,
    /// Passed on to that.
    pub context: *mut c_void,
}

const _: () = assert!(size_of::<Config>() == 56 && offset_of!(Config, segments_max) == 32);

/// A clock that is chosen when the program runs.
pub enum AnyClock {
    Ordo(Ordo),
    /// No thread waits after a commit.
    NoWait(Ordo),
    Counter(Counter),
}

macro_rules! each {
    ($clock:expr, $inner:ident => $result:expr) => {
        match $clock {
            AnyClock::Ordo($inner) | AnyClock::NoWait($inner) => $result,
            AnyClock::Counter($inner) => $result,
        }
    };
}

// SAFETY: each keeps the promises of the clock inside; `NoWait` is that of `RelaxedClock`, over a
// clock that is not exact.
unsafe impl Clock for AnyClock {
    #[inline]
    fn is_exact(&self) -> bool {
        each!(self, clock => clock.is_exact())
    }

    #[inline]
    fn present(&self) -> u64 {
        each!(self, clock => clock.present())
    }

    #[inline]
    fn stamp(&self) -> u64 {
        each!(self, clock => clock.stamp())
    }

    #[inline]
    fn fresh(&self) -> u64 {
        match self {
            Self::Ordo(clock) => clock.fresh(),
            Self::NoWait(clock) => clock.present(),
            Self::Counter(clock) => clock.fresh(),
        }
    }

    #[inline]
    fn horizon(&self) -> u64 {
        each!(self, clock => clock.horizon())
    }

    #[inline]
    fn settle(&self, stamp: u64) -> u64 {
        match self {
            Self::Ordo(clock) => clock.settle(stamp),
            Self::NoWait(_) => stamp,
            Self::Counter(clock) => clock.settle(stamp),
        }
    }
}

impl Config {
    /// Everything as usual.
    pub const USUAL: Self = Self {
        size: size_of::<Self>(),
        clock: 0,
        patience_ms: 0,
        segment_bytes: 0,
        segments: 0,
        segments_max: 0,
        report: None,
        context: core::ptr::null_mut(),
    };

    /// For the library, if there is no contradiction.
    pub fn resolve(&self) -> Result<(AnyClock, mvrlu::Config), Status> {
        fn or<T: PartialEq + Default>(value: T, usual: T) -> T {
            if value == T::default() { usual } else { value }
        }
        let usual = mvrlu::Config::default();
        let segments = or(self.segments, usual.segments);
        let mut config = mvrlu::Config::default()
            .with_segment_bytes(or(self.segment_bytes, usual.segment_bytes))
            .with_segments(segments)
            .with_segments_max(or(self.segments_max, usual.segments_max.max(segments)));
        if self.patience_ms != 0 {
            config.patience = Duration::from_millis(self.patience_ms.into());
        }
        config.on_stall = self.report();
        let fits = config.segment_bytes.is_multiple_of(64)
            && (1 << 10..=1 << 30).contains(&config.segment_bytes);
        if self.size != size_of::<Self>() || !fits || !(2..=config.segments_max).contains(&segments)
        {
            return Err(Status::Invalid);
        }
        let clock = match self.clock {
            0 => AnyClock::Ordo(Ordo::measured()),
            1 => AnyClock::NoWait(Ordo::measured()),
            2 => AnyClock::Counter(Counter::default()),
            _ => return Err(Status::Invalid),
        };
        Ok((clock, config))
    }

    fn report(&self) -> Option<mvrlu::OnStall> {
        let report = Stall::reporter(self.report, self.context)?;
        Some(Box::new(move |stall| {
            report(Stall::new(stall.thread, stall.blocked_for, stall.bytes))
        }))
    }
}
