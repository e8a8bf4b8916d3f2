//! values THREADS ROUNDS: `values_main.c` in Rust.
#![deny(warnings)]
#![forbid(unsafe_code)]

ppt_probe::include_frames!("values");
ppt_probe::include_frames!("clocks");
use clocks::Tick;
use ppt_probe::{Timespec, Timeval};
use values::{Little, Small, Wide};

fn tv(tv_sec: i64, tv_usec: i64) -> Timeval {
    Timeval { tv_sec, tv_usec }
}

fn one(thread: i32, i: i32) {
    let n = i64::from(i);
    values::write_every!(
        thread = thread,
        i = i,
        a = (i as i8).wrapping_mul(3),
        b = (i as u8).wrapping_mul(5),
        c = (i as i16).wrapping_mul(257),
        d = (i as u16).wrapping_mul(263),
        e = -i,
        f = 4_000_000_000 + i as u32,
        g = -5_000_000_000 * n,
        h = u64::MAX - n as u64,
        x = i as f32 * 0.25,
        y = f64::from(i) / 3.0,
        even = i % 2 == 0,
        took = 1_000_000_007 * n,
        when = tv(1_000_000_000 + n, n % 1_000_000),
        small = [Small::None, Small::Some, Small(9)][i as usize % 3],
        wide = if i % 2 == 0 { Wide::Low } else { Wide::High },
        name = format!("t{thread}-{i}").as_str(),
        raw = [i as u8, 1, 2, 0xff, 0],
        three = [i as i16, -i as i16, 7],
        pair = [f64::from(i), -0.5],
        stamps = [tv(n, 5), tv(0, 0)],
        text = if i % 2 == 0 { "tab\there, back\\slash, \x1b[31m" } else { "" },
    );
    Little::write(|f| {
        f.thread = thread;
        f.i = i;
        f.n = (i * 7) as u16;
    });
    Tick::write(|f| {
        f.thread = thread;
        f.i = i;
        f.real = Timespec { tv_sec: n, tv_nsec: n % 1_000_000_000 };
    });
}

fn main() {
    let mut args = std::env::args().skip(1).map(|it| it.parse::<i32>().unwrap());
    let (threads, rounds) = (args.next().unwrap(), args.next().unwrap());
    app::serve(|| {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || (0..rounds).for_each(|i| one(thread, i)));
            }
        });
        (3 * threads * rounds) as u64
    });
}
