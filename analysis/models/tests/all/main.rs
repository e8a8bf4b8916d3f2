//! Models against numbers whose truth is known, and against other people's tools. One binary: the
//! crate has many generic functions, and each binary compiles its own.

mod compare;
mod coverage;
mod known;
mod oracles;
mod random;
mod support;
