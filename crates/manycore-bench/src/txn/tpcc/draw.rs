//! Draws transactions and their inputs: clauses 2.4.1, 2.5.1, 2.6.1 and 2.8.1 of TPC-C.

use super::customer::Named;
use super::keys::{AFTER_DISTRICT, DISTRICTS, District, NAMES};
use super::order::{LINES_MAX, Line, Order};
use super::payment::Payment;
use super::status::{Level, Status};
use crate::txn::task::{Size, Task};

/// A transaction with its input.
#[expect(clippy::large_enum_variant, reason = "one at a time is drawn, used and dropped")]
#[derive(Clone, Debug)]
pub(in crate::txn) enum Input {
    Order(Order),
    Payment(Payment),
    Status(Status),
    Level(Level),
    /// An audit of this warehouse.
    Audit(u64),
}

impl Input {
    /// Whether it changes rows.
    pub fn updates(&self) -> bool {
        matches!(self, Self::Order(_) | Self::Payment(_))
    }
}

/// What a thread draws from.
pub(in crate::txn) struct Draws {
    random: fastrand::Rng,
    size: Size,
    /// The warehouse of the thread.
    home: u64,
    district: u64,
}

impl Draws {
    pub fn new(task: &Task, thread: u32, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        let (thread, size) = (u64::from(thread), task.size);
        Self { random, size, home: thread % size.warehouses, district: thread % DISTRICTS }
    }

    pub fn draw(&mut self) -> Input {
        match self.random.u32(..101) {
            0..47 => Input::Order(self.order()),
            47..92 => Input::Payment(self.payment()),
            92..96 => Input::Status(Status { district: self.district(), of: self.customer() }),
            96..100 => Input::Level(Level {
                district: District { warehouse: self.home, number: self.district },
                below: self.random.u64(10..=20),
            }),
            _ => Input::Audit(self.random.u64(..self.size.warehouses)),
        }
    }

    fn district(&mut self) -> District {
        District { warehouse: self.home, number: self.random.u64(..DISTRICTS) }
    }

    /// A number below `count`, some more often than others.
    fn skewed(&mut self, spread: u64, count: u64) -> u64 {
        (self.random.u64(..=spread) | self.random.u64(..count)) % count
    }

    /// Another warehouse than the thread's, if there is one.
    fn elsewhere(&mut self) -> u64 {
        match self.size.warehouses {
            1 => self.home,
            count => (self.home + self.random.u64(1..count)) % count,
        }
    }

    fn customer(&mut self) -> Named {
        match self.random.u32(..100) {
            0..60 => Named::LastName(self.skewed(255, NAMES.min(self.size.customers))),
            _ => Named::Number(self.skewed(1_023, self.size.customers)),
        }
    }

    fn order(&mut self) -> Order {
        let district = self.district();
        let customer = self.skewed(1_023, self.size.customers);
        let count = self.random.usize(5..=LINES_MAX);
        let is_unknown = self.random.u32(..100) == 0;
        let mut lines = [Line::default(); LINES_MAX];
        for (number, line) in lines[..count].iter_mut().enumerate() {
            let is_remote = self.random.u32(..100) == 0;
            *line = Line {
                item: self.skewed(8_191, self.size.items),
                supplier: if is_remote { self.elsewhere() } else { self.home },
                quantity: self.random.u64(1..=10),
            };
            // The customer has mistyped the last one.
            if is_unknown && number + 1 == count {
                line.item = self.size.items;
            }
        }
        Order { district, customer, lines, count }
    }

    fn payment(&mut self) -> Payment {
        let to = self.district();
        let of = match self.random.u32(..100) {
            0..85 => to,
            _ => District { warehouse: self.elsewhere(), number: self.random.u64(..DISTRICTS) },
        };
        Payment {
            to,
            of,
            by: self.customer(),
            amount: self.random.u64(100..=500_000),
            number: self.random.u64(..1 << AFTER_DISTRICT),
        }
    }
}
