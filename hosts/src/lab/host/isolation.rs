//! How programs are isolated, encoded as arguments.

/// The isolation that a keeper sets up, as its argument names it.
pub(in crate::lab) const PLAIN: &str = "plain";
pub(in crate::lab) const ISOLATED: &str = "isolated";
pub(in crate::lab) const NETWORK: &str = "network";
pub(in crate::lab) const HUB: &str = "hub";
/// The worker's: it is the first process of a namespace.
pub(super) const FIRST: &str = "first";
