//! Measures the clocks of hosts: `sync serve ADDRESS KEY NAME`, and
//! `sync ask NAME KEY FILE RATE SECONDS HOST…`.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ppt_hosts::probe::{
    HostClock, Measurement, PeerIdentity, ProbeEvent, ProbeOptions, ProbeServer, ProbedHost,
    SharedKey, SyncFile, resolve,
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", address, key, name] => serve(address, key, name),
        ["ask", name, key, file, rate, seconds, ref hosts @ ..] => {
            let options = ProbeOptions {
                duration: Some(Duration::from_secs_f64(seconds.parse()?)),
                rate: rate.parse()?,
                ..ProbeOptions::default()
            };
            ask(name, key, file, &options, hosts)
        }
        _ => Err("sync serve ADDRESS KEY NAME | sync ask NAME KEY FILE RATE SECONDS HOST…".into()),
    }
}

fn serve(address: &str, key: &str, name: &str) -> Result<(), Box<dyn Error>> {
    let (key, clock) = (SharedKey::read(key.as_ref())?, HostClock::of_this_host()?);
    let me = PeerIdentity::of_this_host(Some(name), &clock)?;
    let mut server = ProbeServer::bind(resolve(address)?[0], key, me, clock)?;
    println!("{}", server.address()?);
    io::stdout().flush()?;
    let counts = server.run(&AtomicBool::new(false), &mut |event| eprintln!("{event:?}"))?;
    eprintln!("{counts:?}");
    Ok(())
}

fn ask(
    name: &str,
    key: &str,
    file: &str,
    options: &ProbeOptions,
    hosts: &[&str],
) -> Result<(), Box<dyn Error>> {
    let (key, clock) = (SharedKey::read(key.as_ref())?, HostClock::of_this_host()?);
    let me = PeerIdentity::of_this_host(Some(name), &clock)?;
    let asked = hosts.iter().map(|&name| {
        Ok::<_, Box<dyn Error>>(ProbedHost { name: name.to_owned(), addresses: resolve(name)? })
    });
    let hosts: Vec<_> = asked.collect::<Result<_, _>>()?;
    let mut sink = SyncFile::create(file.as_ref(), &ppt_output::Rules::default())?;
    let measurement = Measurement { hosts: &hosts, key: &key, me: &me, clock: &clock, options };
    let mut tell = |event| match event {
        ProbeEvent::Second(counts) => eprintln!("{counts:?}"),
        event => eprintln!("{event:?}"),
    };
    let counts = measurement.run(&AtomicBool::new(false), &mut sink, &mut tell)?;
    println!("{counts:?}");
    Ok(())
}
