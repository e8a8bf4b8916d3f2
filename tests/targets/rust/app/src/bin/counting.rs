//! At each line of stdin, adds to each counter and histogram of `counting.frame` a hundred times.

use std::io::BufRead;

ppt_probe::include_frames!("counting");

use only::{Level, Seen, Sizes, Waits};

fn main() {
    println!("ready");
    for _ in std::io::stdin().lock().lines() {
        for i in 0..100i32 {
            Seen::add(i as u64);
            Level::add(-i64::from(i));
            Waits::observe(if i < 5 { -1000 + i64::from(i) * 1000 } else { i64::from(i) * 1000 });
            Sizes::observe(i as u32);
        }
        println!("done");
    }
}
