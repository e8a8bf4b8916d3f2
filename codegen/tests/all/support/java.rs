//! A JDK, if one is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compiler::{Compiler, STRICT, STRICT_C};

/// The programs of a JDK, and its headers.
pub struct Jdk {
    home: PathBuf,
}

impl Jdk {
    /// The JDK of `JAVA_HOME`, or else of the `javac` in the PATH.
    pub fn find() -> Option<Jdk> {
        let home = std::env::var_os("JAVA_HOME").map(PathBuf::from).or_else(|| {
            let path = std::env::var_os("PATH")?;
            let javac = std::env::split_paths(&path).map(|folder| folder.join("javac"));
            let javac = javac.filter_map(|path| fs::canonicalize(path).ok()).next()?;
            Some(javac.parent()?.parent()?.to_owned())
        });
        let home = home.filter(|home| home.join("include/jni.h").exists());
        if home.is_none() {
            println!("Java is skipped: there is no JDK with javac and jni.h");
        }
        home.map(|home| Jdk { home })
    }

    /// Compiles the generated C of a folder, strictly.
    pub fn library(&self, compiler: Compiler, folder: &Path, stem: &str) {
        let include = self.home.join("include");
        let mut command = Command::new(compiler.c);
        command.current_dir(folder).arg("-isystem").arg(&include);
        command.arg("-isystem").arg(include.join("linux")).args(STRICT).args(STRICT_C);
        run(command.args(["-O2", "-fPIC", "-c", "-o", "/dev/null"]).arg(format!("{stem}_jni.c")));
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

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&said));
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
