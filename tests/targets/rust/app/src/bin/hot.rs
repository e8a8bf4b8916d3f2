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

/// Captures more than fits into registers, and calls a function.
#[unsafe(no_mangle)]
#[inline(never)]
fn block_form_busy(a: &[u64; 8], names: &[String], who: i32, x: f64) {
    Job::write(|f| {
        f.who = who;
        f.bytes = a.iter().sum();
        f.pos = [x as f32; 3];
        f.name.set(&names[who as usize]);
        f.handle_end = job::now();
    });
}

/// In the middle of other work.
#[unsafe(no_mangle)]
#[inline(never)]
fn block_form_between(numbers: &mut [u64]) -> u64 {
    let mut sum = 0;
    for (i, it) in numbers.iter_mut().enumerate() {
        *it += sum;
        Job::write(|f| {
            f.who = i as i32;
            f.bytes = *it;
        });
        sum ^= *it;
    }
    sum
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
        block_form_busy(&[1; 8], &[String::new(), "b".into()], 1, 0.5);
        block_form_between(&mut [1]);
        macro_form(1);
        5
    });
}
