//! Several hosts: how their clocks go.
//!
//! [`probe`] exchanges packets between hosts whose times of sending and arriving the kernels stamp.
#![forbid(unsafe_code)]

pub mod probe;
