//! errands THREADS ROUNDS: errands_main.c in Rust.
#![deny(warnings)]

use std::sync::Barrier;

ppt_probe::include_frames!("errands");

use errands::{Errand, ErrandEnd, Idle, Leg, LegStep, Verb, begin_visit, end_visit, set_visit, step_leg};

fn id(thread: i32, i: i32) -> u64 {
    (thread as u64) << 32 | i as u64
}

fn take_in(thread: i32, i: i32) {
    Errand::begin(|f| {
        f.id = id(thread, i);
        f.thread = thread;
        f.verb = if i % 2 == 0 { Verb::Get } else { Verb::Put };
    });
    Leg::step(LegStep::Leave, |f| {
        f.id = id(thread, i);
        f.thread = thread;
    });
    begin_visit!(name = &*format!("{thread}-{i}"), thread = thread, when = 1000 + i64::from(i));
}

fn done(thread: i32, of: i32, i: i32) {
    step_leg!(LegStep::Pass, id = id(of, i), thread = thread);
    step_leg!(LegStep(2));
    set_visit!(name = &*format!("{of}-{i}"), when = 2000 + i64::from(i));
    end_visit!(thread = thread);
    let mut template = ErrandEnd::default();
    template.bytes = i as u32 * 7;
    Errand::end(|f| {
        *f = template;
        f.thread = thread;
        f.id = id(of, i);
    });
}

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<i32>().unwrap());
    let (threads, rounds) = (args.next().unwrap(), args.next().unwrap());
    app::serve(|| {
        let all_have_begun = &Barrier::new(threads as usize);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    (0..rounds).for_each(|i| take_in(thread, i));
                    all_have_begun.wait();
                    let of = (thread + threads - 1) % threads;
                    (0..rounds).for_each(|i| done(thread, of, i));
                    Idle::write(|f| f.thread = thread);
                });
            }
        });
        (threads * (7 * rounds + 1)) as u64
    });
}
