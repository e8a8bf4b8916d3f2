//! The server of `ppt view` over TCP, and its page in browsers.

#[path = "../../../../report/tests/made/kinds.rs"]
mod every;
#[path = "../../../../report/tests/made/mod.rs"]
mod made;

mod browser;
mod firefox;
mod page;
mod served;
