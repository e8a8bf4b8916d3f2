//! Go's own tools, if they are installed and work with a C compiler.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::compiler::{Compiler, STRICT, STRICT_C};
use super::tried::{self, run};

/// `go` and `gofmt`.
pub struct Go;

impl Go {
    /// Go, if it builds packages that call C.
    pub fn find() -> Option<Go> {
        static WORKS: OnceLock<bool> = OnceLock::new();
        WORKS.get_or_init(Go::works).then_some(Go)
    }

    fn works() -> bool {
        let folder = tempfile::tempdir().unwrap();
        let program = "package tried\n\n// int tried;\nimport \"C\"\n\nvar Tried = C.tried\n";
        fs::write(folder.path().join("tried.go"), program).unwrap();
        fs::write(folder.path().join("go.mod"), "module tried\n\ngo 1.18\n").unwrap();
        let mut format = Command::new("gofmt");
        format.current_dir(folder.path()).args(["-l", "tried.go"]);
        tried::works("Go", &mut [format, go(folder.path(), &["build", "."])])
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
        fs::write(folder.join("go.mod"), "module goldens\n\ngo 1.18\n").unwrap();
        let output = run(Command::new("gofmt").arg("-l").arg(folder));
        assert_eq!(output, "", "gofmt would change them");
        run(&mut go(folder, &["vet", "./..."]));
        run(go(folder, &["vet", "./..."]).env("CGO_ENABLED", "0"));
    }

    /// Builds packages: with cgo, without ppt compiled in, and without cgo for 32 bits.
    pub fn build(&self, folder: &Path, packages: &str) {
        run(&mut go(folder, &["build", packages]));
        run(go(folder, &["build", packages]).env("CGO_CFLAGS", "-DPPT_DISABLE"));
        run(go(folder, &["build", packages]).env("CGO_ENABLED", "0").env("GOARCH", "386"));
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
