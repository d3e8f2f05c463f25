//! The messages of the format, as far as they are used here. A text is given by its place in
//! [`Profile::strings`], whose first text is empty; the numbers of other objects begin with 1.

use prost::Message;

/// `perftools.profiles.Profile`.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// What the values of each sample are.
    #[prost(message, repeated, tag = "1")]
    pub sample_types: Vec<ValueType>,
    /// Stacks with values.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    /// Files.
    #[prost(message, repeated, tag = "3")]
    pub mappings: Vec<Mapping>,
    /// Calls.
    #[prost(message, repeated, tag = "4")]
    pub locations: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub functions: Vec<Function>,
    /// Texts.
    #[prost(string, repeated, tag = "6")]
    pub strings: Vec<String>,
    /// How long the program was watched.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// What a reader is told: texts.
    #[prost(int64, repeated, tag = "13")]
    pub comments: Vec<i64>,
    /// The name of the value that is shown first, as the index of a text.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// What a value is, and its unit: two texts.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct ValueType {
    /// Its name.
    #[prost(int64, tag = "1")]
    pub name: i64,
    /// Its unit.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A stack, innermost call first, and its values.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Sample {
    /// Numbers of locations.
    #[prost(uint64, repeated, tag = "1")]
    pub locations: Vec<u64>,
    /// One for each of the profile's types.
    #[prost(int64, repeated, tag = "2")]
    pub values: Vec<i64>,
    /// What else is known of it.
    #[prost(message, repeated, tag = "3")]
    pub labels: Vec<Label>,
}

/// A name and what it is: two texts.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Label {
    /// The name.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// What it is.
    #[prost(int64, tag = "2")]
    pub text: i64,
}

/// A file that the program had mapped. A profile of locks does not have its address.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Mapping {
    /// Its number.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name: a text.
    #[prost(int64, tag = "5")]
    pub file: i64,
    /// Whether names have been looked up already. Then readers do not search for the file.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
}

/// A call.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Location {
    /// Its number.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The number of its mapping, or 0.
    #[prost(uint64, tag = "2")]
    pub mapping: u64,
    /// The place in the file.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// The function, and where in it.
    #[prost(message, repeated, tag = "4")]
    pub lines: Vec<Line>,
}

/// A place in a function.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Line {
    /// The function's number.
    #[prost(uint64, tag = "1")]
    pub function: u64,
    /// The line of its source, or 0.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function: its number and texts.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Function {
    /// Its number.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Its source file.
    #[prost(int64, tag = "4")]
    pub file: i64,
}
