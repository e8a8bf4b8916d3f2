//! The command that starts the helper of a host.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::options::LabOptions;
use crate::lab::host::{HUB, ISOLATED, NETWORK, PLAIN};
use crate::lab::plan::{PlannedHost, Via};

/// The helper of a host. Every word from a file has been checked, and no shell of this machine sees
/// any of them.
pub(super) fn helper(host: &PlannedHost, options: &LabOptions) -> Command {
    let how = if host.isolate { ISOLATED } else { PLAIN };
    let own = &options.own;
    match &host.via {
        Via::Local => with(own.command("keep"), how, &host.name),
        Via::Made => with(own.command("keep"), NETWORK, &host.name),
        Via::Named(name) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", name]).arg(&own.program).args(&own.words).arg("keep");
            with(command, how, &host.name)
        }
        Via::Ssh(to) => {
            let mut words = options.ssh.iter();
            let mut command = Command::new(words.next().map_or("ssh".as_ref(), |name| &**name));
            command.args(words).args(["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5"]);
            command.args(["-o", "ServerAliveCountMax=3", "-o", "ClearAllForwardings=yes"]);
            command.args(["--", to, host.helper.as_deref().unwrap_or("ppt")]);
            command.args(["lab", "host", "keep"]);
            with(command, how, &host.name)
        }
    }
}

/// The helper with the network namespace that joins all others.
pub(super) fn hub(options: &LabOptions) -> Command {
    with(options.own.command("keep"), HUB, HUB)
}

fn with(mut command: Command, how: &str, name: &str) -> Command {
    command.args([how, name]);
    command
}

/// The program on a host that a word of a plan names.
pub(super) fn program(host: &PlannedHost, word: &str) -> String {
    match &host.dir {
        Some(dir) if word.contains('/') && Path::new(word).is_relative() => {
            let path: PathBuf = dir.join(word).components().collect();
            path.to_string_lossy().into_owned()
        }
        _ => word.to_owned(),
    }
}

/// The `ppt` that captures on a host.
pub(super) fn ppt(host: &PlannedHost, options: &LabOptions) -> String {
    let own = || match host.via {
        Via::Ssh(_) => "ppt".to_owned(),
        _ => options.ppt.to_string_lossy().into_owned(),
    };
    host.ppt.as_deref().map_or_else(own, |ppt| program(host, ppt))
}
