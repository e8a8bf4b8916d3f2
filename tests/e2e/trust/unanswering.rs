//! A file system that no longer answers: ppt names it, leaves out what is on it, and ends.
//!
//! `fuse.c` serves copies of a plugin, of a program and of other files, in a mount namespace of its own. ppt is mostly
//! outside, as beside a container.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fixtures::explained::explained;
use crate::fixtures::preloaded::python;
use crate::fixtures::steady::{is_root, may_capture};
use crate::fixtures::support::{Account, Attach, Bench, Target, available, copy_program, ppt};

/// Opcodes of linux/fuse.h.
const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const FLUSH: u32 = 25;

const MESSAGE: &str = "whose file system does not answer";

/// A folder with the program `host`, and a mount that has `plugin.so`, `data`, and `host`, too.
struct Mounted {
    // Before the folder: it ends what waits for the mount.
    server: Target,
    bench: Bench,
}

impl Mounted {
    /// `None` if this machine has no FUSE.
    fn new() -> Option<Self> {
        if !is_root() || !available("nsenter") {
            return None;
        }
        if !Path::new("/dev/fuse").exists() || !Path::new("/usr/include/linux/fuse.h").exists() {
            eprintln!("skipped: no /dev/fuse, or no linux/fuse.h");
            return None;
        }
        let bench = Bench::new();
        bench.copy_all(&["host.c", "plugin.c", "left/example.frame", "fuse.c"]);
        bench.pptc(&["example.frame"]);
        bench.cc(&["-shared", "-fPIC", "plugin.c", "example.c", "-o", "plugin.so"]);
        bench.cc(&["host.c", "-o", "host", "-ldl", "-lpthread"]);
        bench.cc(&["fuse.c", "-o", "fuse"]);
        bench.write("data", &"data".repeat(1 << 16));
        for name in ["mnt", "out"] {
            std::fs::create_dir(bench.path(name)).unwrap();
        }
        open_to_all(&bench);
        let mut server = bench.command(bench.path("fuse"));
        server.args(["mnt", "plugin.so", "host", "data"].map(|name| bench.path(name)));
        let server = Target::spawn(server);
        let refusal = server.stdout.wait_for("ready");
        if !refusal.is_empty() {
            eprintln!("skipped{refusal}");
            return None;
        }
        Some(Self { server, bench })
    }

    fn on_mount(&self, name: &str) -> String {
        self.bench.path("mnt").join(name).to_str().unwrap().into()
    }

    /// A command that sees the mount.
    fn inside(&self, program: &str, user: u32) -> Command {
        let mut command = self.bench.command("nsenter");
        let (server, user) = (self.server.pid().to_string(), user.to_string());
        let (folder, program) = (self.bench.path(""), self.bench.path(program));
        command.args(["-m", "-t", &server, "-S", &user, "-G", &user]);
        command.arg(format!("--wd={}", folder.display())).arg("--").arg(program);
        command
    }

    /// The program, with a plugin from `plugin`, and with a file of the mount mapped.
    fn host(&self, program: &str, user: u32, plugin: &str) -> Target {
        let mut target = Target::spawn(self.inside(program, user));
        target.say(&format!("load {plugin} global"));
        target.stdout.wait_for("loaded");
        target.say(&format!("map 65536 {}", self.on_mount("data")));
        target.stdout.wait_for("mapped");
        target
    }

    fn tell(&mut self, what: &str) {
        self.server.say(what);
        self.server.stdout.wait_for("done");
    }

    /// What `ppt list PID` says, whether it finds buffers or not.
    fn listed(&self, target: &Target) -> String {
        let mut list = self.bench.command(self.bench.path("ppt"));
        list.args(["list", &target.pid().to_string()]);
        explained(&Attach::spawn_into(list, Stdio::null()).stderr.rest())
    }

    /// What ppt says, which ends although the mount does not answer.
    fn said(&self, args: &[&str], code: i32) -> String {
        let mut command = self.bench.command(self.bench.path("ppt"));
        command.args(args);
        explained(&Attach::spawn_into(command, Stdio::null()).ended(code))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The end of the server ends every wait for it.
        self.server.signal(libc::SIGKILL);
        self.server.wait();
    }
}

/// Lets every user run what is in the folder, and attach to it.
fn open_to_all(bench: &Bench) {
    use std::os::unix::fs::PermissionsExt;
    copy_program(ppt(), bench.path("ppt"));
    std::fs::set_permissions(bench.path("."), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Whatever request remains unanswered, the first one or a later one.
#[test]
fn each_request_may_be_the_last() {
    for (silent, is_named) in [
        (format!("silent 0 {LOOKUP}"), true),
        (format!("silent 0 {GETATTR}"), true),
        (format!("silent 0 {OPEN}"), true),
        (format!("silent 0 {READ}"), true),
        (format!("silent 1 {READ}"), true),
        // Once everything has been read.
        (format!("silent 0 {FLUSH}"), false),
        ("silent 0".into(), true),
        ("silent 4".into(), true),
        ("silent 9".into(), true),
    ] {
        let Some(mut mounted) = Mounted::new() else { return };
        let target = mounted.host("host", 0, &mounted.on_mount("plugin.so"));
        mounted.tell(&silent);
        let said = mounted.listed(&target);
        let expected = format!("process {} has mapped {}", target.pid(), mounted.on_mount(""));
        let named = said.lines().any(|line| line.contains(&expected) && line.contains(MESSAGE));
        assert!(named || !is_named, "{silent}: {said}");
    }
}

/// Buffers elsewhere in the process are found and captured in full, and detached at the end.
#[test]
fn the_rest_of_a_process_is_captured() {
    let Some(mut mounted) = Mounted::new() else { return };
    let plugin = mounted.bench.path("plugin.so");
    let mut target = mounted.host("host", 65534, plugin.to_str().unwrap());
    mounted.tell("silent 0");
    let attach = mounted.bench.attach(&target, &["--stacks"]);
    target.say("go 1000");
    assert_eq!(target.written(), 4000);
    let said = explained(&attach.stop());
    assert!(said.contains(MESSAGE), "{said}");
    assert_eq!(mounted.bench.table("out.bin", &["-b", "example"]).rows.len(), 4000, "{said}");
    mounted.bench.check_off(&target);
    for args in [&["doctor", &target.pid().to_string()][..], &["list", &target.pid().to_string()]] {
        let said = mounted.said(args, 0);
        assert!(said.contains(MESSAGE), "{args:?}: {said}");
    }
}

/// A buffer on the mount itself is captured if that answers, however slowly, and a session with it ends after it has
/// fallen silent.
#[test]
fn a_slow_one_loses_nothing() {
    let Some(mut mounted) = Mounted::new() else { return };
    let program = mounted.on_mount("host");
    let mut target = mounted.host(&program, 0, &mounted.on_mount("plugin.so"));
    mounted.tell("slow 50");
    let attach = mounted.bench.attach(&target, &[]);
    target.say("go 1000");
    assert_eq!(target.written(), 4000);
    mounted.tell("silent 0");
    let said = attach.stop();
    let account = Account::of(&mounted.bench.info("out.bin"));
    assert_eq!((account.captured + account.lost, account.dropped), (4000, 0), "{said}");
}

/// The mount has the program, its plugin, the functions to probe, and their names, as long as it answers.
#[test]
fn a_program_on_it_has_probes_and_names_while_it_answers() {
    let Some(mut mounted) = Mounted::new() else { return };
    if !may_capture("probes") {
        return;
    }
    let program = mounted.on_mount("host");
    let mut target = mounted.host(&program, 0, &mounted.on_mount("plugin.so"));
    let probe = ["--probe", "plugin_write", "--allow", "probe-returns", "--force"];
    let attach = mounted.bench.attach(&target, &[&probe[..], &["--stacks=unwind"]].concat());
    target.say("go 20000");
    target.written();
    let said = attach.stop();
    let rows = |args: &[&str]| mounted.bench.table("out.bin", args).rows.len();
    assert!(rows(&["-b", "probes"]) > 0, "{said}");
    mounted.tell("silent 0");
    let pid = target.pid().to_string();
    let said = mounted.said(&[&["attach", &pid][..], &probe].concat(), 2);
    let nothing = "nothing in the process answers to --probe `plugin_write`";
    assert!(said.contains(MESSAGE) && said.contains(nothing), "{said}");
    // Their names are asked for where the files are.
    let mut dump = mounted.inside("ppt", 0);
    dump.args(["dump", "out.bin", "-b", "stacks", "--frame", "stack"]);
    let said = explained(&Attach::spawn_into(dump, Stdio::null()).ended(0));
    assert!(!said.contains("the file is not there"), "{said}");
    assert!(said.contains(MESSAGE) && said.contains("its file system does not answer"), "{said}");
}

/// The library asks no file system that the program would not ask.
#[test]
fn a_file_on_it_is_read_and_closed_as_without_ppt() {
    let (Some(mut mounted), Some(python)) = (Mounted::new(), python()) else { return };
    mounted.tell("no flush");
    let script = "import os, sys\n\
        os.close(os.open(sys.argv[1], os.O_RDONLY))\n\
        f = os.open(sys.argv[1], os.O_RDONLY)\n\
        for i in range(3): os.read(f, 9)\n\
        print('read', flush=True)\n\
        input()\n\
        os.read(f, 9)\n\
        os.close(f)\n\
        print('closed', flush=True)";
    let mut command = mounted.inside(ppt(), 0);
    command.args(["run", "-q", "--with", "net,files", "-o", "out/with.bin", "--", python]);
    command.args(["-c", script, &mounted.on_mount("data")]);
    let mut target = Target::spawn(command);
    target.stdout.wait_for("read");
    mounted.tell("silent 0");
    target.say("go on");
    target.stdout.wait_for("closed");
    assert_eq!(target.wait().code(), Some(0));
}

/// One process of a user does not keep ppt from the others.
#[test]
fn all_processes_of_a_user_are_attached_to() {
    let Some(mut mounted) = Mounted::new() else { return };
    let user = 63_000 + std::process::id() % 1000;
    let plugin = mounted.bench.path("plugin.so");
    let targets = [0, 1].map(|_| mounted.host("host", user, plugin.to_str().unwrap()));
    mounted.tell("silent 0");
    let mut attach = mounted.inside("ppt", user);
    std::os::unix::fs::chown(mounted.bench.path("out"), Some(user), Some(user)).unwrap();
    attach.args(["attach", "--all", "-o", "out/out.bin"]);
    let attach = Attach::spawn(attach);
    for _ in &targets {
        attach.stderr.wait_for("attached: pid ");
    }
    let said = attach.stop();
    assert_eq!(said.matches(MESSAGE).count(), 1, "{said}");
}

/// However many there are, ppt loses a few seconds.
#[test]
fn many_cost_no_more_than_few() {
    let user = 64_000 + std::process::id() % 1000;
    let mut all = Vec::new();
    for _ in 0..4 {
        let Some(mut mounted) = Mounted::new() else { return };
        let plugin = mounted.bench.path("plugin.so");
        let target = mounted.host("host", user, plugin.to_str().unwrap());
        mounted.tell("silent 0");
        all.push((target, mounted));
    }
    let bench = &all[0].1.bench;
    let mut list = bench.command(bench.path("ppt"));
    list.arg("list").uid(user).gid(user);
    let said = Attach::spawn_into(list, Stdio::null()).ended(0);
    let left_out = "whose file system was not asked, because others take too long to answer";
    let counts = [MESSAGE, left_out].map(|text| said.matches(text).count());
    assert!(counts[0] > 1 && counts[1] > 0 && counts[0] + counts[1] == 4, "{said}");
}
