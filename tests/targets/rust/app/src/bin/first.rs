//! first FRAMES [HOW]: `first_main.c` in Rust. HOW is `wait`, `panic` (inside a scope), or the exit
//! status.
#![deny(warnings)]
#![forbid(unsafe_code)]

ppt_probe::include_frames!("job");
use job::{Job, Login};

fn main() {
    Login::write(|f| f.who = 0);
    let mut args = std::env::args().skip(1);
    let frames = args.next().map_or(1, |arg| arg.parse().unwrap());
    for who in 1..frames {
        if who % 2 == 0 {
            Login::write(|f| f.who = who);
        } else {
            let _handle = Job::scope(|f| f.who = who);
        }
    }
    println!("written {frames}");
    match args.next().as_deref() {
        Some("wait") => while std::io::stdin().read_line(&mut String::new()).unwrap() != 0 {},
        Some("panic") => {
            let _handle = Job::scope(|f| f.who = frames);
            panic!("on purpose");
        }
        Some(status) => std::process::exit(status.parse().unwrap()),
        None => {}
    }
}
