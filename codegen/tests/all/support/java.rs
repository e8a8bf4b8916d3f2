//! A JDK, if a whole one is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::compiler::{Compiler, STRICT, STRICT_C, SYNTAX};
use super::tried::{self, run};

/// The programs of a JDK, and its headers.
pub struct Jdk {
    home: PathBuf,
}

impl Jdk {
    /// The JDK of `JAVA_HOME`, or else of the `javac` in the PATH, if its programs and its headers work.
    pub fn find() -> Option<&'static Jdk> {
        static FOUND: OnceLock<Option<Jdk>> = OnceLock::new();
        let found = || Some(Jdk { home: home()? }).filter(Jdk::works);
        FOUND.get_or_init(found).as_ref()
    }

    fn works(&self) -> bool {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tried.c"), "#include <jni.h>\njint tried;\n").unwrap();
        fs::write(folder.path().join("Tried.java"), "/** Tried. */\nfinal class Tried {}\n")
            .unwrap();
        let mut library = self.c(Compiler::gcc(), folder.path());
        library.args(SYNTAX).arg("tried.c");
        let mut classes = Command::new(self.home.join("bin/javac"));
        classes.current_dir(folder.path()).args(["--release", "17", "Tried.java"]);
        let mut documentation = Command::new(self.home.join("bin/javadoc"));
        documentation.arg("--version");
        tried::works("Java", &mut [library, classes, documentation])
    }

    /// A command that compiles C code with the headers of the JDK.
    fn c(&self, compiler: Compiler, folder: &Path) -> Command {
        let include = self.home.join("include");
        let mut command = Command::new(compiler.c);
        command.current_dir(folder).arg("-isystem").arg(&include);
        command.arg("-isystem").arg(include.join("linux"));
        command
    }

    /// Compiles the generated C, strictly.
    pub fn libraries(&self, compiler: Compiler, folder: &Path, how: &[&str], files: &[String]) {
        let mut command = self.c(compiler, folder);
        command.args(STRICT).args(STRICT_C).args(how);
        run(command.args(files));
    }

    /// Compiles all classes under a folder, whatever the locale is.
    pub fn classes(&self, folder: &Path) {
        let mut command = Command::new(self.home.join("bin/javac"));
        command.current_dir(folder).env("LC_ALL", "C");
        command.args(["--release", "17", "-Xlint:all", "-Werror", "-d", "classes"]);
        run(command.args(sources(folder)));
    }

    /// Checks the documentation of all classes under a folder.
    pub fn documentation(&self, folder: &Path) {
        let mut command = Command::new(self.home.join("bin/javadoc"));
        command.current_dir(folder).env("LC_ALL", "C");
        command.args(["-Xdoclint:all", "-Xwerror", "-quiet", "-d", "documentation"]);
        run(command.args(sources(folder)));
    }
}

fn home() -> Option<PathBuf> {
    let home = std::env::var_os("JAVA_HOME").map(PathBuf::from).or_else(|| {
        let path = std::env::var_os("PATH")?;
        let javac = std::env::split_paths(&path).map(|folder| folder.join("javac"));
        let javac = javac.filter_map(|path| fs::canonicalize(path).ok()).next()?;
        Some(javac.parent()?.parent()?.to_owned())
    });
    if home.is_none() {
        println!("Java is skipped: there is no javac in the PATH");
    }
    home
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for found in fs::read_dir(folder).unwrap() {
        let path = found.unwrap().path();
        if path.is_dir() {
            sources.extend(self::sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "java") {
            sources.push(path);
        }
    }
    sources
}
