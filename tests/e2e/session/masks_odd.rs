//! Masks in unusual situations: before a segment is fetched, at a takeover by another ppt, when a
//! pid is reused; and the socket with many clients.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::kernel::{NUMBERS, highest_number, last_number};
use super::masks::{ask, attach, built, masks_hold, ppt_of, run, socket};
use crate::fixtures::family::{Family, attached};
use crate::fixtures::support::{Account, Attach, Bench, Kind, ppt, wait_until};

fn monotonic() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

fn masks(info: &Value) -> &[Value] {
    info["masks"].as_array().map_or(&[], |all| all)
}

/// ppt fetches a segment made by the target after the first frame, and the disabled frames were off
/// before that.
#[test]
fn items_that_are_off_before_the_first_frame_are_stated() {
    let bench = built().of(Kind::Memfd);
    let mut target = bench.start("choosing", &[]);
    let session = attach(&bench, &target, &["--only", "stamped,plain"]);
    let pid = target.pid().to_string();
    // The target has not made a segment yet.
    assert_eq!(ppt_of(&bench, &["disable", &pid, "plain"]).0, 0);
    let before = monotonic();
    assert_eq!(run(&mut target), [0, 300, 0, 0, 0, 0, 0]);
    session.stop();
    let info = bench.info("out.bin");
    let off: Vec<_> = masks(&info).iter().filter(|mask| mask["enabled"] == false).collect();
    assert!(off.len() >= 6, "{off:?}");
    for mask in off {
        if mask["name"] == "plain" {
            continue;
        }
        assert!(mask["mono_ns"].as_u64().unwrap() < before, "{mask}");
        assert_eq!(mask["rings"], json!([]), "no frame came before: {mask}");
    }
    assert_eq!(Account::of(&info).captured, 300);
    target.finish();
}

/// Another ppt with another selection takes over: the first capture does not claim that its frames
/// were off.
fn a_takeover_is_stated(kind: Kind) {
    let bench = built().of(kind);
    let mut target = bench.start("choosing", &["4"]);
    let first = attach(&bench, &target, &["--only", "plain"]);
    target.say("start");
    let has_frames =
        |capture: &str| bench.info(capture)["buffers"][0]["frames"].as_u64() > Some(100);
    wait_until("the first capture has frames", || has_frames("out.bin"));
    let mut command = bench.command(ppt());
    command.args(["attach", &target.pid().to_string(), "--allow", "foreign-claim"]);
    command.args(["-o", "second.bin", "--only", "stamped", "--slots", "16384"]);
    command.args(bench.kind_args()).env("XDG_RUNTIME_DIR", bench.path(""));
    let second = Attach::start(command);
    first.ended(0);
    wait_until("the second capture has frames", || has_frames("second.bin"));
    target.say("stop");
    target.stdout.wait_for("ran ");
    second.stop();
    target.finish();

    let info = bench.info("out.bin");
    let of = |name: &str, enabled: bool| {
        masks(&info)
            .iter()
            .filter(|mask| mask["name"] == name && mask["enabled"] == enabled)
            .count()
    };
    assert_eq!((of("stamped", false), of("stamped", true)), (1, 1), "{}", info["masks"]);
    assert_eq!((of("plain", false), of("plain", true)), (1, 0), "{}", info["masks"]);
    masks_hold(&bench, "out.bin", &info);
    let info = bench.info("second.bin");
    masks_hold(&bench, "second.bin", &info);
}

#[test]
fn a_takeover_is_stated_sysv() {
    a_takeover_is_stated(Kind::SysV);
}

#[test]
fn a_takeover_is_stated_memfd() {
    a_takeover_is_stated(Kind::Memfd);
}

/// Silent clients do not block others, however many there are.
#[test]
fn many_silent_clients_displace_no_other() {
    let bench = built();
    let target = bench.start("choosing", &[]);
    let session = attach(&bench, &target, &[]);
    let socket = socket(&bench, &session);
    let crowd: Vec<_> = (0..400).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let pid = target.pid();
    let start = Instant::now();
    let answer = ask(&socket, &json!({"v": 1, "ask": "list"}));
    let took = start.elapsed();
    assert_eq!(answer["processes"][0]["pid"], pid);
    assert!(took < Duration::from_secs(1), "{took:?}");
    let start = Instant::now();
    assert_eq!(ppt_of(&bench, &["list", &pid.to_string()]).0, 0);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(ppt_of(&bench, &["disable", &pid.to_string(), "job"]).0, 0);
    drop(crowd);
    session.stop();
    target.finish();
}

/// In another pid namespace, a ppt may have the same pid as this one; both are reachable.
#[test]
fn sockets_of_two_namespaces_have_two_names() {
    let bench = built();
    let target = bench.start("choosing", &[]);
    let session = attach(&bench, &target, &[]);
    let socket = socket(&bench, &session);
    let (pid, namespace) = socket.file_name().unwrap().to_str().unwrap().split_once('-').unwrap();
    assert_eq!(pid, session.pid().to_string());
    assert!(namespace.parse::<u64>().is_ok());
    // A socket of an earlier version, which ignores namespaces and answers for no process here.
    let old = socket.with_file_name(pid);
    let listener = std::os::unix::net::UnixListener::bind(&old).unwrap();
    let stranger = std::thread::spawn(move || drop(listener.accept()));
    assert_eq!(ppt_of(&bench, &["disable", &target.pid().to_string(), "job"]).0, 0);
    stranger.join().unwrap();
    // Nobody listens to it any more, so another test's command may have removed it.
    let _ = std::fs::remove_file(old);
    session.stop();
    assert!(!socket.exists());
    target.finish();
}

/// A process with a reused pid follows the selection of the command line.
#[test]
fn a_pid_that_comes_again_is_another_process() {
    let _alone = NUMBERS.write();
    if highest_number().is_none() {
        return;
    }
    let bench = Family::build();
    let mut family = Family::start(&bench);
    let mut command = bench.command(ppt());
    command.args(["attach", &family.target.pid().to_string(), "--follow"]);
    command.env("XDG_RUNTIME_DIR", bench.path(""));
    let session = Attach::start(command);
    let first = family.make("fork");
    attached(&session.stderr, first);
    assert_eq!(ppt_of(&bench, &["disable", &first.pid.to_string(), "beat"]).0, 0);
    assert_eq!(family.round(first), 0, "it writes nothing");
    kill(Pid::from_raw(first.pid.cast_signed()), Signal::SIGKILL).unwrap();
    family.target.say("reap");
    let folder = format!("/proc/{}", first.pid);
    wait_until("the first one is gone", || !std::path::Path::new(&folder).exists());
    // Other programs create processes, too.
    let again = (0..200).find_map(|_| {
        last_number(first.pid - 1);
        let child = family.make("fork");
        attached(&session.stderr, child);
        (child.pid == first.pid).then_some(child)
    });
    let Some(again) = again else { return eprintln!("skipped: the pid went to others") };
    assert_eq!(family.round(again), 100, "nobody disabled anything of it");
    session.stop();
    family.target.finish();
}

/// Growing rings open the gate again after `ppt detach` has closed it: the detach word in the
/// control page still ends the session.
#[test]
fn a_detach_that_is_overwritten_takes_effect() {
    use std::os::unix::fs::FileExt;

    let bench: Bench = crate::fixtures::steady::build(&[]);
    let mut target = crate::fixtures::steady::start(&bench);
    let session = bench.attach(&target, &[]);
    let page = crate::fixtures::steady::page(&mut target);
    let address = page.split(' ').next().unwrap().trim_start_matches("0x");
    let address = u64::from_str_radix(address, 16).unwrap();
    let memory = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{}/mem", target.pid()))
        .unwrap();
    // The nonce of the claim, and the word that asks its session to end.
    let mut claim = [0; 8];
    memory.read_exact_at(&mut claim, address + 104).unwrap();
    assert_ne!(claim, [0; 8]);
    memory.write_all_at(&claim, address + 232).unwrap();
    let stderr = session.ended(0);
    assert!(stderr.contains("switched off from outside"), "{stderr}");
    assert!(!crate::fixtures::steady::gate(&mut target), "the gate is closed");
    // The next session has another claim.
    let session = bench.attach(&target, &["-o", "next.bin"]);
    assert!(crate::fixtures::steady::gate(&mut target));
    session.stop();
    target.finish();
}
