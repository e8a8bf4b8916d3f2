//! Processes to which ppt does not attach, and its messages: exit code 1, and nothing written.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::fixtures::explained::explained;
use crate::fixtures::refused::{refused, refused_to_nobody};
use crate::fixtures::steady::{
    assert_message, build, gate, is_root, open_to_nobody, page, start, start_as_nobody,
};
use crate::fixtures::support::{
    Account, Bench, Target, available, ppt, record, segments_of, status, text,
};

#[test]
fn what_is_no_program() {
    let bench = Bench::new();
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    // SAFETY: the struct is ours, and all zeros is a valid value.
    let waited = unsafe {
        let mut info = std::mem::zeroed();
        libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT)
    };
    assert_eq!(waited, 0);
    let parent = std::process::id();
    let zombie = "is a zombie: it has ended and waits for its parent";
    refused(&bench, pid, &[], &format!("process {pid} (true) {zombie} {parent}"));
    child.wait().unwrap();
    let none = format!("no process {pid}: it does not exist, or it has ended");
    refused(&bench, pid, &[], &none);

    if fs::read_to_string("/proc/2/comm").is_ok_and(|comm| comm == "kthreadd\n") {
        let thread = "process 2 (kthreadd) is a kernel thread: it has no program to attach to";
        refused(&bench, 2, &[], thread);
    } else {
        eprintln!("skipped: kernel threads cannot be seen here");
    }
    assert!(!bench.path("out.bin").exists());
}

#[test]
fn a_program_without_ppt() {
    let bench = Bench::new();
    bench.copy("other.c");
    bench.cc(&["other.c", "-o", "other"]);
    let target = Target::spawn(bench.command(bench.path("other")));
    target.stdout.wait_for("covers");
    let pid = target.pid();
    let ran = bench.ppt(&["attach", &pid.to_string()]);
    assert_message(
        &ran.stderr,
        &format!(
            "ppt: process {pid} has no ppt buffers\n  searched: {} (symbols and scan), {{}}libc{{}}\n  \
             looked for: symbols `ppt1_*_descriptor`, and descriptors in the mapped data of each \
             object\n  is the .c file that pptc generated linked into it? A program that nobody \
             edited shows its requests if it is started by `ppt run --with net -- …`\n",
            bench.path("other").display()
        ),
    );
    assert_eq!(ran.code(), 1);
    assert!(!bench.path("out.bin").exists());
    target.finish();
}

#[test]
fn another_users_program() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    open_to_nobody(&bench);
    let mut target = start(&bench);
    let (pid, before) = (target.pid(), page(&mut target));
    assert_eq!(
        refused_to_nobody(&bench, pid, &[]),
        format!(
            "ppt: no permission to attach to process {pid} (steady): it belongs to user 0, and ppt \
             runs as user 65534\n  run ppt as that user (sudo -u '#0' ppt …), or with \
             CAP_SYS_PTRACE (sudo ppt …)"
        )
    );
    assert_eq!(page(&mut target), before);
    target.finish();
}

#[test]
fn a_program_that_is_not_dumpable() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    open_to_nobody(&bench);
    let mut target = start_as_nobody(&bench);
    target.say("hide");
    target.stdout.wait_for("hidden");
    let (pid, before) = (target.pid(), page(&mut target));
    assert_eq!(
        refused_to_nobody(&bench, pid, &[]),
        format!(
            "ppt: no permission to attach to process {pid} (steady): it is not dumpable (it \
             changed its user, or called prctl(PR_SET_DUMPABLE))\n  run ppt with CAP_SYS_PTRACE \
             (sudo ppt …)"
        )
    );
    assert_eq!(page(&mut target), before);
    target.finish();
}

/// Runs `ppt attach` in some way, checks its message about a process, and that nothing was written
/// to that.
fn refused_by(bench: &Bench, mut command: Command, rule: &str) {
    let mut target = start(bench);
    let (pid, before) = (target.pid(), page(&mut target));
    let output = command.args(["attach", &pid.to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = explained(&text(&output.stderr));
    let expected = format!("ppt: no permission to attach to process {pid} (steady): {rule}\n");
    assert_eq!(stderr, expected);
    assert_eq!(page(&mut target), before);
    target.finish();
}

#[test]
fn from_a_sandbox() {
    let bench = build(&[]);
    let sandboxed = || {
        let rights = 1u64 << 11;
        // SAFETY: only system calls, in a single-threaded child; their pointers stay valid.
        let entered = unsafe {
            let size = size_of_val(&rights);
            let rules =
                libc::syscall(libc::SYS_landlock_create_ruleset, &raw const rights, size, 0);
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) == 0
        };
        entered.then_some(()).ok_or_else(std::io::Error::last_os_error)
    };
    let mut command = bench.command(ppt());
    // SAFETY: only system calls.
    unsafe { command.pre_exec(sandboxed) };
    if command.arg("--version").output().is_err() {
        eprintln!("skipped: this kernel has no Landlock");
        return;
    }
    let mut command = bench.command(ppt());
    // SAFETY: the same.
    unsafe { command.pre_exec(sandboxed) };
    let rule = "ppt was started in a sandbox (Landlock), and may trace only processes in the same \
                sandbox\n  run ppt outside the sandbox, or the program inside";
    refused_by(&bench, command, rule);
}

#[test]
fn from_a_user_namespace() {
    let bench = build(&[]);
    let allowed = bench.command("unshare").args(["--user", "--map-root-user", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no user namespace can be made here");
        return;
    }
    let mut command = bench.command("unshare");
    command.args(["--user", "--map-root-user", ppt()]);
    let rule = "it is in another user namespace, where the capabilities of ppt do not count\n  run \
                ppt in that namespace, or as root of the machine";
    refused_by(&bench, command, rule);
}

#[test]
fn attached_already() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    let (pid, agent, before) = (target.pid(), attach.pid(), page(&mut target));
    refused(
        &bench,
        pid,
        &["-o", "second.bin"],
        &format!(
            "buffer steady of process {pid} is already attached by ppt with pid {agent}, started \
             {{}} s ago; end that capture first (`ppt detach {pid}`), or take over the buffer with \
             --allow foreign-claim"
        ),
    );
    assert!(!bench.path("second.bin").exists());
    assert_eq!(page(&mut target), before);
    target.say("burst 1000");
    let written = target.written();
    attach.stop();
    Account::of(&bench.info("out.bin")).check(written);
    target.finish();
}

/// With `tracer` on the target: refused, and with `--allow traced` exact.
fn traced(bench: &Bench, mut target: Target, tracer: &mut Tracer, name: &str) {
    let (pid, before) = (target.pid(), page(&mut target));
    let by = tracer.pid();
    refused(
        bench,
        pid,
        &[],
        &format!(
            "process {pid} is traced by process {by} ({name}); ppt does not interfere with a \
             debugger by default; to attach anyway: --allow traced"
        ),
    );
    assert!(!bench.path("out.bin").exists());
    assert_eq!(page(&mut target), before);
    let attach = bench.attach(&target, &["--allow", "traced"]);
    let agent = attach.pid();
    target.say("burst 1000");
    let written = target.written();
    attach.stop();
    assert_eq!(status(pid, "TracerPid:"), Some(by.to_string()), "undisturbed");
    assert!(!gate(&mut target));
    let info = bench.info("out.bin");
    Account::of(&info).check(written);
    assert_eq!(written, 1000);
    tracer.end();
    target.finish();
    let leaks = segments_of(&[agent]);
    record("8", &format!("traced by {name}"), written, Account::of(&info), &info, leaks);
}

/// A running tracer, ended when dropped.
struct Tracer(Target);

impl Tracer {
    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn end(&mut self) {
        self.0.signal(libc::SIGKILL);
        self.0.wait();
    }
}

#[test]
fn a_traced_program() {
    let bench = build(&[]);
    bench.copy("tracer.c");
    bench.cc(&["tracer.c", "-o", "tracer"]);
    let target = start(&bench);
    let mut tracer = Tracer(bench.start("tracer", &[&target.pid().to_string()]));
    traced(&bench, target, &mut tracer, "tracer");
}

#[test]
fn a_program_under_gdb() {
    if !available("gdb") {
        return;
    }
    let bench = build(&[]);
    let target = start(&bench);
    let mut gdb = bench.command("gdb");
    gdb.args(["-q", "-nx", "-p", &target.pid().to_string()]).stderr(Stdio::null());
    gdb.args(["-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]);
    let mut gdb = Tracer(Target::spawn(gdb));
    gdb.0.say("echo \\nattached\\n");
    gdb.0.stdout.wait_for("attached");
    gdb.0.say("continue");
    gdb.0.stdout.wait_for("(gdb) Continuing.");
    let comm = fs::read_to_string(format!("/proc/{}/comm", gdb.pid())).unwrap();
    traced(&bench, target, &mut gdb, comm.trim());
}

#[test]
fn too_little_memory() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let (pid, before) = (target.pid(), page(&mut target));
    refused(
        &bench,
        pid,
        &["--memory", "1K"],
        "--memory 1024 is too small for buffer steady: 64 rings of the smallest size need 131072 \
         bytes",
    );
    refused(
        &bench,
        pid,
        &["--memory", "1M", "--slots", "1M"],
        "--memory 1048576 is too small for buffer steady: 3 rings of the smallest size need \
         100663296 bytes",
    );
    assert!(!bench.path("out.bin").exists());
    assert_eq!(page(&mut target), before);
    target.finish();
}

#[test]
fn a_32_bit_program() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: 32-bit programs are made on x86-64 only");
        return;
    }
    let bench = Bench::new();
    bench.copy("idle32.c");
    let flags = ["-m32", "-nostdlib", "-static", "-ffreestanding", "-fno-pie", "-no-pie"];
    bench.cc(&[&flags[..], &["idle32.c", "-o", "idle32"]].concat());
    let Ok(mut child) = bench.command(bench.path("idle32")).spawn() else {
        eprintln!("skipped: this kernel runs no 32-bit programs");
        return;
    };
    let pid = child.id();
    let expected = format!(
        "process {pid} is a 32-bit program of ELF machine 3, and this ppt attaches only to x86-64 \
         programs; use a ppt that was built for that architecture"
    );
    let ran = bench.ppt(&["attach", &pid.to_string()]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_message(&ran.stderr, &format!("ppt: {expected}\n"));
    assert_eq!(ran.code(), 1);
}

#[test]
fn limits_of_shared_memory() {
    if !is_root() || !available("unshare") || !available("nsenter") {
        return;
    }
    let bench = build(&[]);
    let mut command = bench.command("unshare");
    command.args(["--ipc", "./steady", "counters"]);
    let mut target = Target::start(command);
    let (pid, before) = (target.pid(), page(&mut target));
    refused(
        &bench,
        pid,
        &["--segment", "sysv"],
        &format!(
            "process {pid} is in another IPC namespace and cannot map segments that ppt makes; let \
             it make its own (--segment auto), or run ppt inside: nsenter --ipc --target {pid} ppt \
             attach {pid}"
        ),
    );
    let inside = |script: &str| {
        let mut command = bench.command("nsenter");
        command.args(["--ipc", "--target", &pid.to_string(), "sh", "-c", script, ppt()]);
        let output = command.output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) =
        inside(&format!("echo 0 > /proc/sys/kernel/shmmni; exec \"$0\" attach {pid}"));
    assert_message(
        &said,
        "ppt: cannot make a segment of {} bytes: No space left on device (os error 28)\n  the \
         system's limit for shared memory is reached; see ipcs -lm, kernel.shmmni and \
         kernel.shmall\n",
    );
    assert_eq!(code, Some(1));
    let limits = "echo 4096 > /proc/sys/kernel/shmmni; echo 65536 > /proc/sys/kernel/shmmax";
    let (code, said) = inside(&format!("{limits}; exec \"$0\" attach {pid}"));
    assert_message(
        &said,
        "ppt: cannot make a segment of {} bytes: Invalid argument (os error 22)\n  it is larger \
         than kernel.shmmax allows; ask for less by --slots or --memory\n",
    );
    assert_eq!(code, Some(1));
    assert!(!bench.path("out.bin").exists());
    assert_eq!(page(&mut target), before, "off, and nothing was written");
    let (code, _) = inside(&format!(
        "echo 1073741824 > /proc/sys/kernel/shmmax; exec \"$0\" attach {pid} -d 10ms"
    ));
    assert_eq!(code, Some(0));
    target.finish();
}

/// Threads that cannot be started are reported, without a panic.
#[test]
fn too_little_address_space() {
    let bench = build(&[]);
    let target = start(&bench);
    for limit in (60_000..100_000).step_by(5_000) {
        let mut command = bench.command("sh");
        let pid = target.pid();
        let script = format!("ulimit -v {limit}; exec \"$0\" attach {pid} -d 10ms --force");
        let output = command.args(["-c", &script, ppt()]).output().unwrap();
        let stderr = text(&output.stderr);
        assert!(!stderr.contains("panicked"), "{limit}: {stderr}");
    }
    target.finish();
}

#[test]
fn too_few_descriptors() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let (pid, before) = (target.pid(), page(&mut target));
    let limited = |limit: u32| {
        let mut command = bench.command("sh");
        let script = format!("ulimit -n {limit}; exec \"$0\" attach {pid} -d 10ms --force");
        let output = command.args(["-c", &script, ppt()]).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    for limit in 5..16 {
        let (code, said) = limited(limit);
        assert_message(
            &said,
            &format!(
                "ppt: cannot examine process {pid}: Too many open files (os error 24)\n  ppt needs \
                 about 20 file descriptors, and 8 for each further process; raise the limit \
                 (ulimit -n)\n"
            ),
        );
        assert_eq!(code, Some(1));
        assert_eq!(page(&mut target), before);
    }
    assert!(!bench.path("out.bin").exists());
    assert_eq!(limited(24).0, Some(0));
    target.finish();
}
