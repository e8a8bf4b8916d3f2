//! The rules for names.

use std::collections::HashMap;

use crate::ast::SourceWord;
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::language::Language;
use crate::mistake::{NameKind, NameMistake};
use crate::names::upper_camel;
use crate::reserved::{RESERVED_FOR_LATER, is_macro, keyword_in};
use crate::schema::MAX_NAME_BYTES;

/// C++ functions in generated frame classes; no frame can have such a name.
const METHODS: [&str; 4] = ["write", "scope", "begin", "end"];

/// Reports the first rule that a declared name breaks.
pub(super) fn check(kind: NameKind, word: &SourceWord, sink: &mut DiagnosticSink) {
    if let Some(mistake) = first_violation(kind, &word.text, word.span.len(), sink.languages()) {
        sink.report(word.span.clone(), mistake);
    }
}

/// The first rule that a name of this length breaks. Some rules apply only in some languages.
pub(super) fn first_violation(
    kind: NameKind,
    name: &str,
    bytes: usize,
    languages: &[Language],
) -> Option<NameMistake> {
    let name = name.to_owned();
    if bytes > MAX_NAME_BYTES {
        return Some(NameMistake::NameTooLong { name, bytes });
    }
    // Such a name appears in no language.
    if matches!(kind, NameKind::Tag | NameKind::HashType) {
        return None;
    }
    if RESERVED_FOR_LATER.contains(&name.as_str()) {
        return Some(NameMistake::ReservedWord { name });
    }
    let keyword_in = keyword_in(&name, languages);
    if !keyword_in.is_empty() {
        return Some(NameMistake::Keyword { name, languages: keyword_in });
    }
    if is_macro(&name) && languages.iter().any(|language| language.has_c_headers()) {
        return Some(NameMistake::Macro { name });
    }
    if is_ours(&name) {
        return Some(NameMistake::OurPrefix { name });
    }
    if name.starts_with('_') || name.contains("__") {
        return Some(NameMistake::Underscores { name });
    }
    let (cpp, rust) = (languages.contains(&Language::Cpp), languages.contains(&Language::Rust));
    match kind {
        NameKind::Buffer if cpp && name == "std" => Some(NameMistake::StdBuffer),
        NameKind::Frame if cpp && METHODS.contains(&&*name) => {
            Some(NameMistake::MethodName { name })
        }
        NameKind::Frame
        | NameKind::Enum
        | NameKind::Value
        | NameKind::Step
        | NameKind::Counter
        | NameKind::Histogram
            if rust && upper_camel(&name) == "Self" =>
        {
            Some(NameMistake::BecomesSelf { kind, name })
        }
        _ => None,
    }
}

/// Generated names begin with `ppt_`, `PPT_`, `PPT1_` or `pptframe_`, and the C++ namespace is
/// `ppt`.
fn is_ours(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "ppt" || ["ppt_", "ppt1_", "pptframe"].iter().any(|text| name.starts_with(text))
}

/// Declared names with their spans.
#[derive(Default)]
pub(super) struct Declared<'a> {
    places: HashMap<&'a str, SourceRange>,
}

impl<'a> Declared<'a> {
    /// Records a name. Returns false and reports an error if it exists already.
    pub fn insert(
        &mut self,
        kind: NameKind,
        name: &'a str,
        place: &SourceRange,
        sink: &mut DiagnosticSink,
    ) -> bool {
        let Some(first) = self.places.get(name) else {
            self.places.insert(name, place.clone());
            return true;
        };
        let note = DiagnosticNote { span: first.clone(), label: "first declared here".to_owned() };
        let mistake = NameMistake::Twice { kind, name: name.to_owned() };
        sink.report_with(place.clone(), mistake, [note]);
        false
    }
}
