//! A library that writes, and can be unloaded.
#![deny(warnings)]

ppt_probe::include_frames!("clocks");

#[unsafe(no_mangle)]
pub extern "C" fn write_frames(count: i32) {
    for who in 0..count {
        clocks::Tick::write(|f| f.i = who);
    }
}
