//! Predictions compared with simulations of the changed system, and with formulas.

mod closed;
mod contended;
mod graphs;
mod locks;
mod lossy;
mod open;
mod simulator;
