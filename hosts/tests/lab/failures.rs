//! Programs, hosts and disks that fail: everything possible is saved.

use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;
use ppt_hosts::lab::{LabError, Manifest, RunState};
use ppt_output::Invoker;

use crate::basics::fake_ppt;
use crate::rig::{Rig, RigResult, contains, is_root, own, same, skip, trial};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        trial("failures::of_endless_output_so_much_is_kept", endless),
        trial("failures::files_of_living_hosts_are_fetched", dead_host),
        trial("failures::shared_memory_of_killed_programs_is_gone", shared_memory),
        trial("failures::a_full_disk_aborts_the_manifest", full_disk),
        trial("failures::checks_of_root_only_read", unprivileged),
        trial("failures::only_checks_and_reports_need_answers", unanswered),
    ]
}

fn endless() -> RigResult {
    const KEPT: usize = 64 << 20;
    let mut rig = Rig::new(
        r#"
name = "endless"
host.a = { via = "local" }
[[phase]]
name = "run"
a = { run = ["sh", "-c", "head -c 70000000 /dev/zero; echo end >&2"] }
[[phase]]
name = "after"
a = { run = ["OWN", "program", "say", "it went on"] }
"#,
    );
    let manifest = rig.passes();
    let left_out = 70_000_000 - KEPT;
    let text = rig.read("r1/run.a.out");
    let end =
        format!("\nppt lab: the program printed more than 64 MiB: {left_out} bytes are left out\n");
    assert!(text.ends_with(&end), "{:?}", &text[text.len() - 100..]);
    assert_eq!(text.len(), KEPT + end.len());
    same(&rig.read("r1/run.a.err"), "end\n")?;
    same(&rig.read("r1/after.a.out"), "it went on\n")?;
    assert_eq!(manifest.cells[0].ran.ends[0].ended.left_out, left_out as u64);
    assert_eq!(manifest.cells[0].ran.ends[1].ended.left_out, 0);
    let printed = rig.messages.0.iter().find(|line| line.starts_with("Printed"));
    contains(printed.map_or("", |line| line), &format!("left_out: {left_out}"))
}

fn dead_host() -> RigResult {
    // Host b disappears once a has started, so that there are files to fetch.
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let begun = begun.display();
    let mut rig = Rig::new(&format!(
        r#"
name = "dead"
repeat = 2
host.a = {{ via = "local", isolate = false }}
host.b = {{ via = "local", isolate = false }}
host.c = {{ via = "local", isolate = false }}
[[phase]]
name = "before"
all = {{ run = ["OWN", "program", "say", "before"] }}
[[phase]]
name = "serve"
c = {{ start = ["sh", "-c", "trap 'echo stopped; exit' TERM; echo running; sleep 1000000 & wait"], ready = {{ output = "running" }} }}
[[phase]]
name = "die"
a = {{ run = ["sh", "-c", "echo begun; touch {begun}; exec sleep 1000000"] }}
b = {{ run = ["sh", "-c", "until rm {begun} 2>/dev/null; do sleep 0.01; done; kill -KILL $PPID"] }}
"#
    ));
    contains(&rig.fails(), "phase die: host b has gone")?;
    let manifest = rig.manifest();
    assert_eq!(manifest.cells.len(), 2);
    for cell in &manifest.cells {
        for (file, text) in [
            ("before.a.out", "before\n"),
            ("before.c.out", "before\n"),
            ("serve.c.out", "running\nstopped\n"),
            ("die.a.out", "begun\n"),
        ] {
            same(&rig.read(&format!("{}/{file}", cell.folder)), text)?;
            let known = cell.ran.outputs.iter().any(|output| output.name == file);
            assert!(known, "{file} is not in the manifest");
        }
        let hosts: Vec<&str> = cell.ran.ends.iter().map(|end| &*end.host).collect();
        assert!(hosts.contains(&"a") && hosts.contains(&"c") && !hosts.contains(&"b"), "{hosts:?}");
    }
    Ok(())
}

fn shared_memory() -> RigResult {
    if !is_root() {
        return skip("namespaces are made by root");
    }
    let name = format!("ppt-lab-test-{}", std::process::id());
    let mut rig = Rig::new(&format!(
        r#"
name = "shm"
repeat = 2
host.a = {{ via = "local" }}
[[phase]]
name = "look"
a = {{ run = ["sh", "-c", "ls -A /dev/shm; echo end"] }}
[[phase]]
name = "start"
a = {{ start = ["sh", "-c", "mkdir /dev/shm/{name}-folder; echo x > /dev/shm/{name}; echo running; trap '' TERM; while :; do sleep 1000000; done"], ready = {{ output = "running" }} }}
"#
    ));
    let manifest = rig.passes();
    for cell in &manifest.cells {
        same(&rig.read(&format!("{}/look.a.out", cell.folder)), "end\n")?;
    }
    assert!(!Path::new("/dev/shm").join(&name).exists(), "it was seen outside");
    Ok(())
}

fn full_disk() -> RigResult {
    if !is_root() {
        return skip("file systems are mounted by root");
    }
    let rig = Rig::new(
        r#"
name = "full"
host.a = { via = "local", isolate = false }
[[phase]]
name = "fill"
a = { run = ["head", "-c", "3000000", "/dev/zero"] }
"#,
    );
    // Only this shell sees the file system, which vanishes with it.
    let script = "mkdir small; mount -t tmpfs -o size=1m none small || exit 9; \
                  \"$OWN\" controller exp.toml small/results >&2; cat small/results/MANIFEST.json";
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", script]).env("OWN", own()).current_dir(rig.folder.path());
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(9) {
        return skip("nothing can be mounted here");
    }
    contains(&said, "cannot write")?;
    let manifest: Manifest = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(manifest.state, RunState::Aborted, "{said}");
    Ok(())
}

/// A program without answers runs experiments.
fn unanswered() -> RigResult {
    let text = |more: &str| {
        format!(
            r#"
name = "unanswered"
host.a = {{ via = "local" }}
[[phase]]
name = "run"
a = {{ run = ["OWN", "program", "say", "x"] }}
{more}
"#
        )
    };
    let run = |more: &str| {
        let mut rig = Rig::new(&text(more));
        rig.options.answers = None;
        (rig.run(), rig)
    };
    let (plain, _rig) = run("");
    assert_eq!(plain.unwrap_or_else(|error| panic!("{error}")).failed, 0);
    for more in ["[check]\nsql = [\"SELECT true\"]", "[report]\nhtml = \"report.html\""] {
        let (refused, rig) = run(more);
        assert!(matches!(refused, Err(LabError::NoAnalysis)), "{more}");
        assert!(!rig.results().exists(), "{more}: something ran");
    }
    Ok(())
}

fn unprivileged() -> RigResult {
    if !is_root() {
        return skip("it needs root");
    }
    let text = |user: u32| {
        format!(
            r#"
name = "checked"
host.a = {{ via = "local", ppt = "./ppt" }}
[[phase]]
name = "run"
a = {{ run = ["OWN", "program", "say", "x"], capture = true }}
[check]
sql = ["SELECT user {user}"]
[report]
html = "report.html"
"#
        )
    };
    let mut rig = Rig::new(&text(0));
    fake_ppt(rig.folder.path());
    rig.passes();
    assert!(rig.read("report.html").starts_with("report\n"));
    // Under sudo, checks run as the calling user, who needs that capability to open the results.
    let mut rig = Rig::new(&text(65534));
    fake_ppt(rig.folder.path());
    rig.options.invoker = Some(Invoker { uid: 65534, gid: Some(65534) });
    rig.passes();
    assert!(rig.read("report.html").starts_with("report\n"));
    Ok(())
}
