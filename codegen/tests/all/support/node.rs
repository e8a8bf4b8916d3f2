//! Node.js, if it is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compiler::{Compiler, STRICT, STRICT_C};

/// Node, and its headers.
pub struct Node {
    include: PathBuf,
}

impl Node {
    /// The `node` in the PATH, if its headers are installed with it.
    pub fn find() -> Option<Node> {
        let path = std::env::var_os("PATH")?;
        let found = std::env::split_paths(&path).map(|folder| folder.join("node"));
        let found = found.filter_map(|path| fs::canonicalize(path).ok()).next();
        let include = found.and_then(|found| Some(found.parent()?.parent()?.join("include/node")));
        let include = include.filter(|include| include.join("node_api.h").exists());
        if include.is_none() {
            println!("Node is skipped: there is no node with node_api.h");
        }
        include.map(|include| Node { include })
    }

    /// Compiles the generated C of a folder, strictly.
    pub fn addon(&self, compiler: Compiler, folder: &Path, stem: &str) {
        let mut command = Command::new(compiler.c);
        command.current_dir(folder).arg("-isystem").arg(&self.include).args(STRICT).args(STRICT_C);
        run(command.args(["-O2", "-fPIC", "-c", "-o", "/dev/null"]).arg(format!("{stem}_node.c")));
    }

    /// Loads the modules of a folder, which has no addon: once by `require`, once by `import`, which
    /// has the same names.
    pub fn modules(&self, folder: &Path) {
        let script = "
            const job = require('./index.js');
            if (job.failure() === null)
                throw new Error('there is no addon');
            import('./index.mjs').then((module) => {
                for (const name of new Set([...Object.keys(job), ...Object.keys(module)]))
                    if (module[name] === undefined || job[name] !== module[name])
                        throw new Error(name);
            });";
        let mut command = Command::new("node");
        run(command.current_dir(folder).args(["--no-warnings", "-e", script]));
    }

    /// Checks the types of a folder's module, if there is a compiler of TypeScript.
    pub fn types(&self, folder: &Path) {
        if Command::new("tsc").arg("--version").output().is_err() {
            println!("the types are not checked: `tsc` does not run here");
            return;
        }
        let mut command = Command::new("tsc");
        command.current_dir(folder).args(["--noEmit", "--strict", "--target", "es2022", "--lib"]);
        run(command.args(["es2022", "index.d.ts"]));
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&said));
}
