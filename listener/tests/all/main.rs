//! Real rings, drained into captures, series of files, windows and other sinks.

mod complete;
mod counters;
mod flight;
mod listener;
mod rotation;
mod sinks;
mod support;
