//! Selects the frames, counters and histograms to write, by name patterns.
//!
//! A pattern is a name or a glob (`*` and `?`). It is matched against the name itself, against
//! `BUFFER.NAME`, and against `GROUP.NAME` for each group; `@GROUP` selects the whole group.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ppt_agent::{Attribute, Buffer, Choose, Masks, Schema, Target};
use ppt_text::{escaped, nearest};

use crate::args;
use crate::code::Code;
use crate::failure::Failure;

/// The most names that a message lists.
const LISTED: usize = 24;

/// A frame, a counter or a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedChoice {
    /// The bit in [`Masks`].
    pub bit: u32,
    pub buffer: String,
    pub name: String,
    groups: Vec<String>,
}

/// The selectable items of a buffer, in the order of its frame file.
pub(crate) fn names(schema: &Schema) -> Vec<NamedChoice> {
    let named = |bit, name: &str, attributes: &[Attribute]| {
        let groups = attributes.iter().filter(|attribute| attribute.name == "group");
        NamedChoice {
            bit,
            buffer: schema.buffer.clone(),
            name: name.into(),
            groups: groups.flat_map(|group| group.args.clone()).collect(),
        }
    };
    let frames = (0..).zip(&schema.frames).filter(|(_, frame)| !frame.is_hidden());
    let frames = frames.map(|(bit, frame)| named(bit, &frame.name, &frame.attributes));
    let metrics = (0..).zip(schema.metrics());
    let metrics = metrics
        .map(|(number, metric)| named(Masks::metric(number), &metric.name, &metric.attributes));
    frames.chain(metrics).collect()
}

impl NamedChoice {
    /// `BUFFER.NAME`.
    pub(crate) fn full(&self) -> String {
        format!("{}.{}", self.buffer, self.name)
    }

    fn answers_to(&self, pattern: &str) -> bool {
        if let Some(group) = pattern.strip_prefix('@') {
            return self.groups.iter().any(|text| is_like(text, group));
        }
        let is_in = |owner: &String| is_like(&format!("{owner}.{}", self.name), pattern);
        is_like(&self.name, pattern) || is_in(&self.buffer) || self.groups.iter().any(is_in)
    }
}

/// Whether a glob matches all of a text.
pub(crate) fn is_like(text: &str, glob: &str) -> bool {
    let (text, glob): (Vec<char>, Vec<char>) = (text.chars().collect(), glob.chars().collect());
    // The last `*`, and the length of the text it matched: the only position to backtrack to.
    let (mut text_at, mut glob_at, mut star) = (0, 0, None);
    while text_at < text.len() {
        match glob.get(glob_at) {
            Some('*') => {
                star = Some((glob_at, text_at));
                glob_at += 1;
            }
            Some(&c) if c == '?' || c == text[text_at] => {
                (text_at, glob_at) = (text_at + 1, glob_at + 1);
            }
            _ => {
                let Some((star_at, matched)) = star else { return false };
                star = Some((star_at, matched + 1));
                (glob_at, text_at) = (star_at + 1, matched + 1);
            }
        }
    }
    glob[glob_at..].iter().all(|&c| c == '*')
}

/// The message about the first of `patterns` that matches none of `items`.
pub(crate) fn unknown(patterns: &[String], items: &[NamedChoice]) -> Option<String> {
    let pattern =
        patterns.iter().find(|pattern| !items.iter().any(|item| item.answers_to(pattern)))?;
    let groups: BTreeSet<_> =
        items.iter().flat_map(|item| &item.groups).map(|group| format!("@{group}")).collect();
    let full = items.iter().map(NamedChoice::full);
    let names: Vec<String> = full.chain(groups).collect();
    let short = items.iter().map(|item| item.name.as_str());
    let likely = nearest(pattern, names.iter().map(String::as_str).chain(short));
    let meant = likely.map_or(String::new(), |likely| format!("; did you mean `{likely}`?"));
    let mut listed = names[..names.len().min(LISTED)].join(", ");
    if names.len() > LISTED {
        listed.push_str(", …");
    }
    let pattern = escaped(pattern);
    Some(format!("nothing is called `{pattern}`{meant}\n  there are: {listed}"))
}

/// The selection of a session: by the command line, and by later requests for single processes. The
/// last matching request decides.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    only: Vec<String>,
    except: Vec<String>,
    requests: Mutex<Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    /// The requests for each process, oldest first.
    by_process: BTreeMap<i32, Vec<PatternRequest>>,
    /// Patterns of the command line that matched something.
    matched: BTreeSet<String>,
}

#[derive(Debug)]
struct PatternRequest {
    pattern: String,
    enabled: bool,
}

impl Choice {
    pub(crate) fn new(only: &[String], except: &[String]) -> Self {
        Self { only: only.into(), except: except.into(), requests: Mutex::default() }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The patterns of the command line.
    pub(crate) fn patterns(&self) -> Vec<String> {
        self.only.iter().chain(&self.except).cloned().collect()
    }

    /// From now on, items that match these patterns are enabled or disabled in process `pid`.
    pub(crate) fn ask(&self, pid: i32, patterns: &[String], enabled: bool) {
        let mut requests = self.requests();
        let requests = requests.by_process.entry(pid).or_default();
        for pattern in patterns {
            // This replaces earlier requests for the same patterns.
            requests.retain(|former| former.pattern != *pattern);
            requests.push(PatternRequest { pattern: pattern.clone(), enabled });
        }
    }

    /// Forgets the requests for process `pid`, which has ended: its pid may be reused.
    pub(crate) fn forget(&self, pid: i32) {
        self.requests().by_process.remove(&pid);
    }

    /// Records the patterns of the command line that match something in a buffer.
    pub(crate) fn note(&self, schema: &Schema) {
        let items = names(schema);
        let matches = |pattern: &String| items.iter().any(|item| item.answers_to(pattern));
        self.requests().matched.extend(self.patterns().into_iter().filter(matches));
    }

    /// Patterns of the command line that matched nothing.
    pub(crate) fn unmatched(&self) -> Vec<String> {
        let requests = self.requests();
        self.patterns().into_iter().filter(|pattern| !requests.matched.contains(pattern)).collect()
    }
}

/// Rejects names that no item in `buffers` has.
pub(crate) fn check<'a>(
    args: &args::CaptureArgs,
    buffers: impl IntoIterator<Item = (&'a Target, &'a Buffer)>,
) -> Result<(), Failure> {
    let items = buffers.into_iter().flat_map(|(_, buffer)| names(&buffer.schema));
    let items: Vec<_> = items.collect();
    match unknown(&Choice::new(&args.only, &args.except).patterns(), &items) {
        Some(message) => Err(Failure::failed(Code::NothingCalled, message)),
        None => Ok(()),
    }
}

impl Choose for Choice {
    fn masks(&self, pid: i32, schema: &Schema) -> Masks {
        let requests = self.requests();
        let mut masks = Masks::ALL_ENABLED;
        for name in names(schema) {
            let any = |patterns: &[String]| patterns.iter().any(|pattern| name.answers_to(pattern));
            let mut enabled = (self.only.is_empty() || any(&self.only)) && !any(&self.except);
            for request in requests.by_process.get(&pid).into_iter().flatten() {
                if name.answers_to(&request.pattern) {
                    enabled = request.enabled;
                }
            }
            masks.set(name.bit, enabled);
        }
        masks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"v":1,"buffer":"shop","slots":2,"stride":16,"frames":[
        {"name":"job","kind":"plain","size":16,"fields":[{"name":"x","type":"u32","offset":12}]},
        {"name":"login","kind":"plain","size":16,"fields":[{"name":"x","type":"u32","offset":12}],
         "attributes":[{"name":"group","args":["net"]}]}],
        "metrics":[{"kind":"counter","name":"bytes_in","type":"u64",
          "attributes":[{"name":"group","args":["net"]}]},
         {"kind":"counter","name":"seen","type":"u64"}]}"#;

    fn schema() -> Schema {
        Schema::from_json(JSON.as_bytes()).unwrap()
    }

    fn on(choice: &Choice, pid: i32) -> Vec<String> {
        let masks = choice.masks(pid, &schema());
        let on = names(&schema()).into_iter().filter(|name| masks.is_enabled(name.bit));
        on.map(|choice| choice.name).collect()
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|text| text.to_string()).collect()
    }

    #[test]
    fn globs() {
        for (glob, yes, no) in [
            ("job", "job", "jobs"),
            ("j*", "job", "xj"),
            ("*b", "job", "bj"),
            ("j?b", "job", "jb"),
            ("*", "", "-"),
            ("a*b*c", "aXbbYc", "aXc"),
            ("**x", "x", "y"),
            ("", "", "x"),
        ] {
            assert!(is_like(yes, glob), "{glob} {yes}");
            assert!(glob == "*" || !is_like(no, glob), "{glob} {no}");
        }
    }

    #[test]
    fn names_and_groups_are_chosen() {
        let chosen =
            |only: &[&str], except: &[&str]| on(&Choice::new(&words(only), &words(except)), 1);
        assert_eq!(chosen(&[], &[]), ["job", "login", "bytes_in", "seen"]);
        assert_eq!(chosen(&["net.*", "job"], &[]), ["job", "login", "bytes_in"]);
        assert_eq!(chosen(&["@net"], &["shop.bytes*"]), ["login"]);
        assert_eq!(chosen(&[], &["*.seen", "job"]), ["login", "bytes_in"]);
        assert_eq!(chosen(&["shop.*"], &["@n?t"]), ["job", "seen"]);
    }

    #[test]
    fn the_last_request_decides_in_its_process_alone() {
        let choice = Choice::new(&words(&["job"]), &[]);
        choice.ask(7, &words(&["@net"]), true);
        choice.ask(7, &words(&["login", "job"]), false);
        assert_eq!((on(&choice, 7), on(&choice, 8)), (words(&["bytes_in"]), words(&["job"])));
        choice.ask(7, &words(&["@net"]), true);
        assert_eq!(on(&choice, 7), ["login", "bytes_in"], "it was requested again");
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_known_ones() {
        let items = names(&schema());
        assert_eq!(unknown(&words(&["job", "@net", "shop.*"]), &items), None);
        let message = unknown(&words(&["job", "lgin"]), &items).unwrap();
        let expected = "nothing is called `lgin`; did you mean `login`?\n  there are: shop.job, \
                        shop.login, shop.bytes_in, shop.seen, @net";
        assert_eq!(message, expected);
        let choice = Choice::new(&words(&["job", "gone"]), &words(&["seen"]));
        choice.note(&schema());
        assert_eq!(choice.unmatched(), ["gone"]);
    }
}
