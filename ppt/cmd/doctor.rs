//! `ppt doctor [PID]`: reports what prevents attaching.
//!
//! ```text
//! $ ppt doctor 4711
//! ok       kernel         Linux 6.1.0; this ppt attaches to x86_64 programs
//! problem  ptrace         kernel.yama.ptrace_scope is 1: only a parent may attach
//!                         → run ppt with CAP_SYS_PTRACE (sudo ppt …), or: sudo sysctl …
//! …
//! ```
//!
//! Without a process, it also names commands that this ppt was built without. If a finding is what an attach would report, `more:` names the same message.

use ppt_agent::doctor::{self, Check, CheckVerdict, Remedy};
use ppt_agent::{OwnRights, System};
use ppt_kernel::{KernelRequest, Stacks, Wanted};
use ppt_sources::FILE_NAME;
use ppt_text::exit::ExitStatus;
use serde::Serialize;

use crate::args;
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::preload::{self, Library};
use crate::wording::found_and_remedy;
use crate::{help, json, report, stdout, wording};

pub(crate) fn run(args: &args::Doctor) -> CommandResult {
    let system = System::default();
    let mut checks = doctor::machine(&system);
    checks.extend(kernel());
    match args.pid() {
        Some(pid) => {
            checks.extend(doctor::process(&system, pid));
            checks.extend(preloaded(&system, pid));
        }
        // Attaching needs neither of these, so a report about one process leaves them out.
        None => {
            checks.extend(left_out());
            checks.push(library());
        }
    }
    let ready = checks.iter().all(|check| check.verdict != CheckVerdict::Problem);
    let text = if args.json { json(&checks, args.pid(), ready) } else { table(&checks) };
    stdout::styled(&text).map_err(Failure::stdout)?;
    Ok(ExitStatus::from_success(ready))
}

/// Checks what `--kernel` can capture on this machine, by watching ppt itself for a moment.
fn kernel() -> Vec<Check> {
    let check = |verdict, found, remedy, code| Check {
        name: "--kernel".into(),
        verdict,
        found,
        remedy,
        code,
    };
    let stacks = Stacks { hertz: Stacks::HERTZ, waits: true, unwind: true };
    let (sched, syscalls, faults) = (true, true, true);
    let wanted = Wanted { sched, syscalls, faults, stacks: Some(stacks), probe_limit: 0 };
    let (kernel, mut missing) = KernelRequest::new(wanted, 0);
    let us = std::process::id() as i32;
    missing.extend(kernel.watch(us, nix::unistd::geteuid().as_raw(), Vec::new()).1);
    missing.extend(ppt_kernel::probes_missing());
    if missing.is_empty() {
        let found = "the kernel lets ppt capture switches, wake-ups, system calls, page faults, \
                     stacks and probes";
        return vec![check(CheckVerdict::Good, found.into(), None, None)];
    }
    let missing = missing.iter().map(|error| {
        let message = wording::of_kernel(error, OwnRights::of(&System::default()));
        let (found, remedy) = message.split_once("\n  ").unwrap_or((&message, ""));
        let remedy = (!remedy.is_empty()).then(|| Remedy::Words(remedy.into()));
        check(CheckVerdict::Note, found.into(), remedy, Some(error.code()))
    });
    missing.collect()
}

/// Notes the commands that this ppt was built without.
fn left_out() -> Option<Check> {
    let all = help::names().filter_map(|name| Some((name, help::left_out(name)?)));
    let all: Vec<_> = all.collect();
    let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
    Some(Check {
        name: "commands".into(),
        verdict: CheckVerdict::Note,
        found: format!("this ppt was built without ppt {}", names.join(", ")),
        remedy: Some(Remedy::Words(
            "install the package ppt, or run `cargo install --locked --path .` in ppt's sources"
                .into(),
        )),
        code: Some(all.first()?.1),
    })
}

fn with(verdict: CheckVerdict, found: String, remedy: Option<String>, code: Option<Code>) -> Check {
    let remedy = remedy.map(Remedy::Words);
    Check { name: "--with".into(), verdict, found, remedy, code: code.map(Into::into) }
}

/// Checks whether the library of `--with` is installed.
fn library() -> Check {
    match Library::find() {
        Ok(library) => {
            let path = preload::shown(library.path());
            let found = format!("{path} shows requests, waits for locks, and operations on files");
            with(CheckVerdict::Good, found, None, None)
        }
        Err(failure) => {
            let message = failure.message();
            let (found, remedy) = message.split_once("\n  ").unwrap_or((&message, ""));
            with(CheckVerdict::Note, found.into(), Some(remedy.into()), Some(Code::NoLibrary))
        }
    }
}

/// Checks whether the process has loaded that library; if not, the remedy is a command.
fn preloaded(system: &System, pid: i32) -> Option<Check> {
    let process = ppt_agent::preloaded(system, pid, FILE_NAME)?;
    Some(if process.is_loaded && process.has_io_uring {
        let found = format!("{FILE_NAME} is loaded; {}", wording::unseen_by_library("the process"));
        with(CheckVerdict::Note, found, None, Some(Code::IoUring))
    } else if process.is_loaded {
        let found = format!(
            "{FILE_NAME} is loaded: an attach shows requests, waits for locks, and operations on files"
        );
        with(CheckVerdict::Good, found, None, None)
    } else if let Some(barrier) = process.barrier {
        let code = Some(Code::NotPreloaded);
        with(CheckVerdict::Note, preload::why(barrier).into(), None, code)
    } else {
        let remedy = match process.service {
            Some(service) => format!(
                "`ppt with --systemd {service}` prints how the service gets it at its next start"
            ),
            None => "start it by `ppt run --with net,locks,files -- …`, or with the variable that \
                     `ppt with --env` prints"
                .into(),
        };
        let found = format!(
            "{FILE_NAME} is not loaded, so there are no frames of requests, locks and files"
        );
        with(CheckVerdict::Note, found, Some(remedy), None)
    })
}

fn table(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for check in checks {
        let Check { name, verdict, code, .. } = check;
        let (found, remedy) = found_and_remedy(check);
        let style = match verdict {
            CheckVerdict::Good => report::GREEN,
            CheckVerdict::Note => report::YELLOW,
            CheckVerdict::Problem => report::RED,
        };
        out += &format!("{style}{verdict:<7}{style:#}  {name:<width$}  {found}\n");
        let indent = 7 + 2 + width + 2;
        if let Some(remedy) = remedy {
            out += &format!("{:indent$}→ {remedy}\n", "");
        }
        if let Some(code) = code {
            out += &format!("{:indent$}more: ppt explain {code}\n", "");
        }
    }
    out
}

/// The JSON that scripts read.
#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    pid: Option<i32>,
    ready: bool,
    checks: Vec<DoctorRow<'a>>,
}

#[derive(Serialize)]
struct DoctorRow<'a> {
    check: &'a str,
    verdict: String,
    found: String,
    remedy: Option<String>,
    code: Option<&'static str>,
}

impl<'a> From<&'a Check> for DoctorRow<'a> {
    fn from(check: &'a Check) -> Self {
        let (found, remedy) = found_and_remedy(check);
        let verdict = check.verdict.to_string();
        Self { check: &check.name, verdict, found, remedy, code: check.code }
    }
}

fn json(checks: &[Check], pid: Option<i32>, ready: bool) -> String {
    let checks = checks.iter().map(DoctorRow::from).collect();
    json::lines(&Report { format: 1, pid, ready, checks })
}
