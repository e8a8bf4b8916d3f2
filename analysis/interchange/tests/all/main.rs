//! Events of captures: their order, and how the formats write them.

mod marks;
mod order;
