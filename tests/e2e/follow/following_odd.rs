//! Following forks in unusual situations: siblings and strangers, other namespaces and users,
//! filters, programs of earlier versions, a `ppt` that dies.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixtures::family::{Child, Family};
use crate::fixtures::family::{attached, follow, run, whole};
use crate::fixtures::flood;
use crate::fixtures::python;
use crate::fixtures::steady::{self, is_root};
use crate::fixtures::support::{
    Account, Attach, Bench, Lines, Target, available, copy_program, ppt, record, root,
    segments_mapped, segments_of, wait_until,
};

fn signal(pid: u32, signal: i32) {
    // SAFETY: no pointers; the process lives as long as its family.
    assert_eq!(unsafe { libc::kill(pid.cast_signed(), signal) }, 0);
}

/// Waits until ppt has searched at least once.
fn a_look_later() {
    let moment = Instant::now() + Duration::from_secs(2);
    wait_until("time passes", || Instant::now() > moment);
}

/// The child that another member of the family has forked.
fn child_of(family: &Family, parent: Child) -> Child {
    signal(parent.pid, libc::SIGWINCH);
    family.child("fork")
}

#[test]
fn who_follows_a_worker_follows_no_sibling() {
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let worker = family.make("fork");
    let attach = follow(&bench, worker.pid, &[]);
    let sibling = family.make("fork");
    let child = child_of(&family, worker);
    attached(&attach.stderr, child);
    a_look_later();
    for (child, written) in [(worker, 100), (child, 100), (sibling, 0)] {
        assert_eq!(family.round(child), written, "{child:?}");
    }
    family.target.say("write 10");
    assert_eq!(family.target.written(), 0);
    let agent = attach.pid();
    attach.stop();
    family.target.finish();
    whole(&bench, 200, "attach --follow: a worker, not its siblings", agent);
}

/// Names of the abstract sockets on which a process listens.
fn sockets_of(pid: u32) -> Vec<String> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(Result::unwrap);
    let links = links.filter_map(|link| fs::read_link(link.path()).ok());
    let inode = |link: std::path::PathBuf| {
        Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
    };
    let inodes: Vec<String> = links.filter_map(inode).collect();
    let table = fs::read_to_string("/proc/net/unix").unwrap();
    let name = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.get(7)?.strip_prefix('@')?.to_owned();
        inodes.iter().any(|inode| inode == words[6]).then_some(name)
    };
    let mut names: Vec<_> = table.lines().filter_map(name).collect();
    assert!(!names.is_empty());
    // A connection that is being answered has the name of its socket, too.
    names.sort();
    names.dedup();
    names
}

#[test]
fn a_stranger_that_says_hello_is_left_alone() {
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let mut stranger = Family::start(&bench);
    let (target, stderr) = run(&bench, &["-o", "run.bin", "--", "./family_main"]);
    let mut command = Family::new(target);
    let attach = follow(&bench, family.target.pid(), &[]);
    for agent in [attach.pid(), command.target.pid()] {
        for name in sockets_of(agent) {
            assert!(!stranger.asks(&format!("greet {name}")));
        }
    }
    // Earlier children have been examined by now.
    let child = family.make("fork");
    attached(&attach.stderr, child);
    assert!(command.make("fork").was_on);
    assert_eq!((family.round(child), stranger.asks("on")), (100, false));
    let agent = attach.pid();
    attach.stop();
    for family in [family, stranger, command] {
        family.target.finish();
    }
    assert!(!stderr.rest().contains("not captured"));
    whole(&bench, 100, "attach --follow: a stranger says hello", agent);
    assert_eq!(bench.info("run.bin")["targets"].as_array().unwrap().len(), 2);
}

#[test]
fn a_child_that_becomes_another_user() {
    if !is_root() {
        return;
    }
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let attach = follow(&bench, family.target.pid(), &[]);
    let child = family.make("user");
    attached(&attach.stderr, child);
    // The child cannot attach the segment that was made for root, so it makes its own.
    let mut written = 0;
    wait_until("it has a segment", || {
        written += family.round(child);
        segments_mapped(child.pid) > 0
    });
    assert_eq!(family.round(child), 100);
    let agent = attach.pid();
    wait_until("which is fetched", || segments_mapped(agent) > 0);
    let before = family.written;
    // From its first frame on, because that is known now.
    let next = family.make("user");
    attached(&attach.stderr, next);
    let _ = (family.round(next), family.round(next));
    wait_until("it is fetched, too", || segments_mapped(agent) > 1);
    let said = attach.stop();
    assert!(!said.contains("not captured"), "{said}");
    let written = family.written;
    family.target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert!(account.captured >= 300, "{account:?}: {info}");
    assert!(account.dropped <= before - 100, "{account:?}");
    let mine = info["buffers"].as_array().unwrap();
    let mine = mine.iter().find(|value| value["pid"] == next.pid).unwrap();
    assert_eq!(mine["frames"], 200, "{mine}");
    let case = "attach --follow: a child becomes another user";
    record("36", case, written, account, &info, segments_of(&[agent]));
}

/// While it captures, ppt has no right to open the files of another user's process.
#[test]
fn children_of_another_users_process() {
    if !is_root() {
        return;
    }
    let bench = Family::build();
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let command = steady::as_nobody(bench.command(bench.path("family_main")));
    let mut family = Family::new(Target::start(command));
    let attach = follow(&bench, family.target.pid(), &[]);
    for kind in ["fork", "grandchild", "daemon"] {
        let child = family.make(kind);
        attached(&attach.stderr, child);
        assert_eq!(family.round(child), 100);
    }
    let (written, agent) = (family.written, attach.pid());
    let stderr = attach.stop();
    assert!(!stderr.contains("not captured"), "{stderr}");
    family.target.finish();
    whole(&bench, written, "attach --follow: of another user", agent);
}

#[test]
fn in_another_network_namespace() {
    if !is_root() || !available("unshare") {
        return;
    }
    let bench = Family::build();
    let mut command = bench.command("unshare");
    command.args(["--net", "./family_main"]);
    let mut family = Family::new(Target::start(command));
    let attach = follow(&bench, family.target.pid(), &[]);
    for kind in ["fork", "grandchild", "daemon"] {
        let child = family.make(kind);
        attached(&attach.stderr, child);
        assert_eq!(family.round(child), 100);
    }
    let (written, agent) = (family.written, attach.pid());
    attach.stop();
    family.target.finish();
    whole(&bench, written, "attach --follow: other network namespace", agent);
}

/// A filter may not permit the calls of fork handlers.
#[test]
fn under_a_filter_children_say_nothing() {
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let attach = follow(&bench, family.target.pid(), &[]);
    assert!(family.asks("followed"));
    // Before its first frame, a filter would also end its own part.
    family.write(10);
    family.asks("filter");
    wait_until("nobody is to say hello any more", || !family.asks("followed"));
    // Reporting would kill it.
    let child = family.make("fork");
    assert_eq!(family.round(child), 0);
    a_look_later();
    let stderr = attach.stop();
    // The same holds without a session.
    family.make("fork");
    family.target.finish();
    assert!(stderr.contains("filters its system calls"), "it was seen, and not captured: {stderr}");
}

/// A child of vfork(2) has its parent's memory, buffers, and random bytes. Writing there would end
/// its parent's part.
#[test]
fn what_has_its_parents_memory_is_left_alone() {
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let attach = follow(&bench, family.target.pid(), &[]);
    family.write(100);
    let lodger = family.make("lodger");
    a_look_later();
    family.write(1000);
    let child = family.make("fork");
    attached(&attach.stderr, child);
    assert_eq!(family.round(child), 100);
    let lodgers = lodger.pid.to_string();
    for command in [&["attach", "-o", "other.bin", &lodgers][..], &["detach", &lodgers]] {
        let ran = bench.ppt(command);
        assert_eq!(ran.code(), 1, "{ran:?}");
        let parent =
            format!("process {lodgers} shares the memory of process {},", family.target.pid());
        assert!(ran.stderr.contains(&parent), "{ran:?}");
    }
    family.write(1000);
    let (written, agent) = (family.written, attach.pid());
    let stderr = attach.stop();
    assert!(!stderr.contains("not captured"), "{stderr}");
    family.target.finish();
    whole(&bench, written, "attach --follow: a child of vfork that lives", agent);
}

/// A capture continues with as many processes as possible, and reports the others.
#[test]
fn more_children_than_files_may_be_open() {
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let limited = |args: &[&str]| {
        let mut command = bench.command("sh");
        command.args(["-c", "ulimit -n 150; exec \"$@\"", "sh", ppt()]).args(args);
        command
    };
    let pid = family.target.pid().to_string();
    let attach = Attach::start(limited(&["attach", "--follow", "--slots", "64", &pid]));
    let children: Vec<_> = (0..40).map(|_| family.make("fork")).collect();
    a_look_later();
    family.write(10);
    let captured =
        children.iter().map(|&child| family.round(child)).filter(|&number| number == 100).count();
    assert!((5..30).contains(&captured), "{captured}");
    let (written, agent) = (family.written, attach.pid());
    let said = attach.stop();
    let others = 40 - captured;
    assert!(said.contains("was not captured: cannot examine process "), "{said}");
    assert!(said.contains(&format!("and {} more", others - 9)), "{others} of {said}");
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);

    // This includes those that it finds.
    let mut command = limited(&["attach", "--follow", "--slots", "64", "--force", &pid]);
    command.args(["-d", "1s"]);
    let said = Attach::start(command).ended(0);
    assert!(said.contains("more processes have ppt buffers and are left out"), "{said}");
    family.target.finish();
    wait_until("no segment is left", || segments_of(&[agent]) == 0);
    let case = "attach --follow: more children than files may be open";
    record("36", case, written, account, &info, segments_of(&[agent]));
}

/// A process that reports continuously does not block ppt.
#[test]
fn hellos_without_end() {
    if !available("python3") {
        return;
    }
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let attach = follow(&bench, family.target.pid(), &[]);
    let script = "import socket, sys\n\
        name, said = chr(0) + sys.argv[1], False\n\
        while True:\n \
        \x20with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as it:\n \
        \x20 try: it.connect(name)\n \
        \x20 except OSError: break\n \
        \x20said = said or print('ready', flush=True) or True\n";
    let [name] = sockets_of(attach.pid()).try_into().unwrap();
    let mut callers: Vec<_> =
        (0..2).map(|_| stranger(script, std::slice::from_ref(&name), is_root())).collect();
    callers.push(stranger(script, &[name], false));
    let child = family.make("fork");
    attached(&attach.stderr, child);
    family.write(1000);
    assert_eq!(family.round(child), 100);
    let (written, agent) = (family.written, attach.pid());
    let stderr = attach.stop();
    // Its report is one of many: on a loaded machine, ppt may find the child before it reads that.
    assert!(!stderr.contains("was not captured"), "{stderr}");
    for mut caller in callers {
        caller.wait().unwrap();
    }
    family.target.finish();
    whole(&bench, written, "attach --follow: hellos without end", agent);
}

/// ppt learns twice that the child has ended: from its report and from its pidfd.
#[test]
fn who_says_hello_and_ends_takes_nobody_along() {
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let attach = follow(&bench, family.target.pid(), &["-v"]);
    let children = [family.make("fork"), family.make("fork")];
    children.iter().for_each(|&child| attached(&attach.stderr, child));
    let [name] = sockets_of(attach.pid()).try_into().unwrap();
    signal(attach.pid(), libc::SIGSTOP);
    family.asks(&format!("greet {name}"));
    let parent = family.target.pid();
    signal(parent, libc::SIGKILL);
    family.target.wait();
    signal(attach.pid(), libc::SIGCONT);
    attach.stderr.wait_for(&format!("ppt: process {parent} "));
    for child in children {
        assert_eq!(family.round(child), 100, "{child:?}");
    }
    a_look_later();
    for child in children {
        assert_eq!(family.round(child), 100, "{child:?}");
    }
    let (written, agent) = (family.written, attach.pid());
    attach.stop();
    drop(family);
    whole(&bench, written, "attach --follow: who says hello and ends", agent);
}

/// Programs that were built with an older pptc have no fork handlers, so ppt searches for their
/// children.
#[test]
fn of_a_program_of_an_earlier_version() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the program is one for x86-64");
        return;
    }
    let bench = Bench::new();
    copy_program(root().join("tests/frozen/abi1-forks-x86_64"), bench.path("forks"));
    let mut family = Family::new(bench.start("forks", &[]));
    let attach = follow(&bench, family.target.pid(), &["--slots", "4096"]);
    // Before its first frame, a child has a copy of the open gate.
    let early = family.make("fork");
    attached(&attach.stderr, early);
    family.write(1000);
    let late = family.make("fork");
    attached(&attach.stderr, late);
    assert_eq!((family.round(early), family.round(late)), (100, 100));
    let (written, agent) = (family.written, attach.pid());
    attach.stop();
    family.target.finish();
    whole(&bench, written, "attach --follow: a program of an earlier version", agent);

    let (target, stderr) = run(&bench, &["--force", "--slots", "4096", "--", "./forks"]);
    let mut family = Family::new(target);
    family.write(1000);
    let child = family.make("fork");
    attached(&stderr, child);
    assert_eq!(family.round(child), 100);
    let (written, agent) = (family.written, family.target.pid());
    family.target.finish();
    whole(&bench, written, "ppt run: a program of an earlier version", agent);
}

#[test]
fn a_dead_agent_releases_children_that_wait() {
    let bench = Family::build();
    let (target, _stderr) = run(&bench, &["--", "./family_main"]);
    let mut family = Family::new(target);
    family.write(10);
    let agent = family.target.pid();
    let sockets = sockets_of(agent);
    signal(agent, libc::SIGSTOP);
    crate::fixtures::support::stopped(agent);
    family.target.say("fork");
    family.target.say("write 10");
    assert_eq!(family.target.written(), 10, "the parent goes on");
    signal(agent, libc::SIGKILL);
    let child = family.child("fork");
    assert!(!child.was_on, "nobody is there");
    assert_eq!(family.round(child), 0);
    // There is no listener, so nothing waits.
    let child = family.make("grandchild");
    assert_eq!(family.round(child), 0);
    if !is_root() || !available("python3") {
        return;
    }
    // A process that takes over the socket names is neither trusted nor waited for.
    let mut squatter = squat(&sockets);
    let child = family.make("fork");
    assert_eq!(family.round(child), 0);
    squatter.kill().unwrap();
    squatter.wait().unwrap();
}

/// An unprivileged process that listens on these sockets, and never answers.
fn squat(names: &[String]) -> Process {
    let script = "import socket, sys, time\n\
        sockets = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in sys.argv[1:]]\n\
        for it, name in zip(sockets, sys.argv[1:]):\n \x20it.bind(chr(0) + name); it.listen()\n\
        print('ready', flush=True)\n\
        time.sleep(600)\n";
    stranger(script, names, true)
}

/// A process that runs a script, which reports when it is ready.
fn stranger(script: &str, names: &[String], as_nobody: bool) -> Process {
    let mut command = Command::new("/usr/bin/python3");
    if as_nobody {
        command = steady::as_nobody(command);
    }
    command.args(["-c", script]).args(names).current_dir("/").stdout(Stdio::piped());
    let mut stranger = command.spawn().unwrap();
    let lines = Lines::new(stranger.stdout.take().unwrap(), "a stranger");
    lines.wait_for("ready");
    stranger
}

/// A library with registered fork handlers may be unloaded.
#[test]
fn a_fork_after_a_plugin_was_unloaded() {
    let bench = Bench::new();
    bench.copy_all(&["host.c", "plugin.c", "left/example.frame"]);
    bench.pptc(&["example.frame"]);
    bench.cc(&["-shared", "-fPIC", "plugin.c", "example.c", "-o", "plugin.so"]);
    bench.cc(&["host.c", "-o", "host", "-ldl", "-lpthread"]);
    let mut target = bench.start("host", &[]);
    for _ in 0..3 {
        target.say("load ./plugin.so local");
        target.stdout.wait_for("loaded");
        target.say("fork");
        target.stdout.wait_for("forked 0");
        target.say("unload 0");
        target.stdout.wait_for("unloaded");
        target.say("fork");
        target.stdout.wait_for("forked 0");
        target.say("again");
    }
    target.finish();
}

/// A set-user-ID program that a child starts at that moment would not get its privileges if the
/// child were traced. So only explicitly requested processes are held.
#[test]
fn children_are_not_held() {
    if !available("strace") {
        return;
    }
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let mut command = bench.command("strace");
    command.args(["-f", "-q", "-e", "trace=ptrace", "-o", "calls", ppt()]);
    command.args(["attach", "--follow", &family.target.pid().to_string()]);
    let attach = Attach::start(command);
    for kind in ["fork", "grandchild", "clone"] {
        let child = family.make(kind);
        attached(&attach.stderr, child);
    }
    family.target.finish();
    attach.ended(0);
    let calls = fs::read_to_string(bench.path("calls")).unwrap();
    assert_eq!(calls.matches("PTRACE_SEIZE").count(), 1, "{calls}");
}

/// A program that takes long to load is not treated as one without a report.
#[test]
fn a_program_that_takes_its_time_to_load() {
    let bench = flood::build_with("first_main.c");
    bench.copy("slow.c");
    bench.cc(&["-shared", "-fPIC", "slow.c", "-o", "slow.so"]);
    let mut command = bench.command(ppt());
    command.args(["run", "--", "env", "LD_PRELOAD=./slow.so", "./first_main", "5"]);
    // env is slow, too.
    let (mut target, stderr) = Target::spawn_loud(command);
    target.stdout.wait_for("loading");
    a_look_later();
    target.say("");
    assert_eq!(target.written(), 5);
    let agent = target.pid();
    assert!(target.wait().success());
    let said = stderr.rest();
    assert!(!said.contains("hello"), "{said}");
    whole(&bench, 5, "ppt run: a program that loads slowly", agent);
}

/// python's subprocess closes descriptors, so children report in another way.
#[test]
fn children_of_pythons_subprocess() {
    if !available("python3") {
        return;
    }
    let bench = flood::build_with("first_main.c");
    let script = "import subprocess\n\
        for how in [{}, {'close_fds': True}, {'start_new_session': True}, {'preexec_fn': lambda: None}]:\n \
        \x20subprocess.run(['./first_main', '10'], check=True, **how)\n";
    let ran = bench.ppt(&["run", "--", "python3", "-c", script]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(ran.stdout.matches("written 10\n").count(), 4, "{ran:?}");
    assert_eq!(Account::of(&bench.info("out.bin")).captured, 40);
}

/// The same for a Python program that writes frames itself.
#[test]
fn modules_and_subprocess() {
    let bench = flood::build_with("first_main.c");
    if !python::modules(&bench, &["flood"]) {
        return;
    }
    let script = "import flood, os, subprocess\n\
        flood.beat(thread=1)\n\
        subprocess.run(['./first_main', '10'], check=True)\n\
        subprocess.run(['./first_main', '10'], check=True, preexec_fn=lambda: flood.beat(thread=2))\n\
        os.system('./first_main 10')\n";
    let ran = bench.ppt(&["run", "-v", "--", "python3", "-c", script]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(Account::of(&bench.info("out.bin")).captured, 32, "{ran:?}");
    assert!(!ran.stderr.contains("not captured"), "{ran:?}");
}

/// A program without its environment is captured, too, and its late start is reported.
#[test]
fn a_program_that_lost_its_environment() {
    let bench = flood::build_with("first_main.c");
    let mut command = bench.command(ppt());
    command.args(["run", "--", "env", "-i", "./first_main", "5", "wait"]);
    let (mut target, stderr) = Target::spawn_loud(command);
    assert_eq!(target.written(), 0, "nobody knows of it yet");
    stderr.wait_for("attached: pid ");
    target.close();
    assert!(target.wait().success());
    let said = stderr.rest();
    assert!(said.contains("did not report to ppt: its first "), "{said}");
    assert_eq!(Account::of(&bench.info("out.bin")).captured, 0);
}
