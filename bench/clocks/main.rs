//! chronyd, ptp4l and ppt beside each other, at once over one cable: what each says of the clocks of two
//! hosts, and what is true.
//!
//! `cargo bench -p ppt-hosts --bench clocks -- [SECONDS]` needs chronyd, chronyc, ptp4l (packages chrony and
//! linuxptp), setpriv, and the right to make network namespaces. The two hosts are namespaces of this machine,
//! so that their clocks are the same: a program that reports a difference is wrong by that. No clock is set.
//! Namespaces, cable and daemons are gone with this program.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use ppt_clock::sync::{ClockReadings, HEADER, Record};
use ppt_clock::times::{ClockModel, Times};
use ppt_hosts::probe::{
    HostClock, Measurement, PeerIdentity, ProbeOptions, ProbeServer, ProbedHost, RecordSink,
    SharedKey, TimeSource,
};

type Failed = Box<dyn Error + Send + Sync>;

/// Until all three have found to each other, nothing counts.
const SETTLE: Duration = Duration::from_secs(40);
/// Loops that keep the processors busy.
const LOOPS: usize = 4;
/// Moments at which bounds are looked at.
const MOMENTS: u64 = 100_000;

fn main() -> Result<(), Failed> {
    let seconds = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(120);
    println!(
        "| load | who | statements | mean error, ns | p99 | worst | error stated, ns: mean | held |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for loops in [0, LOOPS] {
        let over = AtomicBool::new(false);
        let readings = thread::scope(|scope| {
            for _ in 0..loops {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            // It goes to a namespace of its own.
            let run = scope.spawn(|| measure(SETTLE + Duration::from_secs(seconds)));
            let readings = run.join().unwrap_or_else(|_| Err("a thread broke".into()));
            over.store(true, Relaxed);
            readings
        })?;
        tell(if loops == 0 { "idle" } else { "4 busy loops" }, &readings)?;
    }
    Ok(())
}

/// Everybody at once, from within a new namespace with a cable to another one.
fn measure(duration: Duration) -> Result<ClockReadings, Failed> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    ip("link set lo up")?;
    let folder = tempfile::tempdir()?;
    // chronyd answers in no folder that others may write to, or look into.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
    let (path, over) = (folder.path(), AtomicBool::new(false));
    let (say, said) = channel();
    let (cable, is_there) = channel();
    let (serve, serves) = channel();
    thread::scope(|scope| {
        let over = &over;
        let other = scope.spawn(move || -> Result<(), Failed> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            say.send(gettid())?;
            is_there.recv()?;
            for words in ["addr add 10.77.0.2/24 dev far", "link set far up", "link set lo up"] {
                ip(words)?;
            }
            let _chronyd = chronyd(path, "far", "local stratum 1\nallow\n")?;
            let _ptp4l = ptp4l(path, "far", "--masterOnly=1")?;
            let mut server = ProbeServer::bind(
                ([10, 77, 0, 2], 0).into(),
                key()?,
                identity("far")?,
                HostClock::default(),
            )?;
            serve.send(server.address()?)?;
            server.run(over, &mut |_| ())?;
            Ok(())
        });
        let asked = (|| -> Result<Lines, Failed> {
            let far = said.recv()?;
            ip(&format!("link add near type veth peer name far netns {far}"))?;
            ip("addr add 10.77.0.1/24 dev near")?;
            ip("link set near up")?;
            cable.send(())?;
            let asks = "server 10.77.0.2 minpoll -3 maxpoll -3 xleave\n";
            let _chronyd = chronyd(path, "near", asks)?;
            let _ptp4l = ptp4l(path, "near", "--slaveOnly=1")?;
            let sources = vec![
                TimeSource::Chrony { chronyc: chronyc(path, "near")? },
                TimeSource::Ptp4l { log: path.join("near.ptp4l") },
            ];
            let options =
                ProbeOptions { duration: Some(duration), sources, ..ProbeOptions::default() };
            let address = serves.recv()?;
            let hosts = [ProbedHost { name: address.to_string(), addresses: vec![address] }];
            let (me, clock) = (identity("near")?, HostClock::default());
            let measurement = Measurement {
                hosts: &hosts,
                key: &key()?,
                me: &me,
                clock: &clock,
                options: &options,
            };
            let mut lines = Lines(format!("{HEADER}\n").into_bytes());
            let mut tell = |event| match event {
                ppt_hosts::probe::ProbeEvent::Second(_) => {}
                event => eprintln!("{event:?}"),
            };
            measurement.run(over, &mut lines, &mut tell)?;
            Ok(lines)
        })();
        over.store(true, Relaxed);
        drop(cable);
        let other = other.join().map_err(|_| "the other host broke")?;
        let lines = asked.map_err(|error| match other {
            Err(other) => other,
            Ok(()) => error,
        })?;
        let mut readings = ClockReadings::default();
        readings.read(&lines.0)?;
        Ok(readings)
    })
}

/// Rows of the table.
fn tell(load: &str, readings: &ClockReadings) -> Result<(), Failed> {
    let hz = readings.hosts()[0].tick_hz();
    let ticks = readings.probes().iter().map(|probe| probe.from_tick);
    let (first, last) = (ticks.clone().min().ok_or("no probes")?, ticks.max().unwrap_or(0));
    let first = first + SETTLE.as_secs() * hz;
    for source in ["chrony", "ptp4l"] {
        let said = readings
            .time_sources()
            .iter()
            .filter(|time_source| time_source.source == source && time_source.tick >= first);
        // The difference is none.
        let stated = said.map(|report| Stated {
            error_ns: report.offset_ns.unsigned_abs() as f64,
            bound_ns: report.error_ns as f64,
            holds: report.offset_ns.unsigned_abs() <= report.error_ns,
        });
        row(load, source, &stated.collect::<Vec<_>>());
    }
    let times = Times::between_hosts(readings, 0, &ClockModel::default())?;
    let stated = (0..MOMENTS).filter_map(|number| {
        let tick = first + (last - first) / MOMENTS * number;
        let (at, tick) = (times.at(1, tick)?, i128::from(tick));
        let ns = |ticks: i128| ticks as f64 * 1e9 / hz as f64;
        Some(Stated {
            error_ns: ns(at.mid - tick).abs(),
            bound_ns: ns(at.hi - at.lo) / 2.0,
            holds: at.lo <= tick && tick <= at.hi,
        })
    });
    row(load, "ppt sync", &stated.collect::<Vec<_>>());
    Ok(())
}

/// An estimate.
struct Stated {
    /// What it is wrong by.
    error_ns: f64,
    /// What it is said to be wrong by at most.
    bound_ns: f64,
    /// Whether that is so.
    holds: bool,
}

fn row(load: &str, who: &str, stated: &[Stated]) {
    let mut errors: Vec<_> = stated.iter().map(|stated| stated.error_ns).collect();
    errors.sort_by(f64::total_cmp);
    let at = |part: f64| errors.get((errors.len() as f64 * part) as usize).copied();
    let mean = |sum: f64| sum / errors.len() as f64;
    println!(
        "| {load} | {who} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} % |",
        errors.len(),
        mean(errors.iter().sum()),
        at(0.99).unwrap_or(f64::NAN),
        errors.last().copied().unwrap_or(f64::NAN),
        mean(stated.iter().map(|it| it.bound_ns).sum()),
        mean(stated.iter().filter(|it| it.holds).count() as f64 * 100.0)
    );
}

fn key() -> Result<SharedKey, Failed> {
    SharedKey::new(b"of this program alone").ok_or_else(|| "a short key".into())
}

fn identity(name: &str) -> Result<PeerIdentity, Failed> {
    Ok(PeerIdentity::of_this_host(Some(name), &HostClock::default())?)
}

struct Lines(Vec<u8>);

impl RecordSink for Lines {
    fn put(&mut self, record: &Record) -> io::Result<()> {
        record.write_to(&mut self.0)
    }

    fn keep(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A daemon of the namespace of this thread, until it is dropped, or this thread ends however.
struct Daemon(Child);

impl Daemon {
    fn new(words: &[&str], log: &Path) -> Result<Self, Failed> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(words).stdin(Stdio::null());
        command.stdout(File::create(log)?).stderr(File::options().append(true).open(log)?);
        let child = command.spawn().map_err(|error| format!("setpriv {}: {error}", words[0]))?;
        Ok(Self(child))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// chronyd of a host, which sets no clock, and answers chronyc.
fn chronyd(folder: &Path, host: &str, lines: &str) -> Result<Daemon, Failed> {
    let file = |what: &str| folder.join(format!("{host}.{what}")).display().to_string();
    let (socket, pid) = (file("sock"), file("pid"));
    let own = format!("cmdport 0\nbindcmdaddress {socket}\npidfile {pid}\nuser root\n");
    fs::write(file("conf"), format!("{lines}{own}"))?;
    let log = folder.join(format!("{host}.chronyd"));
    let mut daemon = Daemon::new(&["chronyd", "-x", "-d", "-f", &file("conf")], &log)?;
    let end = Instant::now() + Duration::from_secs(30);
    while !Path::new(&socket).exists() {
        if daemon.0.try_wait()?.is_some() || Instant::now() > end {
            return Err(format!("chronyd: {}", fs::read_to_string(log)?).into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(daemon)
}

/// A chronyc that asks the chronyd of a host.
fn chronyc(folder: &Path, host: &str) -> Result<PathBuf, Failed> {
    let (program, socket) = (folder.join("chronyc"), folder.join(format!("{host}.sock")));
    let text = format!("#!/bin/sh\nexec chronyc -h '{}' \"$@\"\n", socket.display());
    fs::write(&program, text)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
    Ok(program)
}

/// ptp4l of a host, which sets no clock: it prints an offset each second.
fn ptp4l(folder: &Path, host: &str, role: &str) -> Result<Daemon, Failed> {
    let socket = format!("--uds_address={}", folder.join(format!("{host}.uds")).display());
    let words = [
        "ptp4l",
        "-i",
        host,
        "-S",
        "-m",
        "-q",
        "--free_running=1",
        "--freq_est_interval=0",
        "--summary_interval=-3",
        "--logSyncInterval=-3",
        "--logMinDelayReqInterval=-3",
        &socket,
        role,
    ];
    Daemon::new(&words, &folder.join(format!("{host}.ptp4l")))
}

fn ip(words: &str) -> Result<(), Failed> {
    let output = Command::new("ip").args(words.split(' ')).output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}
