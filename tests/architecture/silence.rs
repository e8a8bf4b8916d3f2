//! Libraries print nothing, do not read the environment and never end the process: these decisions
//! belong to their callers. The exceptions are listed here, each with its reason.
//!
//! Code is read as tokens, so comments and strings do not count. Test code does not count, either.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;

use super::{COMMANDS, metadata, sources};

/// A file of a library that may do one of these things, and why.
struct Exception {
    file: &'static str,
    does: &'static str,
    why: &'static str,
}

const EXCEPTIONS: [Exception; 11] = [
    Exception {
        file: "codegen/src/compile.rs",
        does: "env::current_dir",
        why: "it runs in a build script: cargo takes paths from its folder on",
    },
    Exception {
        file: "codegen/src/compile.rs",
        does: "env::var_os",
        why: "it runs in a build script: cargo names the folder of the output in OUT_DIR",
    },
    Exception {
        file: "codegen/src/compile.rs",
        does: "println!",
        why: "it runs in a build script: cargo reads its stdout",
    },
    Exception {
        file: "hosts/src/lab/host/clock.rs",
        does: "println!",
        why: "a helper's own child: the helper reads its stdout",
    },
    Exception {
        file: "hosts/src/lab/host/facts.rs",
        does: "env::var",
        why: "the manifest of an experiment records the environment of its programs",
    },
    Exception {
        file: "hosts/src/lab/host/facts.rs",
        does: "env::var_os",
        why: "programs of an experiment are found along the PATH of their host",
    },
    Exception {
        file: "hosts/src/lab/host/keeper.rs",
        does: "env::temp_dir",
        why: "a helper makes its own folder",
    },
    Exception {
        file: "hosts/src/lab/host/worker.rs",
        does: "io::stdout",
        why: "a helper talks to its controller over stdin and stdout",
    },
    Exception {
        file: "hosts/src/probe/clock.rs",
        does: "env::var",
        why: "only in builds for tests (cfg ppt_test_clock): how the clock goes wrong",
    },
    Exception {
        file: "output/src/output.rs",
        does: "io::stdout",
        why: "an output may be stdout, if the caller names it `-`",
    },
    Exception {
        file: "text/src/message.rs",
        does: "io::stderr",
        why: "messages of binaries: a feature that no library has, which another test holds",
    },
];

/// Macros that print.
const MACROS: [&str; 5] = ["dbg", "eprint", "eprintln", "print", "println"];
/// Functions of `std`, by their module.
const FUNCTIONS: [(&str, &[&str]); 3] = [
    (
        "env",
        &[
            "args",
            "args_os",
            "current_dir",
            "current_exe",
            "home_dir",
            "remove_var",
            "set_current_dir",
            "set_var",
            "temp_dir",
            "var",
            "var_os",
            "vars",
            "vars_os",
        ],
    ),
    ("io", &["stderr", "stdout"]),
    ("process", &["abort", "exit"]),
];

/// The next name of a path, or all names of a group of imports.
fn names_in(tree: &TokenTree) -> Vec<String> {
    match tree {
        TokenTree::Ident(ident) => vec![ident.to_string()],
        TokenTree::Group(group) => {
            group.stream().into_iter().map(|tree| tree.to_string()).collect()
        }
        TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
    }
}

/// The calls among these tokens that a library must leave to its caller.
fn acts(tokens: TokenStream, found: &mut Vec<String>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) => acts(group.stream(), found),
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                let punct = |at: usize, char: char| matches!(trees.get(at), Some(TokenTree::Punct(it)) if it.as_char() == char);
                if MACROS.contains(&name.as_str()) && punct(index + 1, '!') {
                    found.push(format!("{name}!"));
                }
                let functions = FUNCTIONS.iter().find(|(module, _)| name == *module);
                if let Some((module, functions)) = functions
                    && punct(index + 1, ':')
                {
                    let names = trees.get(index + 3).into_iter().flat_map(names_in);
                    let names = names.filter(|name| functions.contains(&name.as_str()));
                    found.extend(names.map(|function| format!("{module}::{function}")));
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The tokens of items except those compiled only for tests.
fn shipped(items: &[syn::Item]) -> TokenStream {
    let mut tokens = TokenStream::new();
    for item in items.iter().filter(|item| !is_test(item)) {
        match item {
            syn::Item::Mod(syn::ItemMod { content: Some((_, items)), .. }) => {
                tokens.extend(shipped(items));
            }
            item => item.to_tokens(&mut tokens),
        }
    }
    tokens
}

fn is_test(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::NameValue(_) => false,
    })
}

fn acts_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    acts(shipped(&syn::parse_file(text).unwrap().items), &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

/// The folders of all libraries.
fn libraries() -> Vec<PathBuf> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let packages = packages.filter(|package| !COMMANDS.iter().any(|it| package["name"] == *it));
    let targets = packages.flat_map(|package| package["targets"].as_array().unwrap());
    let is_library = |target: &&serde_json::Value| {
        let kinds = target["kind"].as_array().unwrap();
        kinds.iter().any(|kind| kind == "lib")
    };
    let folder = |target: &serde_json::Value| {
        Path::new(target["src_path"].as_str().unwrap()).parent().unwrap().to_owned()
    };
    targets.filter(is_library).map(folder).collect()
}

#[test]
fn libraries_print_nothing_and_read_no_environment() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let fuzz = root.join("fuzz");
    libraries()
        .iter()
        .filter(|library| !library.starts_with(&fuzz))
        .for_each(|library| sources(library, &mut files));
    let mut found = Vec::new();
    for file in &files {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap();
        let is_tests = name.ends_with("/tests.rs") || name.contains("/tests/");
        let acts = acts_in(&fs::read_to_string(file).unwrap());
        found.extend(acts.into_iter().filter(|_| !is_tests).map(|act| (name.to_owned(), act)));
    }
    let allowed = |name: &str, act: &str| {
        EXCEPTIONS.iter().any(|exception| exception.file == name && exception.does == act)
    };
    let more: Vec<_> = found.iter().filter(|(name, act)| !allowed(name, act)).collect();
    assert!(more.is_empty(), "a library does what its caller decides: {more:?}");
    for Exception { file, does, why } in &EXCEPTIONS {
        let is_needed = found.iter().any(|(name, act)| name == file && act == does);
        assert!(is_needed, "{file} no longer does {does} ({why}): take it out of the list");
    }
    assert!(files.len() > 300, "{} files", files.len());
}

#[test]
fn what_libraries_do_is_seen() {
    let acts = |text: &str| acts_in(text).join(" ");
    assert_eq!(acts("fn f() { println!(\"x\"); std::env::var(\"X\"); }"), "env::var println!");
    assert_eq!(acts("fn f() { g(|| { std::process::exit(1) }); }"), "process::exit");
    assert_eq!(acts("fn f() { h!(io::stderr()); }"), "io::stderr", "in a macro");
    assert_eq!(acts("use std::env::{self, var};"), "env::var", "imported");
    assert_eq!(acts("use std::env;"), "");
    assert_eq!(acts("// println!\nfn f() { let text = \"println!\"; process::id(); }"), "");
    assert_eq!(acts("#[cfg(test)] mod tests { fn f() { println!(); } }"), "");
    assert_eq!(acts("mod inner { #[test] fn f() { eprintln!(); } }"), "");
}
