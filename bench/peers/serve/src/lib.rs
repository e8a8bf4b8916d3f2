//! The commands of `bench/commands.h` for programs in Rust: on stdin, answers on stdout, each closed
//! by `end`. Those that only concern attaching (`block`, `spin`) are for programs that are attached
//! to, which are in C.

use std::io::{BufRead, Write};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Laps before a measurement, as in `commands.h`.
pub const WARM: u64 = 32_768;

/// One way to write an event: a loop around it, over these numbers.
pub type Way = (&'static str, fn(u64, u64));

/// What collects inside of the process.
pub trait Collecting {
    /// Begins to collect into this file.
    fn on(&mut self, way: &str, file: &str);

    /// Everything written is in the file when this returns. How many events the tool says it lost,
    /// if it says so.
    fn off(&mut self) -> Option<u64>;
}

/// A program without anything that collects.
pub struct Nothing;

impl Collecting for Nothing {
    fn on(&mut self, _: &str, _: &str) {}

    fn off(&mut self) -> Option<u64> {
        None
    }
}

/// Does what stdin says until it ends.
pub fn serve(ways: &[Way], mut collecting: impl Collecting) {
    let named = |name: &str| {
        let found = ways.iter().find(|way| way.0 == name);
        found.unwrap_or_else(|| panic!("no way is called {name}")).1
    };
    let number = |word: &str| word.parse::<u64>().expect("a number");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["hello"] => {}
            ["write", way, count, threads] => write(named(way), number(count), number(threads)),
            ["steady", way, rate, seconds] => steady(named(way), number(rate), number(seconds)),
            ["on", way, file] => collecting.on(way, file),
            ["off"] => {
                if let Some(lost) = collecting.off() {
                    println!("lost {lost}");
                }
            }
            _ => panic!("not a command: {line}"),
        }
        println!("end");
        std::io::stdout().flush().expect("stdout");
    }
}

/// What one thread of `write` found.
struct Written {
    cpu: Duration,
    began: Instant,
    ended: Instant,
}

fn write(way: fn(u64, u64), count: u64, threads: u64) {
    let start = Barrier::new(usize::try_from(threads).expect("threads"));
    let one = |number: u64| {
        pin(number);
        way(0, WARM);
        start.wait();
        let (began, cpu) = (Instant::now(), cpu(libc::CLOCK_THREAD_CPUTIME_ID));
        way(WARM, WARM + count);
        let cpu = self::cpu(libc::CLOCK_THREAD_CPUTIME_ID) - cpu;
        Written { cpu, began, ended: Instant::now() }
    };
    let all: Vec<Written> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || one(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a writer")).collect()
    });
    let events = (count * threads) as f64;
    let cpu: Duration = all.iter().map(|it| it.cpu).sum();
    let began = all.iter().map(|it| it.began).min().expect("a thread");
    let ended = all.iter().map(|it| it.ended).max().expect("a thread");
    println!("ns {:.4}", cpu.as_secs_f64() * 1e9 / events);
    println!("rate {:.0}", events / (ended - began).as_secs_f64());
    println!("written {}", (count + WARM) * threads);
}

fn steady(way: fn(u64, u64), rate: u64, seconds: u64) {
    let process = cpu(libc::CLOCK_PROCESS_CPUTIME_ID);
    let writer = thread::spawn(move || {
        pin(0);
        let started = cpu(libc::CLOCK_THREAD_CPUTIME_ID);
        let each = if rate <= 10_000 { 1 } else { rate / 1000 };
        let step = Duration::from_nanos(1_000_000_000 * each / rate);
        let mut next = Instant::now();
        for from in (0..rate * seconds).step_by(each as usize) {
            next += step;
            thread::sleep(next.saturating_duration_since(Instant::now()));
            way(from, from + each);
        }
        cpu(libc::CLOCK_THREAD_CPUTIME_ID) - started
    });
    let writer = writer.join().expect("the writer");
    let process = cpu(libc::CLOCK_PROCESS_CPUTIME_ID) - process;
    println!("written {}", rate * seconds);
    println!("writer {}\nprocess {}", writer.as_nanos(), process.as_nanos());
}

fn cpu(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours for the length of the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// This thread onto one of the CPUs that the process may use.
fn pin(thread: u64) {
    // SAFETY: sets of CPUs are plain bits, for which zeroes are valid; they are ours.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(libc::getpid(), size_of_val(&allowed), &mut allowed);
        let cpus: Vec<usize> =
            (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed)).collect();
        if !cpus.is_empty() {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpus[thread as usize % cpus.len()], &mut one);
            libc::sched_setaffinity(0, size_of_val(&one), &one);
        }
    }
}
