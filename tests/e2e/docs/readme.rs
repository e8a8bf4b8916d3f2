//! The promises of the documents: their paths exist, and their commands can be copied.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use crate::fixtures::support::{Bench, available, root, text};

fn documents() -> Vec<PathBuf> {
    let in_folder = |name: &str| {
        let files = fs::read_dir(root().join(name)).unwrap().map(|result| result.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .collect::<Vec<_>>()
    };
    let others = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/faults.md"];
    let others = others.into_iter().map(|text| root().join(text));
    others.chain(in_folder("docs")).chain(in_folder("docs/measured")).collect()
}

/// The folders with which a word must start to be a path of the repository.
fn folders() -> Vec<String> {
    let entries = fs::read_dir(root()).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let names = folders.map(|folder| folder.file_name().into_string().unwrap() + "/");
    names.filter(|name| name != "target/" && name != ".git/").collect()
}

/// The paths of the repository in a text: words that start with one of its folders, and the targets
/// of links. `folder/{a,b}.rs` and patterns with `*` are left out.
fn paths_in(line: &str, folder: &Path, folders: &[String]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (at, _) in line.match_indices("](") {
        let target = line[at + 2..].split([')', '#']).next().unwrap();
        if !target.is_empty() && !target.contains("://") && !target.contains(' ') {
            paths.push(folder.join(target));
        }
    }
    let outside = |c: char| c.is_whitespace() || "`()[]|,;:\"'<>".contains(c);
    for word in line.split(outside) {
        let word = word.split('#').next().unwrap().trim_end_matches('.');
        if folders.iter().any(|folder| word.starts_with(folder))
            && !word.contains(['*', '{', '…', '$'])
        {
            paths.push(root().join(word));
        }
    }
    paths
}

#[test]
fn every_path_in_the_documents_exists() {
    let folders = folders();
    let mut found = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for line in text.lines() {
            for path in paths_in(line, document.parent().unwrap(), &folders) {
                assert!(path.exists(), "{}: {}", document.display(), path.display());
                found += 1;
            }
        }
    }
    assert!(found > 20, "{found}");
}

/// A line with `X` for each piece from `open` to `close`.
fn without(line: &str, open: &str, close: char) -> String {
    let mut rest = line;
    let mut left = String::new();
    while let Some((before, behind)) = rest.split_once(open) {
        let Some((_, behind)) = behind.split_once(close) else { break };
        left += &format!("{before}X");
        rest = behind;
    }
    left + rest
}

/// The commands of ppt in a line of a shell example: each command's word, and its options.
fn commands_in(line: &str) -> Vec<(String, Vec<String>)> {
    let line = line.split(" #").next().unwrap();
    let line = without(&without(&without(line, "'", '\''), "\"", '"'), "$(", ')');
    let mut commands = Vec::new();
    for piece in line.split(['|', '&', ';', '(', ')']) {
        let piece = piece.trim().trim_start_matches("sudo ");
        let mut words = piece.split_whitespace();
        let (Some("ppt"), Some(command)) = (words.next(), words.next()) else { continue };
        let is_option = |word: &&str| word.starts_with('-');
        let options = words.take_while(|&word| word != "--").filter(is_option);
        let name = |word: &str| word.split('=').next().unwrap().to_owned();
        commands.push((command.to_owned(), options.map(name).collect()));
    }
    commands
}

#[test]
fn options_in_the_examples_of_the_documents_exist() {
    let line = "sudo ppt stat $(ls -t) -f 'a -b' --by=x | ppt run -o a -- b -c; x  # ppt top -z";
    let options = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let expected = [("stat".into(), options(&["-f", "--by"])), ("run".into(), options(&["-o"]))];
    assert_eq!(commands_in(line), expected);

    let bench = Bench::new();
    let mut helps: HashMap<Vec<String>, Option<String>> = HashMap::new();
    let mut found = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let mut is_shell = false;
        for line in text.lines() {
            if line.starts_with("```") {
                is_shell = line == "```sh";
            }
            for (command, options) in commands_in(line).into_iter().filter(|_| is_shell) {
                let mut words = vec![command, "--help".into()];
                if options.iter().any(|option| option == "--live") {
                    words.insert(1, "--live".into());
                }
                let help = helps.entry(words).or_insert_with_key(|words| {
                    let ran = bench.ppt(&words.iter().map(String::as_str).collect::<Vec<_>>());
                    let is_elsewhere = ran.stderr.contains("more: ppt explain no-");
                    assert!(ran.code() == 0 || is_elsewhere, "{line}: {ran:?}");
                    (ran.code() == 0).then_some(ran.stdout)
                });
                let Some(help) = help else { continue };
                let outside = |c: char| !c.is_ascii_alphanumeric() && c != '-';
                let known: BTreeSet<&str> = help.split(outside).collect();
                for option in options.iter().filter(|&option| option != "--live") {
                    let place = document.display();
                    assert!(known.contains(&**option), "{place}: {line}: no {option}");
                    found += 1;
                }
            }
        }
    }
    eprintln!("{found} options");
    assert!(found > 50, "{found}");
}

#[test]
fn paths_are_distinguished_from_words() {
    let folders = ["docs/".to_string()];
    let paths = |line: &str| paths_in(line, Path::new("/x"), &folders);
    assert_eq!(paths("see `docs/a.md`."), [root().join("docs/a.md")]);
    assert_eq!(paths("[a](b.md#c) [d](https://e.f) and/or"), [Path::new("/x/b.md")]);
    assert_eq!(paths("docs/*.md"), [] as [PathBuf; 0]);
}

/// Lines of the code blocks of a document.
fn code(text: &str) -> Vec<&str> {
    let mut inside = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        inside && !fence
    });
    lines.map(str::trim).collect()
}

#[test]
fn the_first_commands_can_be_copied() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = code(&readme);
    for command in ["cargo run -- demo slow", "cargo run -- demo", "cargo test"] {
        assert!(lines.contains(&command), "`{command}` is no line of a code block of README.md");
    }
    // The demo's files are not in PATH: before further commands, the reader has installed both
    // programs.
    let first = |begin: &str| lines.iter().position(|line| line.starts_with(begin)).unwrap();
    let installed = first("cargo install --locked --path .");
    assert!(installed < first("pptc ") && installed < first("ppt "));
}

/// The code blocks of a document, each with the word after its fence.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(word), None) => open = Some((word.to_owned(), String::new())),
            (None, Some((_, block))) => *block += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

#[test]
fn frame_files_in_the_documents_compile() {
    let bench = Bench::new();
    let mut compiled = 0;
    for document in documents() {
        for (_, block) in blocks(&fs::read_to_string(&document).unwrap()) {
            if !block.lines().any(|line| line.starts_with("frame ")) {
                continue;
            }
            bench.write("example.frame", &block);
            let mut command = bench.command(env!("CARGO_BIN_EXE_pptc"));
            let output = command.args(["--check", "example.frame"]).output().unwrap();
            let stderr = text(&output.stderr);
            assert!(output.status.success(), "{}\n{block}\n{stderr}", document.display());
            compiled += 1;
        }
    }
    assert!(compiled >= 2, "{compiled}");
}

/// Frame file, pptc, C compiler: the README's text, with the rest of a server around it.
#[test]
fn the_server_of_the_readme_can_be_built() {
    if !available("cc") {
        return;
    }
    let bench = Bench::new();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = blocks(&readme);
    let block = |word: &str, inside: &str| {
        let found = blocks.iter().find(|(text, block)| text == word && block.contains(inside));
        found.unwrap_or_else(|| panic!("no {word} block with {inside} in README.md")).1.clone()
    };
    bench.write("example.frame", &block("text", "// example.frame"));
    let code = block("c", "PPT_WRITE_EXAMPLE");
    let (include, code) = code.split_once('\n').unwrap();
    let server = format!(
        "{include}\nenum {{ LOGIN = 1 }};\nint main(int user, char **names) {{\n    (void)names;\n\
         {code}    return 0;\n}}\n"
    );
    bench.write("server.c", &server);
    for line in block("sh", "pptc example.frame").lines() {
        let line = line.split(" #").next().unwrap();
        let mut words = line.split_whitespace();
        let program = match words.next().unwrap() {
            "pptc" => env!("CARGO_BIN_EXE_pptc"),
            other => other,
        };
        let output = bench.command(program).args(words).output().unwrap();
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }
    assert!(bench.command(bench.path("server")).status().unwrap().success());
}

/// Rust files of the repository, by their names without `.rs`.
fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for dir_entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (dir_entry.path(), dir_entry.file_name().into_string().unwrap());
        if dir_entry.file_type().unwrap().is_dir() {
            if name != "target" && !name.starts_with('.') {
                sources(&path, found);
            }
        } else if let Some(stem) = name.strip_suffix(".rs") {
            found.push((stem.into(), fs::read_to_string(path).unwrap()));
        }
    }
}

#[test]
fn every_fault_has_tests_that_exist() {
    let mut files = Vec::new();
    sources(root(), &mut files);
    let section = fs::read_to_string(root().join("tests/faults.md")).unwrap();
    let mut rows = 0;
    for line in section.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let row = cells[0].trim_start_matches("| ");
        // Not in the list of faults that the tests follow.
        if row != "-" {
            rows += 1;
            assert_eq!(row, rows.to_string(), "in order: {line}");
        }
        let names =
            cells[2].trim_end_matches(" |").split(", ").map(|piece| piece.trim_matches('`'));
        for name in names {
            let (file, function) = name.split_once("::").unwrap();
            let is_in = |text: &str| text.contains(&format!("fn {function}("));
            let exists = files.iter().any(|(stem, text)| stem == file && is_in(text));
            assert!(exists, "row {row}: no test {name}");
        }
    }
    assert_eq!(rows, 56);
}
