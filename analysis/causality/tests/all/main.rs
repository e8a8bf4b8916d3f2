//! Edges and paths, held against definitions that are written down in another way.

mod matching;
mod paths;
