//! The calls: methods of [`Cx`](crate::Cx).
//!
//! | module | calls |
//! |---|---|
//! | [`make`] | open, mkdir, mknod, symlink, link |
//! | [`remove`] | unlink, rmdir |
//! | [`rename`] | rename |
//! | [`attributes`] | stat, chmod, chown, utimens, readlink |
//! | [`data`] | read, write, append, truncate |
//! | [`list`] | readdir, getcwd |
//! | [`restore`] | what makes the tree that was on a disk |

pub mod attributes;
pub mod data;
pub mod list;
pub mod make;
pub mod remove;
pub mod rename;
pub mod restore;
