//! What Rust programs use: `parking_lot` and the standard library.

use std::sync::PoisonError;

use super::Contender;

/// `parking_lot::Mutex`.
pub(super) struct ParkingLot(parking_lot::Mutex<()>);

impl Contender for ParkingLot {
    fn new() -> Self {
        Self(parking_lot::Mutex::new(()))
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        section()
    }
}

/// `parking_lot::RwLock`.
pub(super) struct ParkingLotRwLock(parking_lot::RwLock<()>);

impl Contender for ParkingLotRwLock {
    fn new() -> Self {
        Self(parking_lot::RwLock::new(()))
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.write();
        section()
    }

    #[inline]
    fn shared<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.read();
        section()
    }
}

/// `std::sync::Mutex`.
pub(super) struct Std(std::sync::Mutex<()>);

impl Contender for Std {
    fn new() -> Self {
        Self(std::sync::Mutex::new(()))
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        section()
    }
}

/// `std::sync::RwLock`.
pub(super) struct StdRwLock(std::sync::RwLock<()>);

impl Contender for StdRwLock {
    fn new() -> Self {
        Self(std::sync::RwLock::new(()))
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.write().unwrap_or_else(PoisonError::into_inner);
        section()
    }

    #[inline]
    fn shared<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.read().unwrap_or_else(PoisonError::into_inner);
        section()
    }
}
