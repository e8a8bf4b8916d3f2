//! The installed files other than the binaries: man pages without warnings, completions that know
//! running processes, CMake and pkg-config files that find their pptc in any location.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::fixtures::support::{Bench, Ran, Target, available, copy_program, root, text};

/// An installation of this build in the test's folder.
struct Installed {
    bench: Bench,
    prefix: PathBuf,
}

impl Installed {
    fn new() -> Self {
        let bench = Bench::new();
        let prefix = bench.path("prefix");
        fs::create_dir_all(prefix.join("bin")).unwrap();
        for binary in [env!("CARGO_BIN_EXE_ppt"), env!("CARGO_BIN_EXE_pptc")] {
            let name = PathBuf::from(binary);
            copy_program(binary, prefix.join("bin").join(name.file_name().unwrap()));
        }
        let binaries = PathBuf::from(env!("CARGO_BIN_EXE_ppt"));
        let binaries = binaries.parent().unwrap();
        // Cargo builds examples of the package together with its tests.
        let packaging = binaries.join("examples/packaging");
        let output = Command::new(&packaging).arg(&prefix).arg(binaries).output();
        let output = output.unwrap_or_else(|error| {
            panic!("{}: {error}; cargo build --example packaging", packaging.display())
        });
        assert!(output.status.success(), "{}", text(&output.stderr));
        Self { bench, prefix }
    }

    /// Runs a shell script with the installed binaries first on PATH.
    fn shell(&self, shell: &str, script: &str) -> Ran {
        let path = std::env::var("PATH").unwrap();
        let mut command = self.bench.command(shell);
        command.env("PATH", format!("{}:{path}", self.prefix.join("bin").display()));
        command.env("HOME", self.bench.path("")).env("PREFIX", &self.prefix);
        let output = command.args(["-c", script]).output().unwrap();
        Ran { status: output.status, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// The completions of bash after `words`, the last of which is incomplete.
    fn bash(&self, words: &[&str]) -> Vec<String> {
        let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "source \"$PREFIX/share/bash-completion/completions/ppt\"\n\
             COMP_WORDS=({}) COMP_CWORD={} COMP_TYPE=9\n\
             _clap_complete_ppt ppt '{}' ''\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
            quoted.join(" "),
            words.len() - 1,
            words.last().unwrap()
        );
        let ran = self.shell("bash", &script);
        ran.stdout.lines().map(|line| line.trim().to_string()).collect()
    }
}

fn target(bench: &Bench) -> Target {
    bench.copy_all(&["job.frame", "block.c"]);
    bench.pptc(&["job.frame"]);
    bench.cc(&["block.c", "job.c", "-o", "block"]);
    bench.start("block", &[])
}

#[test]
fn man_pages_render_without_warnings() {
    let installed = Installed::new();
    let pages = fs::read_dir(installed.prefix.join("share/man/man1")).unwrap();
    let pages: Vec<_> = pages.map(|page| page.unwrap().path()).collect();
    assert!(pages.len() >= 9, "{pages:?}");
    for page in &pages {
        let roff = fs::read_to_string(page).unwrap();
        assert!(roff.contains(".SH EXIT STATUS"), "{}", page.display());
        if !available("groff") {
            continue;
        }
        let output = Command::new("groff")
            .args(["-man", "-ww", "-Tutf8", "-Kutf8"])
            .arg(page)
            .output()
            .unwrap();
        assert_eq!(text(&output.stderr), "", "{}", page.display());
        assert!(text(&output.stdout).contains("General Commands Manual"), "{}", page.display());
    }
}

#[test]
fn completions_parse() {
    let installed = Installed::new();
    let share = installed.prefix.join("share");
    for (shell, files) in [
        ("bash", ["bash-completion/completions/ppt", "bash-completion/completions/pptc"]),
        ("zsh", ["zsh/site-functions/_ppt", "zsh/site-functions/_pptc"]),
        ("fish", ["fish/vendor_completions.d/ppt.fish", "fish/vendor_completions.d/pptc.fish"]),
    ] {
        for file in files.map(|file| share.join(file)) {
            assert!(file.exists(), "{}", file.display());
            if available(shell) {
                let output = Command::new(shell).arg("-n").arg(&file).output().unwrap();
                assert!(output.status.success(), "{shell} -n: {}", text(&output.stderr));
            }
        }
    }
}

/// Without a package, `ppt` writes the same files.
#[test]
fn completions_and_man_pages_are_commands() {
    let installed = Installed::new();
    let ppt = |args: &[&str]| installed.bench.ppt(args);
    for shell in ["bash", "zsh", "fish"] {
        let mut asked = installed.bench.command(env!("CARGO_BIN_EXE_ppt"));
        let expected = text(&asked.env("PPT_COMPLETE", shell).output().unwrap().stdout);
        let printed = ppt(&["completion", shell]);
        assert!(printed.code() == 0 && printed.stdout.contains("PPT_COMPLETE"), "{shell}");
        // One refers to `ppt` as it was called, the other as it is found in PATH.
        let binary = env!("CARGO_BIN_EXE_ppt");
        assert_eq!(printed.stdout, expected.replace(binary, "ppt"), "{shell}");
    }
    assert_eq!(ppt(&["completion", "tcsh"]).code(), 2);
    let pages = installed.bench.path("pages");
    fs::create_dir(&pages).unwrap();
    assert_eq!(ppt(&["man", "pages"]).code(), 0);
    for page in ["ppt.1", "ppt-attach.1", "ppt-completion.1", "pptc.1"] {
        let page = fs::read_to_string(pages.join(page)).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(".SH EXIT STATUS"), "{page}");
    }
    let missing = ppt(&["man", "missing"]);
    assert_eq!(missing.code(), 1);
    assert!(missing.stderr.contains("cannot write missing/ppt"), "{}", missing.stderr);
    assert!(missing.stderr.contains("more: ppt explain cannot-write"), "{}", missing.stderr);
}

/// Options of every capture are not below the heading of the flight recorder.
#[test]
fn the_flight_recorder_has_its_options_alone() {
    let installed = Installed::new();
    for command in ["attach", "run"] {
        let help = installed.bench.ppt(&[command, "--help"]).stdout;
        let (before, flight) = help.split_once("Flight recorder:").unwrap();
        for option in ["--force", "--allow", "--verbose", "--quiet", "--output"] {
            assert!(before.contains(option) && !flight.contains(&format!(" {option}")), "{help}");
        }
        assert!(flight.contains("--cooldown") && flight.contains("--on-gap"), "{help}");
    }
}

#[test]
fn bash_completes_commands_pids_and_buffers() {
    let installed = Installed::new();
    let mut target = target(&installed.bench);
    let pid = target.pid().to_string();
    // On a busy machine there are many processes to inspect.
    let begun = &pid[..pid.len() - 1];
    let commands = installed.bash(&["ppt", "d"]);
    for command in ["detach", "doctor", "dump"] {
        assert!(commands.contains(&command.to_string()), "{commands:?}");
    }
    for command in ["attach", "detach", "list", "doctor", "top"] {
        let pids = installed.bash(&["ppt", command, begun]);
        assert!(pids.contains(&pid), "{command}: {pids:?}");
    }
    assert_eq!(installed.bash(&["ppt", "attach", &pid, "-b", ""]), ["job"]);
    assert_eq!(installed.bash(&["ppt", "attach", &pid, "-b", "x"]), [""]);
    assert_eq!(installed.bash(&["ppt", "attach", "-p", &pid, "--buffer", "j"]), ["job"]);

    let attach = installed.bench.attach(&target, &[]);
    target.run();
    attach.stop();
    target.finish();
    assert_eq!(installed.bash(&["ppt", "dump", "out.bin", "-b", ""]), ["job"]);
    assert!(!installed.bash(&["ppt", "attach", begun]).contains(&pid), "it has ended");
    let ours = std::process::id().to_string();
    assert!(!installed.bash(&["ppt", "attach", &ours]).contains(&ours), "it has no buffers");
}

#[test]
fn commands_that_answer_are_completed_and_explained() {
    let installed = Installed::new();
    assert_eq!(installed.bash(&["ppt", "stat", "--buf"]), ["--buffer"]);
    assert_eq!(installed.bash(&["ppt", "repo"]), ["report"]);
    assert!(installed.shell("sh", "ppt help sql").stdout.contains("Usage: ppt sql"));
    assert!(installed.shell("sh", "ppt help nothing").stderr.contains("unrecognized subcommand"));
}

#[test]
fn fish_completes_pids_with_names() {
    if !available("fish") {
        return;
    }
    let installed = Installed::new();
    let mut target = target(&installed.bench);
    let pid = target.pid().to_string();
    let script = format!(
        "source $PREFIX/share/fish/vendor_completions.d/ppt.fish; \
         complete --do-complete 'ppt attach {}'",
        &pid[..pid.len() - 1]
    );
    let ran = installed.shell("fish", &script);
    let line = format!("{}\tblock: job", target.pid());
    assert!(ran.stdout.lines().any(|it| it == line), "{ran:?}");
    target.run();
    target.finish();
}

#[test]
fn cmake_and_pkg_config_find_the_pptc_of_their_prefix() {
    let installed = Installed::new();
    // Moved after it was written: it contains no absolute paths.
    let moved = installed.bench.path("moved here");
    fs::rename(&installed.prefix, &moved).unwrap();
    if available("pkg-config") {
        let output = Command::new("pkg-config")
            .args(["--variable=pptc", "ppt"])
            .env("PKG_CONFIG_PATH", moved.join("lib/pkgconfig"))
            .output()
            .unwrap();
        let said = text(&output.stdout).replace("\\ ", " ");
        let found = fs::canonicalize(said.trim()).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(found, fs::canonicalize(moved.join("bin/pptc")).unwrap());
    }
    if !available("cmake") || !available("make") {
        return;
    }
    let configure = |version: &str, build: &str| {
        let app = format!(
            "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES NONE)\n\
             find_package(ppt {version} REQUIRED)\nmessage(STATUS \"pptc is ${{PPTC}}\")\n"
        );
        installed.bench.write("CMakeLists.txt", &app);
        let mut command = installed.bench.command("cmake");
        command
            .args(["-S", ".", "-B", build])
            .arg("-DCMAKE_PREFIX_PATH=".to_string() + moved.to_str().unwrap());
        let output = command.output().unwrap();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    let (found, said) = configure(env!("CARGO_PKG_VERSION"), "now");
    assert!(found && said.contains(&format!("pptc is {}/bin/pptc", moved.display())), "{said}");
    let (found, said) = configure("99.0", "later");
    assert!(!found && said.contains("99.0"), "{said}");
}

#[test]
fn the_package_script_checks_its_arguments() {
    let output = Command::new(root().join("packaging/build")).arg("--what").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let usage = "usage: packaging/build [--check] [ppt] [record] [wheel]";
    assert!(text(&output.stderr).contains(usage));
}
