//! Finds the names of `--probe` in the files that a process has mapped as code.
//!
//! A name is `FUNCTION`, `FILE:FUNCTION`, or `PROVIDER:PROBE` of a USDT probe; `*` and `?` are
//! wildcards. A file is named by its path, or by its name without the text after `.so`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;

use ppt_agent::{FileId, Target};
use ppt_kernel::{Probe, ProbeArgument, ProbeSite, SiteValue, ValueOrigin};
use ppt_symbols::{CodeFile, FunctionEntry, Operand, ReturnDanger, UsdtSite};
use ppt_text::escaped;
use ppt_text::nearest;

use crate::choice::is_like;
use crate::code::Code;

/// The most probe names that a message lists.
const LISTED: usize = 12;

/// A file that a process has mapped as code, and its possible probes.
struct ProbedFile {
    path: String,
    identity: FileId,
    file: Arc<File>,
    code: CodeFile,
    functions: Vec<FunctionEntry>,
    usdt: Vec<UsdtSite>,
}

impl ProbedFile {
    /// The addresses of functions with this name. A symbol may have a version after an `@`.
    fn places(&self, name: &str) -> Vec<(Arc<File>, u64)> {
        let is_called = |function: &&FunctionEntry| function.name.split('@').next() == Some(name);
        let places = self.functions.iter().filter(is_called).map(|function| function.offset);
        // Several symbols may have the same address.
        let places: BTreeSet<u64> = places.collect();
        places.into_iter().map(|offset| (self.file.clone(), offset)).collect()
    }

    /// Whether `name` is the file's path, or its name with or without the text after `.so`.
    fn is_called(&self, name: &str) -> bool {
        let file_name = self.path.rsplit('/').next().unwrap_or_default();
        let is_path =
            || std::fs::canonicalize(name).is_ok_and(|path| path.as_os_str() == &*self.path);
        if name.starts_with('/') {
            self.path == name || is_path()
        } else {
            file_name == name || file_name.split(".so").next() == Some(name)
        }
    }
}

/// The possible probes of a process.
pub(crate) struct ProbedProcess {
    files: Vec<ProbedFile>,
    /// Why returns must not be probed, if the program itself states that.
    danger: Option<ReturnDanger>,
}

/// The probes found for some names, and messages about them.
#[derive(Default)]
pub(crate) struct FoundProbes {
    pub(crate) probes: Vec<Probe>,
    /// The names that matched something.
    pub(crate) matched: BTreeSet<String>,
    pub(crate) remarks: Vec<(Code, String)>,
    /// The files that are probed.
    identities: BTreeSet<FileId>,
}

/// A row of `--probe list`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListedProbe {
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) has_semaphore: bool,
}

impl ProbedProcess {
    /// Reads the files of a process.
    pub(crate) fn new(target: &Target) -> Self {
        let exe = target.exe();
        let (mut danger, mut is_known) = (None, false);
        let mut files = Vec::new();
        let failures = ppt_foreign::failures();
        for mapped in target.code_files() {
            let Ok(file) = mapped.file.descriptor() else { continue };
            let Some(code) = CodeFile::new(mapped.file) else { continue };
            if mapped.path == exe {
                let before = ppt_foreign::failures();
                danger = code.return_danger();
                is_known = ppt_foreign::failures() == before;
            }
            let (functions, usdt) = (code.functions(), code.usdt());
            let (path, identity, file) = (mapped.path, mapped.identity, Arc::new(file));
            files.push(ProbedFile { path, identity, file, code, functions, usdt });
        }
        // A program that cannot be read may be one whose returns must not be probed.
        if !is_known && ppt_foreign::failures() > failures {
            files.clear();
        }
        Self { files, danger }
    }

    /// The USDT probes of the process.
    pub(crate) fn listed(&self) -> BTreeSet<ListedProbe> {
        let row = |file: &ProbedFile, site: &UsdtSite| ListedProbe {
            path: file.path.clone(),
            name: title(site),
            arguments: site.note.text.clone(),
            has_semaphore: site.semaphore != 0,
        };
        let of_file = |file| move |site| row(file, site);
        self.files.iter().flat_map(|file| file.usdt.iter().map(of_file(file))).collect()
    }

    /// Finds the probes for `names`. `may_return`: returns are probed although that is dangerous.
    pub(crate) fn find(&self, names: &[String], may_return: bool) -> FoundProbes {
        let mut found = FoundProbes::default();
        for name in names {
            if self.find_one(name, may_return, &mut found) {
                found.matched.insert(name.clone());
            }
        }
        found
    }

    fn find_one(&self, name: &str, may_return: bool, found: &mut FoundProbes) -> bool {
        let Some((file, rest)) = name.split_once(':').filter(|(_, rest)| !rest.starts_with(':'))
        else {
            return self.function(|_| true, name, may_return, found);
        };
        if !name.starts_with('/') && self.usdt(|_| true, name, found) {
            return true;
        }
        let of_file = |probed: &ProbedFile| probed.is_called(file);
        if rest.contains(':') && !rest.contains("::") {
            self.usdt(of_file, rest, found)
        } else {
            self.function(of_file, rest, may_return, found)
        }
    }

    /// Adds a function from the first file that contains it.
    fn function(
        &self,
        is_meant: impl Fn(&ProbedFile) -> bool,
        name: &str,
        may_return: bool,
        found: &mut FoundProbes,
    ) -> bool {
        let meant = self.files.iter().filter(|file| is_meant(file));
        let mut places = meant.map(|file| (file, file.places(name)));
        let Some((file, mut places)) = places.find(|(_, places)| !places.is_empty()) else {
            return false;
        };
        if found.probes.iter().any(|probe| probe.name == name) {
            return true;
        }
        let danger = self.danger.or_else(|| file.code.return_danger()).filter(|_| !may_return);
        // The kernel reads the code that it replaces. This comes last: the danger is known if it succeeds.
        places.retain(|&(_, offset)| file.code.has_code(offset));
        if places.is_empty() {
            return false;
        }
        if let Some(danger) = danger {
            found.remarks.push((Code::ProbeWithoutReturn, without_return(name, danger)));
        }
        found.identities.insert(file.identity);
        found.probes.push(Probe::of_function(name, places, danger.is_none()));
        true
    }

    /// Adds the USDT probes that match `pattern`.
    fn usdt(
        &self,
        is_meant: impl Fn(&ProbedFile) -> bool,
        pattern: &str,
        found: &mut FoundProbes,
    ) -> bool {
        let mut sites: BTreeMap<String, Vec<(&ProbedFile, &UsdtSite)>> = BTreeMap::new();
        for file in self.files.iter().filter(|file| is_meant(file)) {
            let is_meant = |site: &&UsdtSite| {
                is_like(&title(site), pattern) && file.code.has_code(site.offset)
            };
            for site in file.usdt.iter().filter(is_meant) {
                sites.entry(title(site)).or_default().push((file, site));
            }
        }
        let is_matched = !sites.is_empty();
        for (name, sites) in sites {
            if found.probes.iter().any(|probe| probe.name == name) {
                continue;
            }
            found.identities.extend(sites.iter().map(|(file, _)| file.identity));
            let (probe, left_out) = of_sites(name, &sites);
            if !left_out.is_empty() {
                found.remarks.push((Code::ArgumentsLeftOut, in_memory(&probe.name, &left_out)));
            }
            found.probes.push(probe);
        }
        is_matched
    }

    /// The message about a name that matches nothing.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let part = name.rsplit('/').next().unwrap_or(name);
        let usdt: BTreeSet<String> = self.listed().into_iter().map(|row| row.name).collect();
        let functions = self.files.iter().flat_map(|file| &file.functions);
        let functions = functions.map(|function| function.name.as_str());
        let wanted = part.rsplit(':').next().unwrap_or(part);
        // Of thousands of names, lists those with the same beginning.
        let is_near = |known: &&str| {
            known.chars().next() == wanted.chars().next()
                && known.len().abs_diff(wanted.len()) <= wanted.len() / 3 + 1
        };
        let by_usdt = nearest(part, usdt.iter().map(String::as_str));
        let meant = by_usdt.or_else(|| nearest(wanted, functions.filter(is_near)));
        let meant = meant.map(|meant| format!("; did you mean `{}`?", escaped(meant)));
        let mut listed: Vec<_> = usdt.iter().take(LISTED).map(|name| escaped(name)).collect();
        if usdt.len() > LISTED {
            listed.push("…".into());
        }
        let available = if listed.is_empty() {
            "it has no USDT probes; a function needs a symbol (nm -D)".to_owned()
        } else {
            format!("its USDT probes: {}", listed.join(", "))
        };
        let meant = meant.unwrap_or_default();
        format!(
            "nothing in the process answers to --probe `{}`{meant}\n  {available}",
            escaped(name)
        )
    }
}

impl FoundProbes {
    /// The message if processes other than `pid` run the same code.
    pub(crate) fn shared(&self, pid: i32) -> Option<(Code, String)> {
        let identities: Vec<_> = self.identities.iter().copied().collect();
        let others = ppt_agent::processes(&ppt_agent::System::default()).into_iter();
        let others = others.filter(|&other| other != pid);
        let count =
            others.filter(|&other| Target::is_mapped_by(other, &identities) == Some(true)).count();
        let others_run = match count {
            0 => return None,
            1 => "another process runs".to_owned(),
            count => format!("{count} other processes run"),
        };
        let message = format!(
            "{others_run} the code that is probed: the probes cost {} time, too, and leave no frames \
             of {}",
            if count == 1 { "it" } else { "them" },
            if count == 1 { "it" } else { "them" },
        );
        Some((Code::ProbeShared, message))
    }
}

/// `provider:name`.
fn title(site: &UsdtSite) -> String {
    format!("{}:{}", site.note.provider, site.note.name)
}

/// The probe at these places, and the numbers of its omitted arguments.
fn of_sites(name: String, sites: &[(&ProbedFile, &UsdtSite)]) -> (Probe, Vec<usize>) {
    let most = sites.iter().map(|(_, site)| site.note.arguments.len()).max().unwrap_or(0);
    let (mut arguments, mut left_out) = (Vec::new(), Vec::new());
    let mut values: Vec<Vec<SiteValue>> = vec![Vec::new(); sites.len()];
    for number in 0..most {
        let of_site = |(_, site): &(_, &UsdtSite)| {
            let argument = site.note.arguments.get(number)?;
            let origin = match argument.operand {
                Operand::Register { number, shift } => ValueOrigin::Register { number, shift },
                Operand::Constant(constant) => ValueOrigin::Constant(constant),
                Operand::Unsupported => return None,
            };
            Some(SiteValue { origin, size: argument.size, is_signed: argument.is_signed })
        };
        // Only arguments that can be read at every place become fields.
        let Some(of_sites) = sites.iter().map(of_site).collect::<Option<Vec<_>>>() else {
            left_out.push(number + 1);
            continue;
        };
        arguments.push(ProbeArgument {
            name: format!("arg{}", number + 1),
            size: of_sites.iter().map(|value| value.size).max().unwrap_or(8),
            is_signed: of_sites.iter().any(|value| value.is_signed),
        });
        values.iter_mut().zip(of_sites).for_each(|(values, value)| values.push(value));
    }
    let site = |((file, site), values): (&(&ProbedFile, &UsdtSite), Vec<SiteValue>)| {
        let semaphore = u32::try_from(site.semaphore).ok()?;
        Some(ProbeSite { file: file.file.clone(), offset: site.offset, semaphore, values })
    };
    let sites = sites.iter().zip(values).filter_map(site).collect();
    (Probe { name, returns: false, arguments, sites }, left_out)
}

/// The message about arguments of a probe that are not in registers.
fn in_memory(name: &str, left_out: &[usize]) -> String {
    let numbers: Vec<String> = left_out.iter().map(ToString::to_string).collect();
    let (noun, are) = if numbers.len() == 1 { ("argument", "is") } else { ("arguments", "are") };
    let (name, numbers) = (escaped(name), numbers.join(", "));
    format!("{name}: frames leave out {noun} {numbers}, which {are} not in registers")
}

/// The message about a function whose returns are not probed.
fn without_return(name: &str, danger: ReturnDanger) -> String {
    let why = match danger {
        ReturnDanger::Exceptions => {
            "its code handles exceptions, and one that passes a function whose return is probed ends the \
             program"
        }
        ReturnDanger::Go => {
            "Go moves stacks, and a function whose return is probed ends the program then"
        }
        ReturnDanger::Coroutines => {
            "it changes stacks by swapcontext(3), and a function whose return is probed may end the \
             program then"
        }
    };
    let name = escaped(name);
    format!(
        "{name}: frames show only its entry: {why}\n  if that cannot happen there: --allow probe-returns"
    )
}
