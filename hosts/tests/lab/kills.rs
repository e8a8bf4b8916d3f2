//! Controllers and helpers that are killed: no process or file of an experiment remains.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;

use crate::rig::{Rig, RigResult, has_networks, own, trial};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        trial("kills::a_killed_controller_leaves_nothing", || kills(Victim::Controller)),
        trial("kills::a_killed_keeper_leaves_nothing", || kills(Victim::Keeper)),
        trial("kills::a_killed_worker_leaves_nothing", || kills(Victim::Worker)),
        trial("kills::without_namespaces_killed_helpers_leave_nothing", plain),
    ]
}

/// A variable that marks the processes of one experiment: helpers inherit it, and programs are
/// given it.
pub(crate) struct Marker(pub(crate) String);

impl Marker {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let unique = folder.path().file_name().unwrap().to_string_lossy().into_owned();
        Self(format!("{unique}-{}", std::process::id()))
    }

    /// All marked processes with their commands.
    fn processes(&self) -> Vec<(u32, String)> {
        let entry = format!("LAB_TEST={}", self.0);
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|pid| pid.file_name().to_str()?.parse::<u32>().ok());
        let has = |pid: &u32| {
            let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|piece| piece == entry.as_bytes())
        };
        let words = |pid: u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&words).replace('\0', " "))
        };
        pids.filter(has).map(words).collect()
    }

    /// Waits until no marked process is left. A process that remains after a minute counts as
    /// leaked.
    pub(crate) fn is_gone(&self) -> RigResult {
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            let left = self.processes();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > limit {
                return Err(format!("left: {left:?}").into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a process with all of these parts in its command.
    fn wait_for(&self, parts: &[&str], controller: &mut Child) -> Option<u32> {
        loop {
            let is_it = |entry: &&(u32, String)| parts.iter().all(|part| entry.1.contains(part));
            if let Some(found) = self.processes().iter().find(is_it) {
                return Some(found.0);
            }
            if controller.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Victim {
    Controller,
    Keeper,
    Worker,
}

/// The number of rounds per test, each with another moment.
fn rounds() -> u64 {
    std::env::var("LAB_KILLS").map_or(5, |text| text.parse().unwrap())
}

fn experiment(marker: &Marker, isolate: bool) -> Rig {
    let (a, b) = match (isolate, has_networks()) {
        (false, _) => (r#"via = "local", isolate = false"#, r#"via = "local", isolate = false"#),
        (true, true) => (r#"via = "netns""#, r#"via = "netns""#),
        (true, false) => (r#"via = "local""#, r#"via = "local""#),
    };
    Rig::new(&format!(
        r#"
name = "kill"
repeat = 1000
host.a = {{ {a} }}
host.b = {{ {b} }}
[[phase]]
name = "start"
all = {{ start = ["OWN", "program", "stubborn"], env = {{ LAB_TEST = "{0}" }} }}
[[phase]]
name = "short"
all = {{ run = ["sleep", "0.01"], env = {{ LAB_TEST = "{0}" }} }}
[[phase]]
name = "more"
b = {{ start = ["OWN", "program", "forever"], env = {{ LAB_TEST = "{0}" }} }}
[[phase]]
name = "long"
a = {{ run = ["sleep", "1000000"], env = {{ LAB_TEST = "{0}" }} }}
"#,
        marker.0
    ))
}

/// Kills a process at a moment that differs from round to round, from before the helpers start
/// until all programs run.
fn kill(victim: Victim, round: u64, rounds: u64, isolate: bool) -> RigResult {
    let marker = Marker::new();
    let rig = experiment(&marker, isolate);
    let temporary = tempfile::tempdir().unwrap();
    let mut controller = Command::new(own());
    controller.arg("controller").arg(rig.file()).arg(rig.results());
    controller.env("LAB_TEST", &marker.0).env("TMPDIR", temporary.path());
    controller.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut controller = controller.spawn().unwrap();
    let helper = match victim {
        Victim::Controller => Some(controller.id()),
        Victim::Keeper => marker.wait_for(&["lab host keep"], &mut controller),
        Victim::Worker => marker.wait_for(&["lab host work"], &mut controller),
    };
    // The moment: 0 to 120 ms later. The delay waits for no condition, and no result depends on it.
    std::thread::sleep(Duration::from_micros(120_000 * round / rounds));
    let pid = rustix::process::Pid::from_raw(helper.unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    if victim != Victim::Controller {
        // The controller notices that a host is gone and starts the next cell with new helpers; it
        // is ended now.
        marker.wait_for(&["lab host keep"], &mut controller);
        let _ = controller.kill();
    }
    controller.wait().unwrap();
    marker.is_gone()?;
    // The leftovers that keepers remove are gone, and so are namespaces, which only processes held.
    let left: Vec<_> =
        fs::read_dir(temporary.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    if !left.is_empty() {
        return Err(format!("left: {left:?}").into());
    }
    if rig.results().join("MANIFEST.json").exists() {
        rig.manifest();
    }
    Ok(())
}

fn kills(victim: Victim) -> RigResult {
    (0..rounds()).try_for_each(|round| kill(victim, round, rounds(), true))
}

fn plain() -> RigResult {
    (0..rounds()).try_for_each(|round| {
        let victim = if round % 2 == 0 { Victim::Worker } else { Victim::Keeper };
        kill(victim, round, rounds(), false)
    })
}
