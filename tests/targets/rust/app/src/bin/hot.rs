//! One function per form, for a disassembler.
#![deny(warnings)]

ppt_probe::include_frames!("job");
use job::{Job, Kind};

#[unsafe(no_mangle)]
#[inline(never)]
fn block_form(who: i32) {
    Job::write(|f| {
        f.kind = Kind::Login;
        f.who = who;
        f.pos = [1.0, 0.5, -1.0];
    });
}

#[unsafe(no_mangle)]
#[inline(never)]
fn block_form_text(name: &str) {
    Job::write(|f| f.name.set(name));
}

#[unsafe(no_mangle)]
#[inline(never)]
fn macro_form(who: i32) {
    job::write_job!(who = who);
}

fn main() {
    app::serve(|| {
        block_form(1);
        block_form_text("a");
        macro_form(1);
        3
    });
}
