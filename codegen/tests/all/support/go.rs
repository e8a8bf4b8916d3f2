//! Go's own tools, if they are installed.

use std::path::Path;
use std::process::Command;

use super::compiler::{Compiler, STRICT, STRICT_C};

/// `go` and `gofmt`.
pub struct Go;

impl Go {
    pub fn find() -> Option<Go> {
        let there = ["go", "gofmt"].iter().all(|name| {
            // gofmt has no option that ends at once, but reads nothing at all.
            let argument = if *name == "go" { &["version"][..] } else { &["-l"] };
            let mut command = Command::new(name);
            command.args(argument).stdin(std::process::Stdio::null());
            command.output().is_ok_and(|output| output.status.success())
        });
        if !there {
            println!("Go is skipped: `go` and `gofmt` do not run here");
        }
        there.then_some(Go)
    }

    /// Compiles the C code that Go calls, strictly, with ppt compiled in and without.
    pub fn header(&self, compiler: Compiler, folder: &Path) {
        for more in [&["-O2"][..], &["-DPPT_DISABLE"]] {
            let mut command = Command::new(compiler.c);
            command.current_dir(folder).args(STRICT).args(STRICT_C).args(more);
            command.args(["-D_GNU_SOURCE", "-x", "c", "-fsyntax-only", "-include"]);
            // The header itself is included by a file that has nothing else.
            run(command.args(["frames_cgo.h", "/dev/null"]));
        }
    }

    /// Checks the packages in the subfolders of a folder by `gofmt` and `go vet`, with cgo and without.
    pub fn vet(&self, folder: &Path) {
        std::fs::write(folder.join("go.mod"), "module goldens\n\ngo 1.18\n").unwrap();
        let output = run(Command::new("gofmt").arg("-l").arg(folder));
        assert_eq!(output, "", "gofmt would change them");
        run(&mut go(folder, &["vet", "./..."]));
        run(go(folder, &["vet", "./..."]).env("CGO_ENABLED", "0"));
    }

    /// Builds the packages: with cgo, without ppt compiled in, and without cgo for 32 bits.
    pub fn build(&self, folder: &Path) {
        run(&mut go(folder, &["build", "./..."]));
        run(go(folder, &["build", "./..."]).env("CGO_CFLAGS", "-DPPT_DISABLE"));
        run(go(folder, &["build", "./..."]).env("CGO_ENABLED", "0").env("GOARCH", "386"));
    }
}

/// A command of Go that needs no network, with a cache of its own.
pub fn go(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("go");
    command.current_dir(folder).args(arguments);
    command.env("GOFLAGS", "-mod=mod").env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    command.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"));
    command
}

/// The stdout of a command.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [said, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{command:?}:\n{said}{errors}");
    said
}
