//! Tables and packets become frames.

mod packets;
mod support;
mod tables;
