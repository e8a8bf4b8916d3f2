//! `ppt sync`: reads the clocks of hosts by exchanging probes.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use ppt_hosts::probe::{
    HostClock, LinkCounts, MeasureError, Measurement, PORT, PeerIdentity, ProbeEvent, ProbeOptions,
    ProbeServer, ProbedHost, ServerEvent, SharedKey, SyncFile, TimeSource, resolve,
};
use ppt_output::{Readers, Rules};
use ppt_text::exit::ExitStatus;
use ppt_text::message::{self, StatusLine};
use ppt_text::{duration, grouped};

use crate::args::{Serve, Sync, SyncCommand};
use crate::error::HostsError;

/// Interval at which signals are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &Sync) -> Result<ExitStatus, HostsError> {
    match &args.command {
        Some(SyncCommand::Serve(serve)) => self::serve(serve),
        None => ask(args),
    }
}

fn serve(args: &Serve) -> Result<ExitStatus, HostsError> {
    let (key, clock) = own_key_and_clock(args.key.as_deref())?;
    let me =
        PeerIdentity::of_this_host(args.name.as_deref(), &clock).map_err(HostsError::no_sync)?;
    let text = args.address.clone().unwrap_or_else(|| format!("0.0.0.0:{PORT}"));
    let address = resolve(&text).map_err(HostsError::no_sync)?[0];
    let name = me.host.name().to_owned();
    let mut server = ProbeServer::bind(address, key, me, clock).map_err(HostsError::no_sync)?;
    let address = server.address().map_err(HostsError::no_sync)?;
    message::note(format_args!("host {name} answers on {address} (UDP); Ctrl-C ends it"));
    let mut report = |event| match event {
        ServerEvent::Greeted { address, identity } => {
            message::note(format_args!("host {} asks from {address}", identity.host.name()));
        }
        ServerEvent::OtherVersion { address, version } => message::warning(
            "no-sync",
            format_args!(
                "{address} speaks version {version} of the protocol, which this program does not"
            ),
        ),
    };
    let counts = until_signal(|stop| server.run(stop, &mut report)).map_err(HostsError::no_sync)?;
    let refused = counts.foreign + counts.replayed + counts.late + counts.unknown + counts.crowded;
    message::note(format_args!(
        "{} questions were answered, and {} packets were not: {} of another key or none, {} had come \
         before, {} came too late, {} of unknown sessions, {} of more hosts than are served at a time",
        grouped(counts.answered),
        grouped(refused),
        grouped(counts.foreign),
        grouped(counts.replayed),
        grouped(counts.late),
        grouped(counts.unknown),
        grouped(counts.crowded)
    ));
    Ok(ExitStatus::DONE)
}

fn ask(args: &Sync) -> Result<ExitStatus, HostsError> {
    let (key, clock) = own_key_and_clock(args.key.as_deref())?;
    let me =
        PeerIdentity::of_this_host(args.name.as_deref(), &clock).map_err(HostsError::no_sync)?;
    let asked = |name: &String| {
        let addresses = resolve(name).map_err(HostsError::no_sync)?;
        Ok(ProbedHost { name: name.clone(), addresses })
    };
    let hosts = args.hosts.iter().map(asked).collect::<Result<Vec<_>, HostsError>>()?;
    let rules = Rules { force: args.force, readers: Readers::ByUmask, ..Rules::default() };
    let mut file = SyncFile::create(&args.output, &rules)?;
    let (duration, sources) = (args.duration, sources(args));
    let options = ProbeOptions { duration, rate: args.rate, sources, ..ProbeOptions::default() };
    let measurement =
        Measurement { hosts: &hosts, key: &key, me: &me, clock: &clock, options: &options };
    let mut status = StatusLine::default();
    let mut seconds = 0;
    let mut report = |event| match event {
        ProbeEvent::Answered { place, address, identity } => {
            status.clear();
            let (asked, host) = (&hosts[place].name, identity.host.name());
            message::note(format_args!("{asked} ({address}) is host {host}"));
        }
        ProbeEvent::Silent { place } => {
            status.clear();
            let text = format_args!("{} answers no more; it is asked on", hosts[place].name);
            message::warning("no-sync", text);
        }
        ProbeEvent::LeftOut { error, .. } => {
            status.clear();
            message::warning("no-sync", error);
        }
        ProbeEvent::Second(counts) => {
            seconds += 1;
            let complete: u64 = counts.iter().map(|count| count.complete).sum();
            status.show(format_args!("ppt: {seconds} s, {} probes", grouped(complete)));
        }
    };
    let counts = until_signal(|stop| measurement.run(stop, &mut file, &mut report));
    status.clear();
    let counts = counts.map_err(measured)?;
    let mut stderr = std::io::stderr().lock();
    for (host, counts) in hosts.iter().zip(&counts) {
        let _ = writeln!(stderr, "{}", summary(&host.name, counts));
    }
    let none = hosts.iter().zip(&counts).find(|entry| entry.1.complete == 0);
    match none {
        None => Ok(ExitStatus::DONE),
        Some((host, counts)) => Err(HostsError::no_sync(nothing(&host.name, counts))),
    }
}

/// The sources of true time.
fn sources(args: &Sync) -> Vec<TimeSource> {
    let chrony = args.chrony.then(|| TimeSource::Chrony { chronyc: "chronyc".into() });
    let ptp4l = args.ptp4l.iter().map(|log| TimeSource::Ptp4l { log: log.clone() });
    let pps = args.pps.iter().map(|edges| TimeSource::Pps { edges: edges.clone() });
    chrony.into_iter().chain(ptp4l).chain(pps).collect()
}

/// The key and the clocks of this host.
fn own_key_and_clock(key: Option<&std::path::Path>) -> Result<(SharedKey, HostClock), HostsError> {
    let Some(key) = key else {
        return Err(HostsError::Usage(
            "--key FILE is needed: both sides read the same one (`head -c 32 /dev/urandom > key; chmod \
             600 key`)"
                .to_owned(),
        ));
    };
    let key = SharedKey::read(key).map_err(HostsError::sync_key)?;
    Ok((key, HostClock::of_this_host().map_err(HostsError::no_sync)?))
}

/// Runs `work` until a signal sets its stop flag.
fn until_signal<T: Send>(work: impl FnOnce(&AtomicBool) -> T) -> T {
    ppt_signals::end_work();
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) && !stop.load(Relaxed) {
                stop.store(ppt_signals::came(), Relaxed);
                thread::sleep(POLL_INTERVAL);
            }
        });
        let result = work(&stop);
        done.store(true, Relaxed);
        result
    })
}

fn summary(name: &str, counts: &LinkCounts) -> String {
    let least = counts.least_ns.map_or_else(String::new, |ns| {
        format!(", least way there and back {}", duration(ns as f64))
    });
    let lost = counts.asked.saturating_sub(counts.complete);
    format!(
        "ppt: {name}: {} of {} probes{least}; {} without: {} lost on the way there, {} without an \
         answer in time, {} without a stamp",
        grouped(counts.complete),
        grouped(counts.asked),
        grouped(lost),
        grouped(counts.lost_there),
        grouped(counts.unanswered),
        grouped(counts.unstamped)
    )
}

fn nothing(name: &str, counts: &LinkCounts) -> String {
    if counts.unstamped > 0 {
        return format!("{name}: no probe has all its stamps: the network device gives none");
    }
    format!("{name}: no probe came back")
}

fn measured(error: MeasureError) -> HostsError {
    match error {
        MeasureError::Write(error) => HostsError::Write("the readings".to_owned(), error),
        other => HostsError::no_sync(other),
    }
}
