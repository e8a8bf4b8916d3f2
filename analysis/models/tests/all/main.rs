//! Models against numbers with known truth, and against other tools. One binary, because each binary compiles
//! the many generic functions of the crate.

mod compare;
mod coverage;
mod known;
mod oracles;
mod random;
mod support;
