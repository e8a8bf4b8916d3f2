//! Tells the number of words of each line that it reads, and leaves a frame behind.

use std::io::BufRead;

ppt_probe::include_frames!("lines");

use lines::Line;

fn main() -> std::io::Result<()> {
    println!("ready");
    let (mut number, mut words) = (0, 0);
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        number += 1;
        let mut frame = Line::scope(|f| f.number = number); // stamps handle_start
        let count = line.split_whitespace().count();
        frame.set(|f| f.words = count as i32);
        println!("{count}");
        words += count;
        // … and handle_end here, where it is dropped
    }
    println!("lines {number}\nwords {words}");
    Ok(())
}
