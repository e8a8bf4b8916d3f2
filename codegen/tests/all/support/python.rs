//! The headers of Python, if they are installed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::compiler::SYNTAX;
use super::tried::{self, run};

/// The flags with which C finds the headers.
pub struct Python {
    includes: String,
}

impl Python {
    pub fn find() -> Option<&'static Python> {
        static FOUND: OnceLock<Option<Python>> = OnceLock::new();
        FOUND.get_or_init(Python::that_works).as_ref()
    }

    fn that_works() -> Option<Python> {
        let mut config = Command::new("python3-config");
        config.arg("--includes");
        if !tried::works("Python", &mut [config]) {
            return None;
        }
        let python = Python { includes: run(Command::new("python3-config").arg("--includes")) };
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tried.c"), "#include <Python.h>\n").unwrap();
        let attempt = python.c(folder.path(), &["tried.c".into()]);
        tried::works("Python", &mut [attempt]).then_some(python)
    }

    /// Compiles the generated C of modules.
    pub fn modules(&self, folder: &Path, files: &[String]) {
        run(&mut self.c(folder, files));
    }

    fn c(&self, folder: &Path, files: &[String]) -> Command {
        let mut command = Command::new("gcc");
        command.current_dir(folder).args(SYNTAX).args(["-Wall", "-Wextra", "-Werror"]);
        command.args(self.includes.split_whitespace()).args(files);
        command
    }
}
