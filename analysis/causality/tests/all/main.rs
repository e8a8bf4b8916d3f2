//! Edges and paths, compared with independent implementations of their definitions.

mod known;
mod matching;
mod paths;
mod truth;
