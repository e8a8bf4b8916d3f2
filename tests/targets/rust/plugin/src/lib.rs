//! A library that writes frames and can be unloaded.
#![deny(warnings)]

ppt_probe::include_frames!("clocks");

#[unsafe(no_mangle)]
pub extern "C" fn write_frames(count: i32) {
    for who in 0..count {
        clocks::Tick::write(|f| f.i = who);
    }
}

/// What `host.c` calls.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_write(thread: i32, i: i32) {
    clocks::Tick::write(|f| {
        f.thread = thread;
        f.i = i;
        f.real.tv_sec = i.into();
    });
}
