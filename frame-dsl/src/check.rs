//! The rules of the language, applied to the syntax tree: one function per rule. A broken rule does
//! not stop the others.

mod advice;
mod attributes;
mod edges;
mod enums;
mod fields;
mod frames;
mod generated;
mod halves;
mod kinds;
mod metrics;
mod names;
mod number;
mod options;
mod points;
mod tables;
mod threads;

use crate::ast::FrameFile;
use crate::diagnostic::{DiagnosticSink, SourceRange};
use crate::edge::Edge;
use crate::language::Language;
use crate::layout;
use crate::mistake::FileMistake;
use crate::schema::{DEFAULT_SLOTS, JSON_VERSION, MIN_SLOTS, SLOTS_STATED, Schema};

/// The meaning of a file without errors.
pub(crate) struct Checked {
    pub schema: Schema,
    pub emit: Vec<Language>,
    pub package: Option<String>,
    /// The languages in which the names are free.
    pub languages: Vec<Language>,
    pub places: Declarations,
}

/// The spans of the declarations, in the order of the schema.
#[derive(Debug, Clone)]
pub(crate) struct Declarations {
    /// `None` if the buffer is named after the file.
    pub buffer: Option<SourceRange>,
    /// Each enum and its values.
    pub enums: Vec<(SourceRange, Vec<SourceRange>)>,
    /// Each frame and its fields.
    pub frames: Vec<(SourceRange, Vec<SourceRange>)>,
    /// Each counter and histogram.
    pub metrics: Vec<SourceRange>,
}

impl Declarations {
    /// `own` are the enums that no line declares.
    fn from_file(
        file: &FrameFile,
        own: Vec<(SourceRange, Vec<SourceRange>)>,
        frames: Vec<frames::FramePlaces>,
        metrics: Vec<SourceRange>,
    ) -> Declarations {
        let declared = file.enums.iter().map(|enumeration| {
            let values = enumeration.values.iter().map(|value| value.name.span.clone());
            (enumeration.name.span.clone(), values.collect::<Vec<_>>())
        });
        Declarations {
            buffer: file.buffers.first().map(|buffer| buffer.name.span.clone()),
            enums: declared.chain(own).collect(),
            frames: frames.into_iter().map(|frame| (frame.name, frame.fields)).collect(),
            metrics,
        }
    }
}

/// The edges of a file with edge lines only.
pub(crate) fn check_edges(file: &FrameFile, sink: &mut DiagnosticSink) -> Vec<Edge> {
    edges::of_file(file, sink)
}

/// Applies every rule. `None` if the file breaks one. `stem` is the default name of the buffer.
/// Names must be free in `languages`; if that is empty, in those of the file, or else in C.
pub(crate) fn check(
    file: &FrameFile,
    stem: &str,
    languages: &[Language],
    sink: &mut DiagnosticSink,
) -> Option<Checked> {
    if file.frames.is_empty() && file.metrics.is_empty() && !sink.has_errors() {
        sink.report(file.end..file.end, FileMistake::NoFrames);
    }
    advice::allowed(file, sink);
    let emit = options::languages(file, sink);
    let languages = match (languages, &emit[..]) {
        ([], []) => vec![Language::C],
        ([], of_file) => of_file.to_vec(),
        (asked, _) => asked.to_vec(),
    };
    sink.generate_for(languages.clone());
    let (buffer, slots) = options::buffer(file, stem, sink);
    let time = options::time(file, sink);
    let tags = options::tags(file, sink);
    let package = options::package(file, sink);
    options::known(file, sink);
    let mut enums = enums::enums(file, sink);
    let mut drafts = frames::frames(file, time, sink);
    let metrics = metrics::metrics(file, sink);
    generated::distinct(&buffer, file, &drafts, &metrics, sink);
    edges::widths(&drafts, sink);
    let edges = edges::of_buffer(file, &buffer, &drafts, sink);
    if let (true, Some((_, first))) = (file.frames.is_empty(), metrics.first()) {
        drafts.push(metrics::hidden(first));
    }
    let has_frames = !file.frames.is_empty();
    let (metrics, metric_places): (Vec<_>, Vec<_>) = metrics.into_iter().unzip();

    let own: Vec<_> = drafts.iter_mut().filter_map(|draft| draft.own.take()).collect();
    enums::count(file, own.len(), sink);
    let declarations =
        own.iter().map(|own_enum| (own_enum.place.clone(), own_enum.values.clone())).collect();
    enums.extend(own.into_iter().map(|own_enum| own_enum.declared));
    let (frames, places): (Vec<_>, Vec<_>) =
        drafts.into_iter().map(|draft| (draft.frame, draft.places)).unzip();
    // An explicit number that equals the default.
    let stated = slots.filter(|&slot| slot == DEFAULT_SLOTS);
    let stated = stated.map(|_| (SLOTS_STATED.to_owned(), true.into()));
    let extra = stated.into_iter().chain(metrics::extra(&metrics));
    let extra = extra.chain(edges::extra(&edges)).collect();
    // Unused rings need no room.
    let slots = slots.unwrap_or(if has_frames { DEFAULT_SLOTS } else { MIN_SLOTS });
    let mut schema =
        Schema { v: JSON_VERSION, buffer, slots, stride: 0, frames, enums, tags, extra };
    layout::place(&mut schema);
    frames::sizes(&schema, &places, sink);
    frames::stamps(&schema, &places, sink);
    tables::columns(&schema, &places, sink);
    // Names that clash with each other would also clash there.
    if !sink.has_errors() {
        tables::whole(&schema, &places, sink);
    }
    if !sink.has_errors() && has_frames {
        advice::buffer(file, &schema, &places, sink);
    }
    let places = Declarations::from_file(file, declarations, places, metric_places);
    (!sink.has_errors()).then_some(Checked { schema, emit, package, languages, places })
}
