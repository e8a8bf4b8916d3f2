//! A simulated network between two hosts, with delay, jitter and loss in each direction.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The behaviour of one direction.
#[derive(Debug, Clone, Copy)]
pub struct RelayDirection {
    /// The minimum delay.
    pub base: Duration,
    /// The random additional delay.
    pub more: More,
    /// The fraction of lost packets.
    pub loss: f64,
    /// The fraction of packets that arrive twice, and once more with a wrong bit.
    pub harm: f64,
}

#[derive(Debug, Clone, Copy)]
pub enum More {
    None,
    /// Exponential with this mean.
    Exp(Duration),
    /// Pareto with this scale and the shape 1.5, at most half a second.
    Pareto(Duration),
}

/// Forwards packets to `address` to a host, and its answers to the last sender.
pub struct Relay {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub fn new(to: SocketAddr, there: RelayDirection, back: RelayDirection) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.connect(to).unwrap();
        [&near, &far].iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        let (address, stop) = (near.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let thread = Some(thread::spawn(move || run(&near, &far, there, back, &stopped)));
        Self { address, stop, thread }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn run(
    near: &UdpSocket,
    far: &UdpSocket,
    there: RelayDirection,
    back: RelayDirection,
    stop: &AtomicBool,
) {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    // The due time, the order of arrival, the direction, and the packet.
    let mut due = BinaryHeap::<Reverse<(Instant, u64, bool, Vec<u8>)>>::new();
    let (mut count, mut asker) = (0, None);
    let mut buffer = [0; 2048];
    while !stop.load(Relaxed) {
        let mut came = Vec::new();
        while let Ok((length, from)) = near.recv_from(&mut buffer) {
            asker = Some(from);
            came.push((true, buffer[..length].to_vec()));
        }
        while let Ok(length) = far.recv(&mut buffer) {
            came.push((false, buffer[..length].to_vec()));
        }
        for (is_there, packet) in came {
            let way = if is_there { there } else { back };
            for packet in chance.copies(way, packet) {
                count += 1;
                due.push(Reverse((Instant::now() + chance.delay(way), count, is_there, packet)));
            }
        }
        while due.peek().is_some_and(|peek| peek.0.0 <= Instant::now()) {
            let Some(Reverse((_, _, is_there, packet))) = due.pop() else { break };
            // Errors are ignored, because the receiver may be gone.
            let _ = match (is_there, asker) {
                (true, _) => far.send(&packet),
                (false, Some(asker)) => near.send_to(&packet, asker),
                (false, None) => Ok(0),
            };
        }
        let next = due.peek().map(|peek| peek.0.0.saturating_duration_since(Instant::now()));
        let wait = next.unwrap_or(Duration::from_millis(100)).min(Duration::from_millis(100));
        let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: wait.as_nanos() as i64 };
        let flags = rustix::event::PollFlags::IN;
        let mut fds = [near, far].map(|socket| rustix::event::PollFd::new(socket, flags));
        let _ = rustix::event::poll(&mut fds, Some(&wait));
    }
}

/// Random numbers that are the same in each run: xorshift64*.
struct Chance(u64);

impl Chance {
    /// A number from 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn copies(&mut self, way: RelayDirection, packet: Vec<u8>) -> Vec<Vec<u8>> {
        if self.next() < way.loss {
            return Vec::new();
        }
        if self.next() >= way.harm {
            return vec![packet];
        }
        let mut wrong = packet.clone();
        let bit = (self.next() * 8.0 * wrong.len() as f64) as usize;
        wrong[bit / 8] ^= 1 << (bit % 8);
        vec![packet.clone(), packet, wrong]
    }

    fn delay(&mut self, way: RelayDirection) -> Duration {
        let rest = 1.0 - self.next();
        let more = match way.more {
            More::None => Duration::ZERO,
            More::Exp(mean) => mean.mul_f64(-rest.ln()),
            More::Pareto(scale) => scale.mul_f64(rest.powf(-1.0 / 1.5) - 1.0),
        };
        way.base + more.min(Duration::from_millis(500))
    }
}
