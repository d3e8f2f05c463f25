//! What a harness has a worker do, of whatever workload.
//!
//! A workload defines its orders ([`Order`]) and gives the worker an executor for them
//! ([`Executor`]). Between the two processes an order is its name and its settings, as JSON;
//! neither the worker nor the harness's end of it knows any workload.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Settings of one short run, which a worker executes.
pub trait Order: Serialize + DeserializeOwned {
    /// What tells it from other orders.
    const NAME: &'static str;

    /// What is measured.
    type Answer: Serialize + DeserializeOwned;

    /// How long it may take.
    fn time_max(&self) -> Duration;
}

/// An order on its way.
#[derive(Serialize, Deserialize)]
pub(super) struct Message {
    pub order: String,
    pub settings: Box<RawValue>,
}

impl Message {
    pub fn new<O: Order>(order: &O) -> serde_json::Result<Self> {
        Ok(Self { order: O::NAME.to_owned(), settings: serde_json::value::to_raw_value(order)? })
    }
}

/// A worker's answer; the error tells in one line why there is no measurement.
pub(super) type Reply = Result<Box<RawValue>, String>;

/// Executes the orders of one kind, in a worker.
#[allow(missing_debug_implementations, reason = "a closure has nothing to show")]
pub struct Executor {
    pub(super) order: &'static str,
    pub(super) execute: Box<dyn FnMut(&RawValue) -> Reply>,
}

impl Executor {
    /// An order for this work. The error, in one line, describes the failure.
    pub fn new<O: Order>(
        mut execute: impl FnMut(O) -> Result<O::Answer, String> + 'static,
    ) -> Self {
        let execute = move |settings: &RawValue| {
            let order = serde_json::from_str(settings.get())
                .map_err(|error| format!("the worker got an order that it cannot read: {error}"))?;
            let answer = execute(order)?;
            serde_json::value::to_raw_value(&answer).map_err(|error| error.to_string())
        };
        Self { order: O::NAME, execute: Box::new(execute) }
    }
}
