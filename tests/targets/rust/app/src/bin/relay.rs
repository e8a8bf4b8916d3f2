//! relay ROUNDS: relay_main.c in Rust.
#![deny(warnings)]

ppt_probe::include_frames!("relay");

use relay::{Received, Sent, set_passed, write_passed};

fn main() {
    let rounds: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    app::serve(|| {
        for i in 0..rounds {
            let text = format!("message {i}");
            Sent::write(|f| {
                f.id = ppt_probe::hash_u64(i.into());
                f.when = 1000 + i64::from(i);
            });
            let mut template = Received::default();
            template.number = i;
            Received::write(|f| {
                *f = template;
                f.id = ppt_probe::hash_u64(i.into());
                f.body = ppt_probe::hash128(text.as_bytes());
            });
            set_passed!(ticket = u64::from(i));
            write_passed!(body = ppt_probe::hash128(text.as_bytes()));
        }
        u64::from(3 * rounds)
    });
}
