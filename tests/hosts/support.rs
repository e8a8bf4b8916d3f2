//! A folder in which commands run.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The root of the sources.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A folder in which commands run.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn empty() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ppt"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Its stdout; the command must succeed.
    pub fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Its stderr and exit code; the command must fail.
    pub fn fails(&self, args: &[&str]) -> (String, i32) {
        let output = self.run(args);
        (String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> =
            files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
