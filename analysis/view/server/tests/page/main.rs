//! The page in a browser, and its modules in node.

#[path = "../../../../report/tests/made/kinds.rs"]
mod every;
#[path = "../../../../report/tests/made/mod.rs"]
mod made;

#[path = "../support/browser.rs"]
mod browser;

mod access;
mod answers;
mod connections;
mod drawing;
mod filter;
mod guarded;
mod many;
mod modules;
mod rows;
mod saving;
mod sets;
mod shown;
mod tunnel;
mod walking;
