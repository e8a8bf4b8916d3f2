//! `truth_main.c` in Rust, without `jump`. With `--cfg ppt_ticks` the counter is that of
//! `truth_ticks.h`.
#![deny(warnings)]

ppt_probe::include_frames!("truth");
use std::io::BufRead;

use truth::{Block, Scoped};

fn fence() {
    // SAFETY: only waits.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    // SAFETY: only waits.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("isb");
    }
}

fn real() -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    fence();
    // SAFETY: `t` is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut t) };
    fence();
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

#[cfg(ppt_ticks)]
#[unsafe(no_mangle)]
extern "C" fn ppt_ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of x86-64.
    let raw = unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    let raw: u64;
    #[cfg(target_arch = "aarch64")]
    // SAFETY: programs may read it.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) raw)
    };
    (1 << 60) + raw + (raw >> 12)
}

fn write(n: u64) {
    Block::write(|f| {
        f.n = n;
        f.before = real();
        f.when = truth::now();
        f.after = real();
    });
    truth::set_macros!(n = n, before = real());
    truth::set_macros!(when = truth::now());
    truth::write_macros!(after = real());
    let before = real();
    let mut scope = Scoped::scope(|f| f.n = n);
    scope.set(|f| {
        f.start_after = real();
        f.start_before = before;
        f.mono = truth::now_monotonic();
        f.real = truth::now_realtime();
        f.end_before = real();
    });
}

fn main() {
    assert_eq!(truth::now(), 0);
    println!("ready");
    let mut n = 0;
    for line in std::io::stdin().lock().lines() {
        let count: u64 = line.unwrap().strip_prefix("go ").unwrap().parse().unwrap();
        for _ in 0..count {
            write(n);
            n += 1;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        println!("written {n}");
    }
}
