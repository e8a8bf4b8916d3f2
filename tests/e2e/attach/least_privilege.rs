//! Minimal privileges: the processes that ppt captures without any, and the effect of one
//! capability. Refusals are tested in `refusals.rs`; kernel answers that do not occur here, in
//! `agent/src/denied.rs`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use crate::fixtures::refused::{refused_to_nobody, with};
use crate::fixtures::steady::{
    NOBODY, assert_message, build, gate, is_root, open_to_nobody, start, start_as_nobody,
};
use crate::fixtures::support::{Account, Attach, Bench, Target, available, segments_of, text};

/// A folder with the target `steady` that is not writable, if privileges can be dropped here.
fn bench() -> Option<Bench> {
    if !is_root() || !available("setpriv") {
        return None;
    }
    let bench = build(&[]);
    open_to_nobody(&bench);
    std::os::unix::fs::chown(bench.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
    Some(bench)
}

/// Captures all frames that the target writes.
fn captured(bench: &Bench, mut target: Target, mut ppt: Command, args: &[&str]) {
    fs::write(bench.path("counters"), [0; 4096]).unwrap();
    ppt.args(["attach", &target.pid().to_string()]).args(args);
    let attach = Attach::start(ppt);
    let agent = attach.pid();
    target.say("burst 1000");
    let written = target.written();
    attach.stop();
    assert!(!gate(&mut target), "off again");
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!(account, Account { captured: written, ..Account::default() }, "{args:?}");
    let metadata = fs::metadata(bench.path("out.bin")).unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o777), (NOBODY, 0o600));
    target.finish();
    assert_eq!(segments_of(&[agent]), 0);
}

#[test]
fn ones_own_program_takes_no_rights() {
    let Some(bench) = bench() else { return };
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or("0\n".into());
    for segment in ["sysv", "memfd"] {
        let mut target = start_as_nobody(&bench);
        if scope != "0\n" {
            let said = refused_to_nobody(&bench, target.pid(), &[]);
            assert!(said.contains("kernel.yama.ptrace_scope is"), "{said}");
            if scope != "1\n" {
                return;
            }
        }
        // No effect without Yama; with it, this permits the attach.
        target.say("allow");
        target.stdout.wait_for("allowed");
        captured(&bench, target, with(&bench, "-all"), &["--force", "--segment", segment]);
    }
}

#[test]
fn another_users_program_takes_one_capability() {
    let Some(bench) = bench() else { return };
    for segment in ["sysv", "memfd"] {
        let target = start(&bench);
        let ppt = with(&bench, "-all,+sys_ptrace");
        captured(&bench, target, ppt, &["--force", "--segment", segment]);
    }
}

#[test]
fn a_program_that_is_not_dumpable_takes_the_same_one() {
    let Some(bench) = bench() else { return };
    let mut target = start_as_nobody(&bench);
    target.say("hide");
    target.stdout.wait_for("hidden");
    captured(&bench, target, with(&bench, "-all,+sys_ptrace"), &[]);
}

/// Also under Yama's scope 1, because ppt is an ancestor of all processes of the command.
#[test]
fn a_command_of_ones_own_takes_no_rights() {
    let Some(bench) = bench() else { return };
    let script = "echo burst 1000 | ./steady counters; echo burst 1000 | ./steady counters";
    let mut command = with(&bench, "-all");
    let output = command.args(["run", "--", "sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!(account, Account { captured: 2000, ..Account::default() });
}

/// For example a server that may bind to low ports: being its user is not enough.
#[test]
fn a_program_with_capabilities_is_refused_to_its_user() {
    let Some(bench) = bench() else { return };
    let mut command = bench.command("setpriv");
    let user = NOBODY.to_string();
    let caps = "-all,+net_bind_service";
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
    command.args(["--inh-caps", caps, "--ambient-caps", caps, "./steady", "counters"]);
    let mut target = Target::start(command);
    let pid = target.pid();
    let said = refused_to_nobody(&bench, pid, &[]);
    assert_message(
        &said,
        &format!(
            "ppt: no permission to attach to process {pid} (steady): it has capabilities that ppt \
             does not have (its CapPrm is 400)\n  run ppt with CAP_SYS_PTRACE (sudo ppt …)"
        ),
    );
    assert!(!gate(&mut target));
    captured(&bench, target, with(&bench, "-all,+sys_ptrace"), &[]);
}

/// The request of `ppt_allow_attach` to the kernel, in each language that has it.
#[test]
fn a_program_may_let_its_user_attach() {
    if !available("g++") {
        return;
    }
    const SPY: &str = "#include <stdarg.h>\n#include <stdio.h>\n#include <errno.h>\n\
        int prctl(int option, ...) {\n    va_list list;\n    va_start(list, option);\n    \
        unsigned long who = va_arg(list, unsigned long);\n    va_end(list);\n    \
        printf(\"prctl %x %lx\\n\", option, who);\n    errno = EINVAL;\n    return -1;\n}\n";
    const MAIN: &str = "#include HEADER\n#include <errno.h>\n#include <stdio.h>\n\
        int main(void) {\n    errno = 7;\n    ppt_allow_attach();\n    printf(\"errno %d\\n\", errno);\n    \
        return 0;\n}\n";
    let bench = Bench::new();
    bench.copy("job.frame");
    bench.write("spy.c", SPY);
    bench.write("main.c", MAIN);
    bench.write("main.cpp", MAIN);
    bench.pptc(&["job.frame"]);
    bench.pptc(&["--emit", "cpp", "job.frame"]);
    bench.cc(&["-DHEADER=\"job.h\"", "main.c", "job.c", "spy.c", "-o", "c"]);
    bench.cc(&["-c", "spy.c", "-o", "spy.o"]);
    bench.compile(
        "g++",
        &["-std=c++17", "-DHEADER=\"job.hpp\"", "main.cpp", "job.cpp", "spy.o", "-o", "cpp"],
    );
    let said = |program: &str| text(&bench.command(bench.path(program)).output().unwrap().stdout);
    for program in ["c", "cpp"] {
        assert_eq!(said(program), "prctl 59616d61 ffffffffffffffff\nerrno 7\n", "{program}");
    }
    bench.cc(&["-DPPT_DISABLE", "-DHEADER=\"job.h\"", "main.c", "job.c", "spy.c", "-o", "none"]);
    assert_eq!(said("none"), "errno 7\n");
}

/// Even without `/proc/PID/mem`, nothing is written into the next program.
#[test]
fn an_exec_of_another_users_program_is_noticed() {
    let Some(bench) = bench() else { return };
    let mut target = start(&bench);
    let mut command = with(&bench, "-all,+sys_ptrace");
    command.args(["attach", &target.pid().to_string(), "-v"]);
    let attach = Attach::start(command);
    target.say("burst 1000");
    let written = target.written();
    target.say("exec /bin/cat"); // it waits for its stdin to close
    let stderr = attach.ended(0);
    assert!(stderr.contains("started another program (exec)"), "{stderr}");
    assert!(stderr.contains("wrote by process_vm_writev"), "{stderr}");
    Account::of(&bench.info("out.bin")).check(written);
    target.finish();
}
