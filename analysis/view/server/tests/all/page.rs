//! The page in a browser, and its modules in node.

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
