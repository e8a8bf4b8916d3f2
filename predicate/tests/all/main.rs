//! Expressions over frames of one source, and of several.

mod matches;
mod sieve;
