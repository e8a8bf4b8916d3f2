//! `ppt-lab` as its users run it.

mod lab;
mod pages;
mod support;
