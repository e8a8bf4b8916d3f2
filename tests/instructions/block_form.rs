//! The block form of block_form.c, in Rust.
#![deny(warnings)]

include!("writer.rs");

/// A function with Rust's unwinding ABI: plain C's may not unwind, and enforcing that costs two
/// instructions.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C-unwind" fn block_form_rust(i: u64) {
    writer::Writer::write(|f| {
        f.kind = i as i32;
        f.who = (i >> 1) as i32;
        f.start = i as i64;
        f.middle = i as i64;
        f.end = i as i64;
        f.a = i;
        f.b = i;
        f.c = i;
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn prepare_rust() {
    writer::prepare();
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C-unwind" fn add_rust(i: u64) {
    writer::Seen::add(i);
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C-unwind" fn observe_rust(i: u64) {
    writer::Waits::observe(i as i64);
}
