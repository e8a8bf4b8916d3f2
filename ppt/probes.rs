//! Finds the names of `--probe` in the files that a process has mapped as code.
//!
//! A name is `FUNCTION`, `FILE:FUNCTION`, or `PROVIDER:PROBE` of a USDT probe; `*` and `?` are
//! wildcards. A file is named by its path, or by its name without the text after `.so`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ppt_agent::{CodeMapping, FileId, Target};
use ppt_kernel::{Probe, ProbeArgument, ProbeSite, SiteValue, ValueOrigin};
use ppt_symbols::{CodeFile, FunctionEntry, Operand, ReturnDanger, UsdtSite};
use ppt_text::escaped;
use ppt_text::nearest;

use crate::choice::is_like;
use crate::code::Code;

/// The most probe names, or files, that a message lists.
const LISTED: usize = 12;
/// Most files in which a function is probed. Each place takes two events for each CPU, and the kernel
/// takes up to 0.1 s to remove one.
const FILES: usize = 16;
/// The longest time for reading a process's files. A thousand libraries take less than a second.
const READING: Duration = Duration::from_secs(10);

/// A file that a process has mapped as code, and its possible probes.
struct ProbedFile {
    path: String,
    identity: FileId,
    file: Arc<File>,
    code: CodeFile,
    mappings: Vec<CodeMapping>,
    danger: Option<ReturnDanger>,
    /// Those with a requested name.
    functions: Vec<FunctionEntry>,
    usdt: Vec<UsdtSite>,
}

impl ProbedFile {
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

    /// Why the kernel cannot probe this function here. `None` if it can.
    fn obstacle(&self, function: &FunctionEntry) -> Option<Obstacle> {
        let is_there = |mapping: &&CodeMapping| {
            let size = mapping.end - mapping.start;
            function.offset.checked_sub(mapping.offset).is_some_and(|behind| behind < size)
        };
        let mut there = self.mappings.iter().filter(is_there).peekable();
        let is_moved = there.peek().is_some() && there.all(|mapping| mapping.is_moved);
        match () {
            () if function.is_indirect => Some(Obstacle::Indirect),
            () if is_moved => Some(Obstacle::Moved),
            () => None,
        }
    }
}

/// Why a function that a file has cannot be probed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    Indirect,
    Moved,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::Indirect => {
                "the loader chooses one of several functions for this name (STT_GNU_IFUNC); probe \
                 that one by its own name"
            }
            Obstacle::Moved => {
                "the program has moved this code to anonymous memory, where the kernel sets no probes"
            }
        })
    }
}

/// The possible probes of a process.
pub(crate) struct ProbedProcess<'a> {
    target: &'a Target,
    files: Vec<ProbedFile>,
    /// Why returns must not be probed, if the program itself states that.
    danger: Option<ReturnDanger>,
    /// What was not searched, as a message says it.
    unsearched: Option<String>,
}

/// The probes found for some names, and messages about them.
#[derive(Default)]
pub(crate) struct FoundProbes {
    pub(crate) probes: Vec<Probe>,
    /// The names that matched something.
    pub(crate) matched: BTreeSet<String>,
    pub(crate) remarks: Vec<(Code, String)>,
    /// Which files are probed.
    pub(crate) notes: Vec<String>,
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

impl<'a> ProbedProcess<'a> {
    /// Reads the files of a process: USDT probes, and functions that `names` may mean.
    pub(crate) fn new(target: &'a Target, names: &[String]) -> Self {
        let begin = Instant::now();
        let exe = target.exe();
        let code = target.code();
        let wanted: BTreeSet<&str> = names.iter().flat_map(|name| readings(name)).collect();
        let (mut danger, mut files, mut unread) = (None, Vec::new(), 0);
        let (mut is_known, failures) = (wanted.is_empty(), ppt_foreign::failures());
        // The program has the lowest addresses, and what it began with the highest.
        let (first, rest) = code.files.split_at(code.files.len().min(1));
        for mapped in first.iter().chain(rest.iter().rev()) {
            let file = Some(mapped).filter(|_| begin.elapsed() < READING);
            let Some(file) = file.and_then(|mapped| target.open_code(mapped)) else {
                unread += 1;
                continue;
            };
            let Ok(descriptor) = file.descriptor() else { continue };
            let Some(code) = CodeFile::new(file) else { continue };
            let functions = match wanted.is_empty() {
                true => Vec::new(),
                false => code.functions(|name| wanted.contains(name)),
            };
            let usdt = code.usdt();
            let of_file = if functions.is_empty() { None } else { code.return_danger() };
            if mapped.path == exe && !wanted.is_empty() {
                let before = ppt_foreign::failures();
                danger = code.return_danger();
                is_known = ppt_foreign::failures() == before;
            }
            if functions.is_empty() && usdt.is_empty() {
                continue;
            }
            let (path, mappings) = (mapped.path.clone(), mapped.mappings.clone());
            let (identity, file, danger) = (mapped.identity, Arc::new(descriptor), of_file);
            files.push(ProbedFile {
                path,
                identity,
                file,
                code,
                mappings,
                danger,
                functions,
                usdt,
            });
        }
        // A program that cannot be read may be one whose returns must not be probed.
        if !is_known && ppt_foreign::failures() > failures {
            files.clear();
        }
        let unsearched = match (code.is_cut, unread) {
            (true, _) => Some("it has more mappings than ppt reads".to_owned()),
            (false, 0) => None,
            (false, unread) => Some(format!(
                "ppt could not read {unread} of the {} files of its code",
                code.files.len()
            )),
        };
        Self { target, files, danger, unsearched }
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

    /// Adds a function of all files that contain it: another file may have replaced it, and which
    /// one a caller reaches, the loader decides for each.
    fn function(
        &self,
        is_meant: impl Fn(&ProbedFile) -> bool,
        name: &str,
        may_return: bool,
        found: &mut FoundProbes,
    ) -> bool {
        let (mut places, mut files, mut without) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let (mut danger, mut beyond) = (self.danger, 0);
        for (file, function) in self.functions(&is_meant, name) {
            if let Some(obstacle) = file.obstacle(function) {
                without.insert(format!("not in {}: {obstacle}", escaped(&file.path)));
                continue;
            }
            let path = escaped(&file.path);
            if files.len() == FILES && !files.contains(&path) {
                beyond += 1;
                continue;
            }
            // The kernel reads the code that it replaces. If it succeeds, the danger is known.
            if !file.code.has_code(function.offset) {
                continue;
            }
            danger = danger.or(file.danger);
            files.insert(path);
            found.identities.insert(file.identity);
            places.push((file.file.clone(), function.offset));
        }
        if places.is_empty() || found.probes.iter().any(|probe| probe.name == name) {
            return !places.is_empty();
        }
        let danger = danger.filter(|_| !may_return);
        if let Some(danger) = danger {
            found.remarks.push((Code::ProbeWithoutReturn, without_return(name, danger)));
        }
        let files = listed(files.into_iter().collect(), ", ");
        let beyond = (beyond > 0).then(|| {
            format!(
                "not in {beyond} more files that have it: name one, by --probe FILE:{}",
                escaped(name)
            )
        });
        let without = without.into_iter().take(LISTED).chain(beyond);
        let without = without.chain(self.unsearched.iter().cloned());
        let rest: String = without.map(|why| format!("\n  {why}")).collect();
        found.notes.push(format!("{} is probed in {files}{rest}", escaped(name)));
        found.probes.push(Probe::of_function(name, places, danger.is_none()));
        true
    }

    /// The functions with this name.
    fn functions(
        &self,
        is_meant: impl Fn(&ProbedFile) -> bool,
        name: &str,
    ) -> impl Iterator<Item = (&ProbedFile, &FunctionEntry)> {
        let meant = self.files.iter().filter(move |file| is_meant(file));
        let all = meant.flat_map(|file| file.functions.iter().map(move |it| (file, it)));
        all.filter(move |(_, function)| function.name == name)
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

    /// The message about a name that matches nothing that can be probed.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let shown = escaped(name);
        let [whole, rest] = readings(name);
        let mut functions = self.functions(|_| true, whole).chain(self.functions(|_| true, rest));
        let obstacle = functions.find_map(|(file, it)| Some((&file.path, file.obstacle(it)?)));
        if let Some((path, obstacle)) = obstacle {
            let path = escaped(path);
            return format!("--probe `{shown}` cannot be captured in {path}\n  {obstacle}");
        }
        let part = name.rsplit('/').next().unwrap_or(name);
        let usdt: BTreeSet<String> = self.listed().into_iter().map(|row| row.name).collect();
        let wanted = part.rsplit(':').next().unwrap_or(part);
        let by_usdt = nearest(part, usdt.iter().map(String::as_str)).map(str::to_owned);
        let meant = by_usdt.or_else(|| self.nearest_function(wanted));
        let meant = meant.map(|meant| format!("; did you mean `{}`?", escaped(&meant)));
        let available = if usdt.is_empty() {
            "it has no USDT probes; a function needs a symbol (nm -D)".to_owned()
        } else {
            let names = usdt.iter().map(|name| escaped(name)).collect();
            format!("its USDT probes: {}", listed(names, ", "))
        };
        let meant = meant.unwrap_or_default();
        let unsearched = self.unsearched.as_ref().map(|why| format!("\n  {why}"));
        let unsearched = unsearched.unwrap_or_default();
        format!(
            "nothing in the process answers to --probe `{shown}`{meant}\n  {available}{unsearched}"
        )
    }

    /// The function of all files whose name is most like this one.
    fn nearest_function(&self, wanted: &str) -> Option<String> {
        let begin = Instant::now();
        // Of thousands of names, lists those with the same beginning.
        let is_near = |known: &str| {
            known.chars().next() == wanted.chars().next()
                && known.len().abs_diff(wanted.len()) <= wanted.len() / 3 + 1
        };
        let code = self.target.code();
        let files = code.files.iter().take_while(|_| begin.elapsed() < READING);
        let files = files.filter_map(|mapped| CodeFile::new(self.target.open_code(mapped)?));
        let names: BTreeSet<String> =
            files.flat_map(|file| file.functions(is_near)).map(|function| function.name).collect();
        nearest(wanted, names.iter().map(String::as_str)).map(str::to_owned)
    }
}

/// The first of some names, and how many more there are.
fn listed(mut names: Vec<String>, between: &str) -> String {
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    names.extend((more > 0).then(|| format!("{more} more")));
    names.join(between)
}

/// The functions that a requested name may mean: all of it, or what follows the file.
fn readings(name: &str) -> [&str; 2] {
    [name, name.split_once(':').map_or(name, |(_, rest)| rest)]
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
