//! Pairs of system calls that commute, and which of them share cache lines.
//!
//! Two calls commute if no program can tell in which order they were made. Then they need not meet
//! in memory, either: there is a way to implement them so that neither writes a line that the other
//! uses, and where they meet, a kernel scales less well than it could (Clements and others, "The
//! scalable commutativity rule", SOSP 2013).
//!
//! [`cases`](generate::cases) makes the pairs: it combines calls, equal or different arguments, and
//! initial objects; and a [`model`] of files, descriptors and memory determines which pairs
//! commute. A program in KhronOS or Linux executes them, a plugin of QEMU counts ([`mark`]), and
//! [`report`] prints the findings.

pub mod call;
pub mod case;
pub mod generate;
pub mod mark;
pub mod model;
pub mod report;
pub mod symbols;
