//! A profile for Firefox's profiler, <https://profiler.firefox.com>: the file is opened there and
//! is not uploaded.
//!
//! Three tracks of stacks: waits for the program's locks, waits for the kernel's, and samples on
//! the CPU. A wait's weight is its time; the innermost call is the lock, `[lock]`. A profile does
//! not have the times of single waits, so they are drawn one after the other. Convoys, whose times
//! are known, are markers.

use std::time::UNIX_EPOCH;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame as Call, FrameFlags, FrameInfo,
    MarkerFieldFlags, MarkerFieldFormat, MarkerTiming, ProcessHandle, Profile as Firefox,
    SamplingInterval, StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle,
    Timestamp, WeightType,
};
use serde_json::{Value, json};

use crate::command::joined;
use crate::profile::{Frame, Profile};
use crate::render::stacks::stacks;

/// The profile, as a file has it.
pub fn firefox(profile: &Profile) -> Value {
    let interval = SamplingInterval::from_nanos(1000);
    let mut out = Firefox::new(&joined(&profile.command), UNIX_EPOCH.into(), interval);
    out.set_symbolicated(true);
    let process = out.add_process(&joined(&profile.command), 1, at(0.0));
    out.set_process_end_time(process, at(profile.wall));
    let waits = waits(&mut out, process, profile);
    convoys(&mut out, waits, profile);
    kernel_waits(&mut out, process, profile);
    cpu_samples(&mut out, process, profile);
    in_milliseconds(json!(out))
}

/// A track of stacks, which follow one another.
struct Track<'a> {
    out: &'a mut Firefox,
    thread: ThreadHandle,
    category: CategoryHandle,
    /// The sum of the weights until now.
    weight: u64,
}

impl<'a> Track<'a> {
    fn new(
        out: &'a mut Firefox,
        process: ProcessHandle,
        (number, name): (u32, &str),
        weight: WeightType,
        color: CategoryColor,
    ) -> Self {
        let thread = out.add_thread(process, number, at(0.0), false);
        out.set_thread_name(thread, name);
        out.set_thread_samples_weight_type(thread, weight);
        let category = out.add_category(name, color);
        Self { out, thread, category, weight: 0 }
    }

    /// Adds microseconds, or samples. A weight has 31 bits, so larger values are written in parts.
    fn add(&mut self, lock: Option<&str>, frames: &[Frame], mut weight: u64) {
        let mut calls: Vec<FrameInfo> =
            frames.iter().rev().map(|frame| self.call(&frame.label())).collect();
        calls.extend(lock.map(|lock| self.call(&format!("[{lock}]"))));
        let stack = self.out.intern_stack_frames(self.thread, calls.into_iter());
        while weight > 0 {
            let part = i32::try_from(weight).unwrap_or(i32::MAX);
            let time = Timestamp::from_nanos_since_reference(self.weight.saturating_mul(1000));
            self.out.add_sample(self.thread, time, stack, CpuDelta::ZERO, part);
            weight -= part as u64;
            self.weight = self.weight.saturating_add(part as u64);
        }
    }

    fn call(&mut self, name: &str) -> FrameInfo {
        FrameInfo {
            frame: Call::Label(self.out.intern_string(name)),
            category_pair: self.category.into(),
            flags: FrameFlags::empty(),
        }
    }
}

fn waits(out: &mut Firefox, process: ProcessHandle, profile: &Profile) -> ThreadHandle {
    let name = (1, "Waits for locks");
    let mut track = Track::new(out, process, name, WeightType::TracingMs, CategoryColor::Red);
    for one in stacks(profile) {
        let title = profile.locks[one.lock].title();
        track.add(Some(&title), one.frames, one.ns / 1000);
    }
    track.thread
}

fn kernel_waits(out: &mut Firefox, process: ProcessHandle, profile: &Profile) {
    if profile.kernel_locks.is_empty() {
        return;
    }
    let name = (2, "Waits for the kernel's locks");
    let mut track = Track::new(out, process, name, WeightType::TracingMs, CategoryColor::Orange);
    for lock in &profile.kernel_locks {
        for stack in &lock.stacks {
            track.add(Some(&lock.title()), &stack.frames, stack.wait_ns / 1000);
        }
    }
}

fn cpu_samples(out: &mut Firefox, process: ProcessHandle, profile: &Profile) {
    let Some(samples) = profile.cpu_samples.as_ref().filter(|one| !one.stacks.is_empty()) else {
        return;
    };
    let mut track =
        Track::new(out, process, (3, "On the CPU"), WeightType::Samples, CategoryColor::Blue);
    for stack in &samples.stacks {
        track.add(None, &stack.frames, stack.samples);
    }
}

/// Converts weights of waits to fractions of milliseconds: the format allows these, but the library
/// takes integers only.
fn in_milliseconds(mut profile: Value) -> Value {
    let threads = profile["threads"].as_array_mut();
    for thread in threads.into_iter().flatten() {
        let samples = &mut thread["samples"];
        if samples["weightType"] != "tracing-ms" {
            continue;
        }
        for weight in samples["weight"].as_array_mut().into_iter().flatten() {
            *weight = json!(weight.as_f64().unwrap_or_default() / 1000.0);
        }
    }
    profile
}

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_millis_since_reference(seconds * 1000.0)
}

/// A queue for a lock.
struct Convoy {
    lock: StringHandle,
    waiters_max: u32,
}

impl StaticSchemaMarker for Convoy {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Convoy";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.lock}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        StaticSchemaMarkerField {
            key: "lock",
            label: "Lock",
            format: MarkerFieldFormat::String,
            flags: MarkerFieldFlags::SEARCHABLE,
        },
        StaticSchemaMarkerField {
            key: "waiters",
            label: "Most threads waiting",
            format: MarkerFieldFormat::Integer,
            flags: MarkerFieldFlags::empty(),
        },
    ];

    fn name(&self, profile: &mut Firefox) -> StringHandle {
        profile.intern_string("convoy")
    }

    fn category(&self, _profile: &mut Firefox) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        self.lock
    }

    fn number_field_value(&self, _field: u32) -> f64 {
        self.waiters_max.into()
    }
}

fn convoys(out: &mut Firefox, thread: ThreadHandle, profile: &Profile) {
    for convoy in &profile.convoys {
        let end = convoy.start + convoy.length_ns as f64 / 1e9;
        let lock = out.intern_string(&profile.locks[convoy.lock].title());
        let timing = MarkerTiming::Interval(at(convoy.start), at(end));
        out.add_marker(thread, timing, Convoy { lock, waiters_max: convoy.waiters_max });
    }
}
