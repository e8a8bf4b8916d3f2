//! values THREADS ROUNDS: `values_main.c` in Rust.
#![deny(warnings)]
#![forbid(unsafe_code)]

ppt_probe::include_frames!("values");
ppt_probe::include_frames!("clocks");
use clocks::Tick;
use ppt_probe::{Timespec, Timeval};
use values::{Little, Odd, Small, Wide};

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
    Odd::write(|f| {
        const SINGLES: [f32; 8] = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -0.0,
            1e-45,
            f32::MAX,
            0.1,
            16_777_216.0,
        ];
        const DOUBLES: [f64; 8] = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            5e-324,
            f64::MAX,
            0.1,
            9_007_199_254_740_992.0,
        ];
        f.thread = thread;
        f.i = i;
        f.f = SINGLES[i as usize % 8];
        f.d = DOUBLES[i as usize % 8];
        f.cut.set("é€😀");
        f.control.set("a\tb\n\\\x01");
        f.list = [Small::None, Small::Many, Small(i as u8)];
        f.flags = std::array::from_fn(|bit| i >> bit & 1 != 0);
        f.most = u64::MAX - thread as u64;
        f.least = i64::MIN + n;
        f.spans = [-n, i64::MAX];
        f.at_start = tv(n + 1, 1);
        f.at_end = tv(n + 2, 999_999);
    });
    Tick::write(|f| {
        f.thread = thread;
        f.i = i;
        f.real = Timespec { tv_sec: n, tv_nsec: n % 1_000_000_000 };
    });
}

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<i32>().unwrap());
    let (threads, rounds) = (args.next().unwrap(), args.next().unwrap());
    app::serve(|| {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || (0..rounds).for_each(|i| one(thread, i)));
            }
        });
        (4 * threads * rounds) as u64
    });
}
