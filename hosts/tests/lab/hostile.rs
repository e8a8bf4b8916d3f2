//! Helpers that lie, and hosts that disappear. They are reached as ssh hosts are, with this program
//! in place of ssh.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::process::ExitCode;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::rig::{Rig, RigResult, contains, own, same, trial};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        trial("hostile::what_no_helper_says", nonsense),
        trial("hostile::files_that_lead_elsewhere", files),
        trial("hostile::a_helper_that_never_answers", silent),
        trial("hostile::a_host_that_disappears_in_each_phase", disappears),
    ]
}

/// An experiment with a host that behaves in this way.
fn rig(kind: &str) -> Rig {
    let mut rig = Rig::new(
        r#"
name = "hostile"
host.a = { via = "ssh:a" }
host.b = { via = "local" }
[[phase]]
name = "first"
timeout = "1h"
a = { start = ["x"] }
b = { start = ["sleep", "1000000"] }
[[phase]]
name = "second"
timeout = "1h"
a = { run = ["x"] }
b = { run = ["sleep", "0"] }
[[phase]]
name = "third"
timeout = "1h"
all = { stop = true, collect = "*" }
"#,
    );
    rig.options.ssh = [own().into(), OsString::from("hostile"), kind.into()].to_vec();
    rig
}

/// The host `a`.
pub(crate) fn play(kind: &str) -> ExitCode {
    let mut host = HostileHost { kind: kind.to_owned() };
    let _ = host.serve();
    ExitCode::SUCCESS
}

struct HostileHost {
    kind: String,
}

impl HostileHost {
    fn tell(&self, message: &Value) -> std::io::Result<()> {
        self.frame(b'm', message.to_string().as_bytes())
    }

    fn frame(&self, kind: u8, payload: &[u8]) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(&[kind])?;
        out.write_all(&(payload.len() as u32).to_le_bytes())?;
        out.write_all(payload)?;
        out.flush()
    }

    fn hear(&self) -> std::io::Result<Value> {
        let mut stdin = std::io::stdin().lock();
        let mut head = [0; 5];
        stdin.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_le_bytes(head[1..].try_into().unwrap()) as usize];
        stdin.read_exact(&mut payload)?;
        Ok(serde_json::from_slice(&payload)?)
    }

    /// A correct helper, except for its type of misbehaviour.
    fn serve(&mut self) -> std::io::Result<()> {
        match &*self.kind {
            "banner" => return std::io::stdout().write_all(b"Welcome to a!\r\nYou have mail.\n"),
            "long-message" => return std::io::stdout().write_all(b"m\xff\xff\xff\xff"),
            "not-json" => return self.frame(b'm', b"{\"hello\":"),
            "data-first" => return self.frame(b'd', b"x"),
            "other-version" => {
                self.tell(&json!({"hello": {"version": 2, "boot_id": "", "kernel": "",
                    "machine": "", "cpu": "", "cpus": 1, "governor": "", "clock_source": "",
                    "isolation": "guard", "environment": []}}))?;
                return self.until_the_end();
            }
            "deaf" => return self.until_the_end(),
            _ => {}
        }
        self.tell(
            &json!({"hello": {"version": 1, "boot_id": "other", "kernel": "", "machine": "",
            "cpu": "", "cpus": 1, "governor": "", "clock_source": "", "isolation": "guard",
            "environment": []}}),
        )?;
        loop {
            let asked = self.hear()?;
            let what = match &asked {
                Value::String(word) => word.clone(),
                other => other.as_object().unwrap().keys().next().unwrap().clone(),
            };
            let phase = asked.pointer("/start/phase").and_then(Value::as_str).unwrap_or("");
            let at = [&*what, phase].join(" ");
            // The request at which it misbehaves, and how.
            match (&*self.kind, at.trim()) {
                (kind, at) if kind == format!("gone at {at}") => return Ok(()),
                ("flood", "start first") => loop {
                    self.tell(&json!({"failed": {"phase": "first", "words": [],
                        "problem": "running", "tail": ""}}))?;
                },
                ("twice", "start first") => self.tell(&json!({"done": {"started": 0}}))?,
                ("silent", "give-up") => return self.until_the_end(),
                ("silent", "start first") => continue,
                (kind, "collect") if kind.starts_with("file ") => {
                    self.tell(&json!({"file": {"name": &kind[5..]}}))?;
                }
                ("too-many", "collect") => {
                    for number in 0..=10_000 {
                        self.tell(&json!({"file": {"name": number.to_string()}}))?;
                        self.tell(&json!("file-end"))?;
                    }
                }
                ("long-data", "collect") => {
                    self.tell(&json!({"file": {"name": "x"}}))?;
                    self.frame(b'd', &vec![0; (256 << 10) + 1])?;
                }
                ("no-end", "collect") => self.tell(&json!({"file": {"name": "x"}}))?,
                ("data", "collect") => self.frame(b'd', b"x")?,
                ("unasked-file", "end") => self.tell(&json!({"file": {"name": "x.out"}}))?,
                ("twice-file", "collect") => {
                    for _ in 0..2 {
                        self.tell(&json!({"file": {"name": "x"}}))?;
                        self.tell(&json!("file-end"))?;
                    }
                }
                _ => {}
            }
            let answer = match &*what {
                "identify" => {
                    let found = json!({"found": {"path": "", "sha256": "", "build_id": null}});
                    let programs = asked.pointer("/identify/programs").unwrap();
                    let many =
                        if self.kind == "few" { 0 } else { programs.as_array().unwrap().len() };
                    json!({"identified": vec![found; many]})
                }
                "begin" => json!("begun"),
                "start" => json!({"done": {"started": 0}}),
                "stop" => json!("stopped"),
                "give-up" => json!({"unfinished": []}),
                "collect" | "end" => {
                    json!({"collected": {"unmatched": [], "left_out": [], "ends": []}})
                }
                _ => continue,
            };
            self.tell(&answer)?;
        }
    }

    /// Stays silent until the pipe is closed.
    fn until_the_end(&self) -> std::io::Result<()> {
        while self.hear().is_ok() {}
        Ok(())
    }
}

/// Why the experiment cannot start, or why its cell fails.
fn failure(rig: &mut Rig) -> String {
    match rig.run() {
        Err(error) => error.to_string(),
        Ok(summary) => {
            assert_eq!(summary.failed, 1);
            rig.manifest().cells.pop().unwrap().failure.unwrap()
        }
    }
}

fn nonsense() -> RigResult {
    let not = "host a is not trusted any more";
    for (kind, why) in [
        (
            "banner",
            format!(
                "phase setup: {not}: it says `Welcome to a!\\x0d\\nYou have mail.\\n`, which no helper of \
                 ppt says"
            ),
        ),
        (
            "long-message",
            format!("phase setup: {not}: it announces 4294967295 bytes: at most 4194304 are taken"),
        ),
        ("other-version", format!("phase setup: {not}: its ppt speaks version 2, this one 1")),
        ("data-first", format!("phase setup: {not}: it sent a message that answers no request")),
        ("few", format!("phase setup: {not}: it answers something else")),
    ] {
        same(&failure(&mut rig(kind)), &why)?;
    }
    // The phase in which the failure is seen depends on timing.
    contains(
        &failure(&mut rig("twice")),
        &format!(": {not}: it sent a message that answers no request"),
    )?;
    contains(&failure(&mut rig("not-json")), "its message cannot be read: EOF while parsing")?;
    // A flood is a failure of the host's first program, and the host is not waited for.
    contains(&failure(&mut rig("flood")), "host a")
}

fn files() -> RigResult {
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("x");
    let absolute = format!("file {}", target.display());
    for (kind, why) in [
        ("file ../x", "`../x` is no name of a file within a folder"),
        ("file a/../../x", "is no name of a file within a folder"),
        (&absolute, "is no name of a file within a folder"),
        ("file ", "`` is no name of a file within a folder"),
        ("file a\nb", "`a\\nb` is no name of a file within a folder"),
        ("too-many", "`10000` is one file too many: at most 10000 are taken"),
        ("long-data", "it announces 262145 bytes: at most 262144 are taken"),
        ("no-end", "it does not end a file that it began"),
        ("data", "it sends data of no file"),
        ("twice-file", "`x` has been sent before"),
        ("unasked-file", "`x.out` is no file that it was asked for"),
    ] {
        let mut rig = rig(kind);
        contains(&failure(&mut rig), why)?;
        // No file exists outside the folder of the cell.
        let entries = |path| fs::read_dir(path).unwrap().count();
        assert_eq!((entries(rig.folder.path()), entries(outside.path())), (2, 0), "{kind}");
        assert_eq!(entries(&rig.results()), 3, "{kind}");
    }
    Ok(())
}

fn silent() -> RigResult {
    let mut rig = rig("silent");
    let text = fs::read_to_string(rig.file()).unwrap();
    fs::write(rig.file(), text.replacen("1h", "1s", 1)).unwrap();
    let found = failure(&mut rig);
    contains(&found, "phase first has not ended after 1s")?;
    contains(&found, "host a does not answer")
}

fn disappears() -> RigResult {
    for (at, phase) in [
        ("identify", "setup"),
        ("begin", "begin"),
        ("start first", "first"),
        ("start second", "second"),
        ("stop", "third"),
        ("collect", "third"),
        ("end", "end"),
    ] {
        let found = failure(&mut rig(&format!("gone at {at}")));
        same(
            &found,
            &format!("phase {phase}: host a has gone: its helper ended (exit status: 0)"),
        )?;
    }
    Ok(())
}
