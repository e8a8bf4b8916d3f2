//! Frame files: what they mean, what is wrong with them, and how they are laid out.
#![cfg(feature = "parser")]

mod format;
mod golden;
mod never_panics;
mod taken_names;
