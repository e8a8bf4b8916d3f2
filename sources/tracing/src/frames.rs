//! The buffers that `tracing.frame` and `callsites.frame` describe.

ppt_probe::include_frames!("tracing");
ppt_probe::include_frames!("callsites");
