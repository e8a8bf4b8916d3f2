//! Steps with clock readings: measured, refused, and killed.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::world::{KeptFile, World};
use super::{CAPTURES, TABLES};

/// A host that answers probes. It ends with its sequence.
pub(super) struct ClockServer {
    child: Child,
    address: String,
}

impl Drop for ClockServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The key of both sides. It is neither a capture nor an output of a command.
pub(super) const KEY: &str = "steady.key";

impl World {
    /// Clock readings, into any file; a third of the commands is killed.
    pub(super) fn sync(&mut self) {
        let address = self.server();
        let outputs: Vec<_> = CAPTURES.iter().chain(&TABLES).copied().collect();
        let output = self.random.pick(&outputs).unwrap();
        let force = self.force();
        let kill_after = self.random.one_in(3).then(|| self.random.below(200_000));
        self.log(format!("sync -o {output} {force:?}, kill after {kill_after:?}"));
        let args = ["sync", &address, "--key", KEY, "--name", "asks", "-d", "100ms", "-o", output];
        let args = [&args[..], force].concat();
        let may = self.may_write(output, force);
        if let Some(delay) = kill_after {
            let mut child = self.command(&args).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(delay));
            child.kill().unwrap();
            child.wait().unwrap();
            (self.killed, self.totals.kills) = (true, self.totals.kills + 1);
        } else {
            let ran = self.ppt(&args);
            assert_eq!(ran.code(), i32::from(!may), "{}", ran.stderr);
            self.totals.refusals += u64::from(!may);
            self.killed &= !may;
        }
        let before = match self.files.get(output) {
            Some(KeptFile::Live) => return,
            Some(KeptFile::Whole(bytes)) => Some(bytes.clone()),
            None => None,
        };
        if self.read(output) != before {
            assert!(may, "{output}");
            let told = self.bench.ppt(&["info", "--sync", output]);
            assert_eq!(told.code(), 0, "{}", told.stderr);
            assert!(told.stdout.contains("times are by the clock of asks"), "{}", told.stdout);
            self.keep(output);
        } else {
            assert!(!may || kill_after.is_some(), "{output}");
        }
    }

    /// The address of the host that answers, which is started on first use.
    fn server(&mut self) -> String {
        if let Some(server) = &self.server {
            return server.address.clone();
        }
        fs::write(self.bench.path(KEY), [7; 32]).unwrap();
        fs::set_permissions(self.bench.path(KEY), Permissions::from_mode(0o600)).unwrap();
        let args = ["sync", "serve", "127.0.0.1:0", "--key", KEY, "--name", "answers"];
        let mut child = self.command(&args).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("answers on ").nth(1).and_then(|piece| piece.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        self.server = Some(ClockServer { child, address: address.clone() });
        address
    }
}
