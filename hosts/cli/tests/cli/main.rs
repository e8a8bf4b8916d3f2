//! `ppt-lab` as its users call it.

mod lab;
mod pages;
mod support;
