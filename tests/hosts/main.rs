//! `ppt lab` and `ppt sync` as their users run them.

mod lab;
mod pages;
mod support;
