//! The files that killed processes leave.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use ppt_clock::sync::ClockReadings;

/// A process that is ended on drop.
struct KilledServer(Child);

impl Drop for KilledServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The example, which cargo builds next to the tests.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().with_file_name("examples").join("sync")
}

fn key(folder: &Path) -> PathBuf {
    let path = folder.join("key");
    fs::write(&path, "what only they know").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// A server, if it gets the address.
fn serve(address: &str, key: &Path) -> Option<(KilledServer, String, BufReader<ChildStdout>)> {
    let mut command = Command::new(program());
    command.args(["serve", address]).arg(key).arg("b");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut server = KilledServer(child.unwrap());
    let mut output = BufReader::new(server.0.stdout.take().unwrap());
    let mut address = String::new();
    output.read_line(&mut address).unwrap();
    (!address.is_empty()).then(|| (server, address.trim().to_owned(), output))
}

fn ask(address: &str, key: &Path, file: &Path) -> KilledServer {
    let mut command = Command::new(program());
    command.args(["ask", "a"]).arg(key).arg(file).args(["200", "600", address]);
    KilledServer(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

/// The readable content, if there is a file.
fn read(file: &Path) -> Option<ClockReadings> {
    let mut readings = ClockReadings::default();
    readings.read(&fs::read(file).ok()?).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    Some(readings)
}

#[test]
fn who_asks_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let key = key(folder.path());
    let (_server, address, _output) = serve("127.0.0.1:0", &key).unwrap();
    let mut grown = 0;
    for (round, bytes) in [0, 1, 100, 190, 250, 400].into_iter().enumerate() {
        let file = folder.path().join(format!("{round}.sync"));
        let mut asking = ask(&address, &key, &file);
        let mut said = asking.0.stderr.take().unwrap();
        // Killed at once, or after some output: at any moment between two lines.
        let mut first = [0; 400];
        said.read_exact(&mut first[..bytes]).unwrap();
        drop(asking);
        if let Some(readings) = read(&file) {
            grown += readings.probes().len();
        }
    }
    assert!(grown > 0, "nothing was ever kept");
    // No process is left, and the files without names are gone.
    let names = fs::read_dir(folder.path()).unwrap().map(|result| result.unwrap().file_name());
    for name in names {
        let name = name.into_string().unwrap();
        assert!(name == "key" || name.ends_with(".sync"), "{name}");
    }
}

/// A server that is killed and restarted is probed again: another conversation, the same host.
#[test]
fn who_answers_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let key = key(folder.path());
    // A port outside the range that the system assigns, so that it is still free for the second server.
    let ports = (20_000..30_000).cycle().skip(std::process::id() as usize % 10_000).take(100);
    let mut servers = ports.filter_map(|port| serve(&format!("127.0.0.1:{port}"), &key));
    let (server, address, _output) = servers.next().unwrap();
    let file = folder.path().join("it.sync");
    let mut asking = ask(&address, &key, &file);
    let mut said = BufReader::new(asking.0.stderr.take().unwrap()).lines();
    let mut until = |word: &str| {
        let mut last = String::new();
        while !last.contains(word) {
            let line = said.next().unwrap_or_else(|| panic!("no {word} after: {last}"));
            last = line.unwrap();
        }
    };
    until("complete");
    drop(server);
    until("Silent");
    let before = read(&file).unwrap().probes().len();
    let (_server, _, _output) = serve(&address, &key).expect("the same address again");
    until("Answered");
    // The line after the next is of a second in which the host was probed again, and was flushed.
    until("complete");
    until("complete");
    drop(asking);
    let readings = read(&file).unwrap();
    assert!(readings.probes().len() > before, "{before}");
    assert_eq!(readings.hosts().len(), 2);
}
