//! The numbers of a running capture for Prometheus and compatible programs.
//!
//! * [`Series`] converts the [numbers](ppt_listener::Tallies) of a capture to OpenMetrics text. It
//!   runs in the capturing process, and reads only counts that other threads have stored.
//! * [`MetricsServer`] responds to HTTP requests. It runs in a separate process without privileges, which
//!   gets the text over a socket, one answer for each [question](answer).
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
pub use request::{MetricsRequest, RequestRefusal, read as read_request};
pub use series::{Series, SessionFacts};
pub use server::MetricsServer;
pub use source::answer;
