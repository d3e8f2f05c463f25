//! Memory: frames, the kernel's heap, page tables and address spaces.
#![allow(unsafe_code)]

pub mod area;
pub mod direct_map;
pub mod dma;
pub mod fault;
pub mod frames;
pub mod heap;
pub mod shootdown;
pub mod space;
pub mod stacks;
pub mod tables;
pub mod user;
