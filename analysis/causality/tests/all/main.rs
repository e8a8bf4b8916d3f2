//! Edges and paths, held against definitions that are written down in another way.

mod known;
mod matching;
mod paths;
mod truth;
