//! A capture is written, damaged and read: everything read was written, appears once, or is
//! reported as damage.

mod damage;
mod forged;
mod round_trip;
mod support;
mod writer;
