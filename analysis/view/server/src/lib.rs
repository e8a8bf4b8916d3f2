//! The server of `ppt view`: a page about captures on the loopback interface.
//!
//! [`ViewServer::start`] opens captures, binds a port of 127.0.0.1, and answers until it is dropped.
//! `ppt-view` makes the cells, and `ppt-query` answers SQL. The files of the page are in `page/` and are part of
//! the binary.
//!
//! # Access
//! A request needs the [`Token`] and must come from the page of this server. `guard.rs` checks host and origin,
//! so that neither another page in the browser nor a name that points here by DNS gets an answer.
//!
//! # Routes
//! | route | answer |
//! |---|---|
//! | `GET /`, `/view.css`, `/m/NAME.js` | the page, without data and without a token |
//! | `GET /v1/about` | captures, processes, rows, names, progress (`about.rs`) |
//! | `POST /v1/window` | the cells of rows in a window (`row_bytes.rs` has the layout) |
//! | `POST /v1/lengths` | a histogram of the lengths of a row |
//! | `POST /v1/entry` | a span, a chain or a state of a thread (`layers.rs`) |
//! | `POST /v1/frame` | the fields of a frame (`frame.rs`) |
//! | `POST /v1/edges` | the causes and effects of frames (`edges.rs`) |
//! | `GET /v1/points`, `POST /v1/paths` | the points; the paths from one point to another (`paths.rs`) |
//! | `POST /v1/why` | the causes of the slowest intervals in a range of time (`why.rs`) |
//! | `POST /v1/filter` | the rows with matches of a search (`filter.rs`) |
//! | `POST /v1/find`, `/v1/sql`, `/v1/panel`; `GET /v1/panels` | answers in rows (`find.rs`, `sql.rs`, `panels.rs`) |
//! | `POST /v1/compare` | total times in two sets, and changes (`compare.rs`) |
//! | `POST /v1/export` | a range of time as a file (`export.rs`) |
//! | `GET /v1/events` | server-sent events: progress, growth, the end (`events.rs`) |
//!
//! A second set of captures has the same routes below `/v1/second/`.
//!
//! Bodies are JSON, except those of windows. Times are decimal strings of nanoseconds since the epoch. An error
//! has a status of 4xx or 5xx and `{"error": "what, why, what to do"}`.
//!
//! This library prints nothing and does not read the environment.
#![forbid(unsafe_code)]

mod about;
mod assets;
mod body;
mod captures;
mod compare;
mod edges;
mod error;
mod events;
mod export;
mod filter;
mod find;
mod frame;
mod guard;
mod layers;
mod panels;
mod paths;
mod routes;
mod row_bytes;
mod server;
mod session;
mod slices;
mod sql;
mod table;
mod threads;
mod times;
mod token;
mod why;
mod window;

pub use captures::Captures;
pub use error::ServeError;
pub use server::{ServeOptions, ViewServer};
pub use token::Token;
