//! At each line of stdin, sleeps five times and observes the duration, as a difference of two
//! stamps. Prints the helper's result for the last sleep, and the change of the monotonic clock.

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
