//! At each line of stdin, naps five times and observes how long, as a difference of two stamps. Prints
//! what the helper said of the last nap and what the monotonic clock did.

use std::io::BufRead;
use std::time::{Duration, Instant};

ppt_probe::include_frames!("lengths");

use lengths::Naps;

fn main() {
    println!("ready");
    for _ in std::io::stdin().lock().lines() {
        let mut said = (0, 0);
        for _ in 0..5 {
            let clock = Instant::now();
            let start = lengths::now();
            std::thread::sleep(Duration::from_millis(20));
            let end = lengths::now();
            said = (lengths::ns_between(start, end), clock.elapsed().as_nanos());
            Naps::observe(said.0);
        }
        println!("done {} {} {}", said.0, said.1, lengths::ns_between(0, 7));
    }
}
