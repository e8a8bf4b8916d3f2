//! choosing_main.c in Rust.
#![deny(warnings)]

use std::cell::Cell;
use std::io::BufRead;

ppt_probe::include_frames!("choosing");

use choosing::{Bytes, Job, Leg, LegStep, Plain, Slot, Stamped, Waits};

thread_local! {
    static RAN: [Cell<u64>; 7] = const { [const { Cell::new(0) }; 7] };
}

fn counted(what: usize, n: u64) -> u64 {
    RAN.with(|ran| ran[what].set(ran[what].get() + 1));
    n
}

fn one(n: u64) {
    Plain::write(|f| f.n = counted(0, n));
    Stamped::write(|f| {
        f.n = counted(1, n);
        f.when = choosing::now();
    });
    Job::begin(|f| f.id = counted(2, n));
    Leg::step(LegStep::Leave, |f| f.id = counted(3, n));
    Leg::step(LegStep::Arrive, |f| f.id = counted(3, n));
    Job::end(|f| f.id = counted(2, n));
    drop(Slot::scope(|_| _ = counted(4, n)));
    Bytes::add(1);
    Waits::observe(5);
}

fn main() {
    println!("ready");
    let mut n = 0;
    for line in std::io::stdin().lock().lines() {
        for _ in 0..line.unwrap().parse::<u64>().unwrap() {
            n += 1;
            one(n);
        }
        let ran = RAN.with(|ran| ran.each_ref().map(|count| count.replace(0).to_string()));
        println!("ran {}", ran.join(" "));
    }
}
