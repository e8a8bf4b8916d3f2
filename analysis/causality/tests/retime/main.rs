//! Predictions beside what happens: by simulation, where the truth can be run, and by formulas.

mod closed;
mod contended;
mod graphs;
mod lossy;
mod open;
mod simulator;
