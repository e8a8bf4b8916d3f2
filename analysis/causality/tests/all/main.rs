//! Edges and paths, compared with independent implementations of their definitions; predictions, compared with
//! simulations.

mod known;
mod matching;
mod paths;
mod retime;
mod truth;
