//! Node.js, if it is installed with its headers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::compiler::{Compiler, STRICT, STRICT_C, SYNTAX};
use super::tried::{self, run};

/// Node, and its headers.
pub struct Node {
    include: PathBuf,
}

impl Node {
    /// The `node` in the PATH, if its headers are installed with it.
    pub fn find() -> Option<&'static Node> {
        static FOUND: OnceLock<Option<Node>> = OnceLock::new();
        let found = || Some(Node { include: include()? }).filter(Node::works);
        FOUND.get_or_init(found).as_ref()
    }

    fn works(&self) -> bool {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tried.c"), "#include <node_api.h>\nnapi_env tried;\n")
            .unwrap();
        let mut addon = self.c(Compiler::gcc(), folder.path());
        addon.args(SYNTAX).arg("tried.c");
        let mut module = Command::new("node");
        module.args(["-e", "import('node:fs').then((module) => module.existsSync)"]);
        tried::works("Node", &mut [addon, module])
    }

    /// A command that compiles C code with the headers of Node.
    fn c(&self, compiler: Compiler, folder: &Path) -> Command {
        let mut command = Command::new(compiler.c);
        command.current_dir(folder).arg("-isystem").arg(&self.include);
        command
    }

    /// Compiles the generated C of packages, strictly. Each is in a subfolder with the name of its frame file.
    pub fn addons(&self, compiler: Compiler, folder: &Path, how: &[&str], stems: &[String]) {
        let mut command = self.c(compiler, folder);
        command.args(STRICT).args(STRICT_C).args(how);
        run(command.args(stems.iter().map(|stem| format!("{stem}/{stem}_node.c"))));
    }

    /// Loads the modules of packages, which have no addon: once by `require`, once by `import`, which
    /// has the same names.
    pub fn modules(&self, folder: &Path, stems: &[String]) {
        let script = "
            for (const stem of process.argv.slice(1)) {
                const job = require(`./${stem}/index.js`);
                if (job.failure() === null)
                    throw new Error(`${stem}: there is no addon`);
                import(`./${stem}/index.mjs`).then((module) => {
                    for (const name of new Set([...Object.keys(job), ...Object.keys(module)]))
                        if (module[name] === undefined || job[name] !== module[name])
                            throw new Error(`${stem}: ${name}`);
                });
            }";
        let mut command = Command::new("node");
        run(command.current_dir(folder).args(["--no-warnings", "-e", script]).args(stems));
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

fn include() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join("node"));
    let found = found.filter_map(|path| fs::canonicalize(path).ok()).next();
    if found.is_none() {
        println!("Node is skipped: there is no node in the PATH");
    }
    Some(found?.parent()?.parent()?.join("include/node"))
}
