//! Clocks of several hosts: the text of their readings, and the bounds between them.

mod rig;
mod sync_text;
mod times;
