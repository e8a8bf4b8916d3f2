//! A capture is written, mistreated and read: what comes out was put in, once, or is reported.

mod damage;
mod forged;
mod round_trip;
mod support;
mod writer;
