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
    /// Its bit in [`Masks`].
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
        let of = |text: &String| is_like(&format!("{text}.{}", self.name), pattern);
        is_like(&self.name, pattern) || of(&self.buffer) || self.groups.iter().any(of)
    }
}

/// Whether a glob matches all of a text.
pub(crate) fn is_like(text: &str, glob: &str) -> bool {
    let (text, glob): (Vec<char>, Vec<char>) = (text.chars().collect(), glob.chars().collect());
    // The last `*`, and the length of the text it matched: the only position to backtrack to.
    let (mut at, mut of, mut star) = (0, 0, None);
    while at < text.len() {
        match glob.get(of) {
            Some('*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(&it) if it == '?' || it == text[at] => (at, of) = (at + 1, of + 1),
            _ => {
                let Some((glob_at, text_at)) = star else { return false };
                star = Some((glob_at, text_at + 1));
                (of, at) = (glob_at + 1, text_at + 1);
            }
        }
    }
    glob[of..].iter().all(|&c| c == '*')
}

/// The message about the first of `patterns` that matches nothing in `there`.
pub(crate) fn unknown(patterns: &[String], there: &[NamedChoice]) -> Option<String> {
    let pattern =
        patterns.iter().find(|pattern| !there.iter().any(|name| name.answers_to(pattern)))?;
    let groups: BTreeSet<_> =
        there.iter().flat_map(|choice| &choice.groups).map(|text| format!("@{text}")).collect();
    let full = there.iter().map(NamedChoice::full);
    let known: Vec<String> = full.chain(groups).collect();
    let short = there.iter().map(|choice| choice.name.as_str());
    let likely = nearest(pattern, known.iter().map(String::as_str).chain(short));
    let meant = likely.map_or(String::new(), |likely| format!("; did you mean `{likely}`?"));
    let mut listed = known[..known.len().min(LISTED)].join(", ");
    if known.len() > LISTED {
        listed.push_str(", …");
    }
    let pattern = escaped(pattern);
    Some(format!("nothing is called `{pattern}`{meant}\n  there are: {listed}"))
}

/// The selection of a session: from the command line, then from later requests; the last request
/// for each process wins.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    only: Vec<String>,
    except: Vec<String>,
    since: Mutex<Since>,
}

#[derive(Debug, Default)]
struct Since {
    asked: BTreeMap<i32, Vec<(String, bool)>>,
    /// Patterns of the command line that matched something.
    known: BTreeSet<String>,
}

impl Choice {
    pub(crate) fn new(only: &[String], except: &[String]) -> Self {
        Self { only: only.into(), except: except.into(), since: Mutex::default() }
    }

    fn since(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The patterns of the command line.
    pub(crate) fn patterns(&self) -> Vec<String> {
        self.only.iter().chain(&self.except).cloned().collect()
    }

    /// From now on, items that match these patterns are enabled or disabled in process `pid`.
    pub(crate) fn ask(&self, pid: i32, patterns: &[String], enabled: bool) {
        let mut since = self.since();
        let asked = since.asked.entry(pid).or_default();
        for pattern in patterns {
            // This replaces earlier requests for the same patterns.
            asked.retain(|(before, _)| before != pattern);
            asked.push((pattern.clone(), enabled));
        }
    }

    /// Process `pid` has ended: its number may be reused.
    pub(crate) fn forget(&self, pid: i32) {
        self.since().asked.remove(&pid);
    }

    /// Records the patterns of the command line that match something in a buffer.
    pub(crate) fn note(&self, schema: &Schema) {
        let there = names(schema);
        let answered = |pattern: &String| there.iter().any(|choice| choice.answers_to(pattern));
        self.since().known.extend(self.patterns().into_iter().filter(answered));
    }

    /// Patterns of the command line that matched nothing.
    pub(crate) fn unanswered(&self) -> Vec<String> {
        let since = self.since();
        self.patterns().into_iter().filter(|pattern| !since.known.contains(pattern)).collect()
    }
}

/// Rejects names that no item in `buffers` has.
pub(crate) fn check<'a>(
    args: &args::CaptureArgs,
    buffers: impl IntoIterator<Item = (&'a Target, &'a Buffer)>,
) -> Result<(), Failure> {
    let there = buffers.into_iter().flat_map(|(_, buffer)| names(&buffer.schema));
    let there: Vec<_> = there.collect();
    match unknown(&Choice::new(&args.only, &args.except).patterns(), &there) {
        Some(what) => Err(Failure::failed(Code::NothingCalled, what)),
        None => Ok(()),
    }
}

impl Choose for Choice {
    fn masks(&self, pid: i32, schema: &Schema) -> Masks {
        let since = self.since();
        let mut masks = Masks::ALL_ENABLED;
        for name in names(schema) {
            let any = |patterns: &[String]| patterns.iter().any(|pattern| name.answers_to(pattern));
            let mut enabled = (self.only.is_empty() || any(&self.only)) && !any(&self.except);
            for (pattern, asked) in since.asked.get(&pid).into_iter().flatten() {
                if name.answers_to(pattern) {
                    enabled = *asked;
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
        let of = |only: &[&str], except: &[&str]| on(&Choice::new(&words(only), &words(except)), 1);
        assert_eq!(of(&[], &[]), ["job", "login", "bytes_in", "seen"]);
        assert_eq!(of(&["net.*", "job"], &[]), ["job", "login", "bytes_in"]);
        assert_eq!(of(&["@net"], &["shop.bytes*"]), ["login"]);
        assert_eq!(of(&[], &["*.seen", "job"]), ["login", "bytes_in"]);
        assert_eq!(of(&["shop.*"], &["@n?t"]), ["job", "seen"]);
    }

    #[test]
    fn the_last_word_counts_in_its_process_alone() {
        let choice = Choice::new(&words(&["job"]), &[]);
        choice.ask(7, &words(&["@net"]), true);
        choice.ask(7, &words(&["login", "job"]), false);
        assert_eq!((on(&choice, 7), on(&choice, 8)), (words(&["bytes_in"]), words(&["job"])));
        choice.ask(7, &words(&["@net"]), true);
        assert_eq!(on(&choice, 7), ["login", "bytes_in"], "it was said again");
    }

    #[test]
    fn what_is_unknown_is_said_with_what_there_is() {
        let there = names(&schema());
        assert_eq!(unknown(&words(&["job", "@net", "shop.*"]), &there), None);
        let said = unknown(&words(&["job", "lgin"]), &there).unwrap();
        let expected = "nothing is called `lgin`; did you mean `login`?\n  there are: shop.job, \
                        shop.login, shop.bytes_in, shop.seen, @net";
        assert_eq!(said, expected);
        let choice = Choice::new(&words(&["job", "gone"]), &words(&["seen"]));
        choice.note(&schema());
        assert_eq!(choice.unanswered(), ["gone"]);
    }
}
