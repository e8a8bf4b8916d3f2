//! `ppt doctor [PID]`: what stands in the way.
//!
//! ```text
//! $ ppt doctor 4711
//! ok       kernel         Linux 6.1.0; this ppt attaches to x86_64 programs
//! problem  ptrace         kernel.yama.ptrace_scope is 1: only a parent may attach
//!                         → run ppt with CAP_SYS_PTRACE (sudo ppt …), or: sudo sysctl …
//! …
//! ```
//!
//! Where what was found is what an attach would say, `more:` names it as the attach does.

use std::io::Write;
use std::process::ExitCode;

use ppt_agent::System;
use ppt_agent::doctor::{self, Check, Verdict};

use crate::args;
use crate::code::Code;
use crate::wording::found_and_remedy;
use crate::{exit, report};

pub(crate) fn run(args: &args::Doctor) -> ExitCode {
    let system = System::default();
    let mut checks = doctor::machine(&system);
    if let Some(pid) = args.pid() {
        checks.extend(doctor::process(&system, pid));
    }
    let ready = checks.iter().all(|check| check.verdict != Verdict::Problem);
    let text = if args.json { json(&checks, args.pid(), ready) } else { table(&checks) };
    match anstream::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            report::error(Code::CannotWrite, format_args!("cannot write to stdout: {error}"));
            exit::FAILED
        }
        _ if ready => exit::DONE,
        _ => exit::FAILED,
    }
}

fn table(checks: &[Check]) -> String {
    let width = checks.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for check in checks {
        let Check { name, verdict, code, .. } = check;
        let (found, remedy) = found_and_remedy(check);
        let style = match verdict {
            Verdict::Good => report::GREEN,
            Verdict::Note => report::YELLOW,
            Verdict::Problem => report::RED,
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

fn json(checks: &[Check], pid: Option<i32>, ready: bool) -> String {
    let pid = pid.map_or("null".into(), |pid| pid.to_string());
    let check = |it: &Check| {
        let (found, remedy) = found_and_remedy(it);
        let optional = |text: Option<&str>| text.map_or("null".into(), report::json_string);
        format!(
            "{{\"check\":{},\"verdict\":\"{}\",\"found\":{},\"remedy\":{},\"code\":{}}}",
            report::json_string(&it.name),
            it.verdict,
            report::json_string(&found),
            optional(remedy.as_deref()),
            optional(it.code)
        )
    };
    let checks: Vec<_> = checks.iter().map(check).collect();
    let checks = checks.join(",\n");
    format!("{{\"format\":1,\"pid\":{pid},\"ready\":{ready},\"checks\":[\n{checks}\n]}}\n")
}
