//! No module of a crate uses one that uses it back, directly or indirectly: shared code is below
//! its users.
//!
//! A module is a file. It uses another one if it names an item of it (`use`, or a path in the
//! code). A re-exported item counts as used where it is defined, so a facade, which only
//! re-exports, uses nothing. `mod` states the location of a file, and `impl` in another file than
//! the type's is a use of the type: neither is a use in the other direction. Test modules do not
//! count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// A module, as its path from the root of its crate.
type Module = Vec<String>;

/// The target of a path: names from the root of the crate.
type ModuleNames = Vec<String>;

/// The modules of a crate, and the uses of each.
#[derive(Default)]
struct Crate {
    /// The names of the crate that each module uses.
    uses: BTreeMap<Module, BTreeSet<ModuleNames>>,
    /// The targets of imported names of a module.
    imports: BTreeMap<ModuleNames, ModuleNames>,
    /// Modules whose names a module re-exports completely.
    globs: BTreeMap<Module, Vec<ModuleNames>>,
}

impl Crate {
    /// Reads the files of a crate, starting from its root.
    fn read(root: &Path) -> Self {
        let mut it = Self::default();
        it.file(root, Vec::new(), root.parent().unwrap());
        it
    }

    /// Reads the file of `module`, whose own modules are in `folder`.
    fn file(&mut self, file: &Path, module: Module, folder: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let items =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{file:?}: {error}")).items;
        self.uses.entry(module.clone()).or_default();
        let modules = items.iter().filter_map(|item| match item {
            syn::Item::Mod(item_mod) if item_mod.content.is_none() && !is_test(&item_mod.attrs) => {
                Some(item_mod)
            }
            _ => None,
        });
        let mut names = BTreeSet::new();
        for item_mod in modules {
            let name = item_mod.ident.to_string();
            let below = folder.join(&name);
            let child = [module.clone(), vec![name.clone()]].concat();
            let usual = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
            let mut files: Vec<_> = usual.into_iter().map(|path| (path, below.clone())).collect();
            // If a condition chooses between two files, both are read.
            for place in places(&item_mod.attrs) {
                let place = file.with_file_name(place);
                files.push((place.clone(), place.parent().unwrap().to_owned()));
            }
            files.retain(|(file, _)| file.is_file());
            assert!(!files.is_empty(), "{file:?}: {name}");
            files.iter().for_each(|(file, folder)| self.file(file, child.clone(), folder));
            names.insert(name);
        }
        let (own, said) = (module.clone(), BTreeSet::new());
        let mut seen = VisitedModule { module: &own, of: self, children: names, said, depth: 0 };
        items.iter().for_each(|item| seen.visit_item(item));
        // A file may use the names that it re-exports.
        let said = seen.said.into_iter().map(|text| [own.clone(), vec![text]].concat());
        let used: Vec<_> = said.filter_map(|texts| self.imports.get(&texts).cloned()).collect();
        self.uses.get_mut(&own).unwrap().extend(used);
    }

    /// The module that defines the target of `names`.
    fn home(&self, names: &[String]) -> Option<Module> {
        self.home_within(names, 16)
    }

    fn home_within(&self, names: &[String], steps: u32) -> Option<Module> {
        let steps = steps.checked_sub(1)?;
        let length =
            (0..=names.len()).rev().find(|&index| self.uses.contains_key(&names[..index]))?;
        let (module, rest) = names.split_at(length);
        let Some(name) = rest.first() else { return Some(module.to_vec()) };
        let renamed = |meant: &ModuleNames| self.home_within(&[meant, &rest[1..]].concat(), steps);
        if let Some(meant) = self.imports.get(&names[..=length]) {
            return renamed(meant);
        }
        let globs = self.globs.get(module).into_iter().flatten();
        let mut homes = globs.filter_map(|of| {
            let meant = [of.clone(), vec![name.clone()]].concat();
            let known = self.uses.contains_key(&meant) || self.imports.contains_key(&meant);
            known.then(|| renamed(&meant)).flatten()
        });
        homes.next().or_else(|| Some(module.to_vec()))
    }

    /// The uses between modules.
    fn arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let homes = |module: &Module, names: &BTreeSet<ModuleNames>| {
            let homes = names.iter().filter_map(|name| self.home(name));
            homes.filter(|home| home != module).collect()
        };
        self.uses.iter().map(|(module, names)| (module.clone(), homes(module, names))).collect()
    }

    /// Groups of modules that use each other.
    fn circles(&self) -> Vec<BTreeSet<Module>> {
        let arrows = self.arrows();
        let reach = |from: &Module| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<_> = arrows[from].iter().collect();
            while let Some(module) = next.pop() {
                if seen.insert(module.clone()) {
                    next.extend(&arrows[module]);
                }
            }
            seen
        };
        let reached: BTreeMap<_, _> = arrows.keys().map(|key| (key.clone(), reach(key))).collect();
        let mut circles = BTreeSet::new();
        for (module, all) in reached.iter().filter(|(module, all)| all.contains(*module)) {
            circles.insert(
                all.iter().filter(|texts| reached[*texts].contains(module)).cloned().collect(),
            );
        }
        circles.into_iter().collect()
    }

    /// A description of the circles, and the uses within each.
    fn describe(&self) -> String {
        let name = |module: &Module| {
            if module.is_empty() { "(root)".to_owned() } else { module.join("::") }
        };
        let arrows = self.arrows();
        let mut text = String::new();
        for circle in self.circles() {
            text += "circle:\n";
            for module in &circle {
                let within = arrows[module].intersection(&circle).map(name);
                text +=
                    &format!("  {} → {}\n", name(module), within.collect::<Vec<_>>().join(", "));
            }
        }
        text
    }
}

/// Walks through a file.
struct VisitedModule<'a> {
    module: &'a Module,
    of: &'a mut Crate,
    /// The file's own modules.
    children: BTreeSet<String>,
    /// The first names of all paths.
    said: BTreeSet<String>,
    /// Current nesting depth of modules within the file.
    depth: usize,
}

impl VisitedModule<'_> {
    /// Names from the root of the crate; `None` if they lead out of it.
    fn absolute(&self, names: &[String]) -> Option<ModuleNames> {
        let mut here = self.module.clone();
        // Within the file, each level of nesting takes one more `super`.
        let mut inner = self.depth;
        let mut rest = names;
        match rest.first()?.as_str() {
            "crate" => (here, rest) = (Vec::new(), &rest[1..]),
            "self" if inner == 0 => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|text| text == "super") {
                    match inner.checked_sub(1) {
                        Some(less) => inner = less,
                        None => here.truncate(here.len().checked_sub(1)?),
                    }
                    rest = &rest[1..];
                }
            }
            name if inner == 0 && self.children.contains(name) => {}
            _ => return None,
        }
        Some([here, rest.to_vec()].concat())
    }

    fn uses(&mut self, names: &[String]) {
        if let Some(names) = self.absolute(names) {
            self.of.uses.get_mut(self.module).unwrap().insert(names);
        }
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &mut ModuleNames, is_public: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before, is_public);
                before.pop();
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.tree(item, before, is_public));
            }
            syn::UseTree::Name(name) => {
                let own = name.ident.to_string();
                self.named(before, &own, &own, is_public);
            }
            syn::UseTree::Rename(rename) => {
                let (own, alias) = (rename.ident.to_string(), rename.rename.to_string());
                self.named(before, &own, &alias, is_public);
            }
            syn::UseTree::Glob(_) if is_public => {
                if let Some(names) = self.absolute(before) {
                    self.of.globs.entry(self.module.clone()).or_default().push(names);
                }
            }
            syn::UseTree::Glob(_) => self.uses(before),
        }
    }

    fn named(&mut self, before: &[String], own: &str, alias: &str, is_public: bool) {
        let mut names = before.to_vec();
        if own != "self" {
            names.push(own.to_owned());
        }
        if !is_public || self.depth > 0 {
            self.uses(&names);
        }
        // Modules below may use imported names as their parent's.
        if self.depth == 0
            && let Some(meant) = self.absolute(&names)
        {
            let alias = [self.module.clone(), vec![alias.to_owned()]].concat();
            self.of.imports.insert(alias, meant);
        }
    }

    /// Paths in the arguments of macros.
    fn tokens(&mut self, tokens: &str) {
        let words: Vec<_> = tokens.split_whitespace().collect();
        let starts = words.iter().enumerate().filter(|(_, text)| ["crate", "super"].contains(text));
        for start in starts.map(|start| start.0).collect::<Vec<_>>() {
            let names = words[start..].chunks(2).take_while(|chunk| is_name(chunk[0]));
            let length = 1 + names.clone().take_while(|name| name.get(1) == Some(&"::")).count();
            let names: Vec<_> = names.take(length).map(|name| name[0].to_owned()).collect();
            self.uses(&names);
        }
    }
}

impl<'ast> Visit<'ast> for VisitedModule<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item_fn) => &item_fn.attrs,
            syn::Item::Impl(item_impl) => &item_impl.attrs,
            syn::Item::Mod(item_mod) => &item_mod.attrs,
            syn::Item::Use(item_use) => &item_use.attrs,
            _ => return syn::visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item_mod: &'ast syn::ItemMod) {
        self.depth += 1;
        syn::visit::visit_item_mod(self, item_mod);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item_use: &'ast syn::ItemUse) {
        let is_public = !matches!(item_use.vis, syn::Visibility::Inherited);
        self.tree(&item_use.tree, &mut Vec::new(), is_public);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.uses(&names);
        }
        if self.depth == 0 && path.leading_colon.is_none() {
            self.said.insert(names[0].clone());
        }
        syn::visit::visit_path(self, path);
    }

    /// Serde takes paths as text.
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let text = quote::ToTokens::to_token_stream(&attribute.meta).to_string();
        if !attribute.path().is_ident("doc") {
            self.tokens(&text.replace('"', " ").replace("::", " :: "));
        }
    }

    /// `pub(super)` is not a use.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_macro(&mut self, it: &'ast syn::Macro) {
        self.tokens(&it.tokens.to_string());
    }
}

fn is_name(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    let tests = |attribute: &syn::Attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::NameValue(_) => false,
    };
    attributes.iter().any(tests)
}

/// The values of `#[path = …]`, regardless of conditions.
fn places(attributes: &[syn::Attribute]) -> Vec<String> {
    let text =
        |attribute: &syn::Attribute| quote::ToTokens::to_token_stream(&attribute.meta).to_string();
    let path = |attribute: &syn::Attribute| {
        let text = text(attribute);
        let (_, after) = text.split_once("path = \"")?;
        Some(after.split('"').next()?.to_owned())
    };
    attributes.iter().filter_map(path).collect()
}

/// The roots of every library and binary of the workspace.
fn roots() -> Vec<(String, PathBuf)> {
    let metadata = crate::metadata();
    let targets = metadata["packages"].as_array().unwrap().iter();
    let targets = targets.flat_map(|target| target["targets"].as_array().unwrap());
    let kinds = ["lib", "bin", "proc-macro", "cdylib", "staticlib"];
    let of_kind = |value: &&serde_json::Value| {
        value["kind"].as_array().unwrap().iter().any(|kind| kinds.iter().any(|text| kind == text))
    };
    let root = |value: &serde_json::Value| {
        let text = |key: &str| value[key].as_str().unwrap().to_owned();
        (text("name"), text("src_path").into())
    };
    targets.filter(of_kind).map(root).collect()
}

#[test]
fn no_module_uses_one_that_uses_it() {
    let mut found = String::new();
    let mut modules = 0;
    for (name, root) in roots() {
        let it = Crate::read(&root);
        modules += it.uses.len();
        let circles = it.describe();
        if !circles.is_empty() {
            found += &format!("{name}\n{circles}");
        }
    }
    assert!(found.is_empty(), "{found}");
    assert!(modules > 200, "{modules} modules");
}

/// A crate of files, by name and text.
fn crate_of(files: &[(&str, &str)]) -> Crate {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Crate::read(&folder.path().join("lib.rs"))
}

#[test]
fn circles_are_found() {
    let root = ("lib.rs", "mod a; mod b; mod c; pub use a::A;");
    let circle = |a, b, c| {
        let found = crate_of(&[root, ("a.rs", a), ("b.rs", b), ("c.rs", c)]).circles();
        found.iter().flatten().flatten().cloned().collect::<String>()
    };
    let a = "pub struct A; use crate::b::B;";
    assert_eq!(circle(a, "pub struct B; use super::a::A;", ""), "ab");
    assert_eq!(circle(a, "pub struct B; use crate::A;", ""), "ab", "by its other name");
    assert_eq!(circle(a, "pub struct B; fn f() { super::a::A; }", ""), "ab", "in the code");
    assert_eq!(circle(a, "pub struct B; fn f() { g!(x, crate::A); }", ""), "ab", "in a macro");
    assert_eq!(circle(a, "pub struct B; use crate::c::*;", "use crate::{a, b as _};"), "abc");
    assert_eq!(circle(a, "pub struct B; #[cfg(test)] mod tests { use super::super::A; }", ""), "");
    assert_eq!(circle(a, "pub struct B; use super::c;", "pub(super) fn f() { ::b::g(); }"), "");
}

#[test]
fn a_parent_that_its_children_use_does_not_use_them() {
    let of = |parent, child| {
        let files = [("lib.rs", "mod a;"), ("a.rs", parent), ("a/b.rs", child)];
        crate_of(&files).circles().len()
    };
    assert_eq!(of("mod b; pub struct A; fn f() { b::g() }", "use super::A; fn g() {}"), 1);
    assert_eq!(of("mod b; pub struct A;", "use super::A; impl A {}"), 0);
    assert_eq!(of("mod b; pub use b::A;", "pub struct A; use crate::a::A as Same;"), 0);
    assert_eq!(of("mod b; pub use b::B; pub struct A(B);", "pub struct B; use super::A;"), 1);
}
