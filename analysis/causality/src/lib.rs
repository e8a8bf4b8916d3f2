//! What caused what, the ways that led there, and what a faster part would be worth: arithmetic only,
//! no I/O.
#![forbid(unsafe_code)]
