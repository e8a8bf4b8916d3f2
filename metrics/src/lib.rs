//! The numbers of a running capture for Prometheus and its like.
//!
//! * [`Series`] turns the [numbers](ppt_listener::Tallies) of a capture into OpenMetrics text. It runs in the
//!   process that captures, and reads nothing but counts that others have stored.
//! * [`Server`] answers HTTP requests. It runs in a process of its own, which has no privileges: it gets the
//!   text over a socket, one answer for each [question](answer).
//!
//! The server is one loop over `poll`: connections, their memory and their time are bounded.
#![forbid(unsafe_code)]

mod address;
mod connection;
mod error;
mod names;
mod request;
mod series;
mod server;
mod source;
mod text;
mod units;

pub use address::MetricsAddress;
pub use error::{AddressError, BindError};
pub use request::{Refusal, Request, read as read_request};
pub use series::{Series, SessionFacts};
pub use server::Server;
pub use source::answer;
