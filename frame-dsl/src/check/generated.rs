//! Checks that the names that generators derive from declared names do not clash.
//!
//! C has one namespace of macros and enumerators for everything included, so `a_b`.`c` and
//! `a`.`b_c` become one name. Rust has one namespace of types per buffer and one of variants per
//! enum, Java one of classes per package, Node and Go one of exports.

mod declared;
mod go;

use std::collections::{HashMap, HashSet};

use self::declared::{GeneratedName, OF_PPT, halves, types};
use super::frames::Draft;
use super::kinds::OwnEnum;
use super::names;
use crate::ast::FrameFile;
use crate::diagnostic::{DiagnosticNote, DiagnosticSink, SourceRange};
use crate::language::Language;
use crate::metric::Metric;
use crate::mistake::{NameKind, NameMistake};
use crate::names::{block_macro, claim_macro, enumerator, field_macro, stamp_macro, upper_camel};
use crate::schema::MAX_VALUES;

/// Reports every two declarations that would get one name in a generated language.
pub(super) fn distinct(
    buffer: &str,
    file: &FrameFile,
    drafts: &[Draft],
    metrics: &[(Metric, SourceRange)],
    sink: &mut DiagnosticSink,
) {
    let has_c = sink.languages().iter().any(|language| language.has_c_headers());
    let has_rust = sink.languages().contains(&Language::Rust);
    let has_node = sink.languages().contains(&Language::Node);
    let has_go = sink.languages().contains(&Language::Go);
    let has_java = sink.languages().contains(&Language::Java);
    let mut clashes = Clashes { sink, reported: HashSet::new() };
    if has_c {
        clashes.check("C", c_names_of_all(buffer, file, drafts, metrics));
    }
    if has_rust {
        clashes_of_rust(file, drafts, metrics, &mut clashes);
    }
    if has_node {
        clashes.check("Node", exports(file, drafts, metrics));
    }
    if has_go {
        clashes.check("Go", go::exports(file, drafts, metrics));
        drafts.iter().for_each(|draft| clashes.check("Go", go::fields(draft)));
    }
    if has_java {
        let mut classes = types(file, drafts);
        classes.extend(metrics.iter().map(metric_type));
        clashes.check("Java", classes);
    }
}

fn c_names_of_all<'a>(
    buffer: &str,
    file: &'a FrameFile,
    drafts: &'a [Draft],
    metrics: &'a [(Metric, SourceRange)],
) -> Vec<GeneratedName<'a>> {
    let mut c = c_names(buffer, file, drafts);
    c.extend(metrics.iter().flat_map(metric_macros));
    c
}

fn clashes_of_rust(
    file: &FrameFile,
    drafts: &[Draft],
    metrics: &[(Metric, SourceRange)],
    clashes: &mut Clashes<'_>,
) {
    let mut types = types(file, drafts);
    types.extend(halves(drafts));
    types.extend(metrics.iter().map(metric_type));
    clashes.check("Rust", types);
    for it in &file.enums {
        let values = it.values.iter().take(MAX_VALUES);
        let variants = values.map(|value| GeneratedName {
            name: upper_camel(&value.name.text),
            origin: format!("`{}`", value.name.text),
            declared: &value.name.text,
            place: &value.name.span,
        });
        clashes.check("Rust", variants.collect());
    }
    for own in drafts.iter().filter_map(|draft| draft.own.as_ref()) {
        let variants = own.declared.values.iter().zip(&own.values);
        let variants = variants.map(|((value, _), place)| GeneratedName {
            name: upper_camel(value),
            origin: format!("`{value}`"),
            declared: value,
            place,
        });
        clashes.check("Rust", variants.collect());
    }
}

fn c_names<'a>(buffer: &str, file: &'a FrameFile, drafts: &'a [Draft]) -> Vec<GeneratedName<'a>> {
    let mut names = Vec::new();
    for Draft { frame, places, own } in drafts {
        let mut add = |name, origin, declared, place| {
            names.push(GeneratedName { name, origin, declared, place });
        };
        let of = format!("frame `{}`", frame.name);
        for verb in frame.verbs() {
            add(block_macro(verb, &frame.name), of.clone(), frame.name.as_str(), &places.name);
        }
        add(claim_macro("frame", &frame.name), of.clone(), frame.name.as_str(), &places.name);
        if let Some(OwnEnum { declared, values, .. }) = own {
            for ((value, _), place) in declared.values.iter().zip(values) {
                let of = format!("`{value}` of frame `{}`", frame.name);
                add(enumerator(buffer, &frame.name, value), of, value, place);
            }
        }
        let fields = frame.fields.iter().zip(&places.fields);
        for (field, place) in fields.filter(|field| !field.0.is_own()) {
            let of = format!("`{}` of frame `{}`", field.name, frame.name);
            if field.is_stamped() {
                add(stamp_macro(&frame.name, &field.name), of.clone(), &field.name, place);
            }
            add(field_macro(&frame.name, &field.name), of, &field.name, place);
        }
    }
    for it in &file.enums {
        for value in it.values.iter().take(MAX_VALUES) {
            let (of, value) = (&it.name.text, &value.name);
            names.push(GeneratedName {
                name: enumerator(buffer, of, &value.text),
                origin: format!("`{}` of enum `{of}`", value.text),
                declared: &value.text,
                place: &value.span,
            });
        }
    }
    names
}

fn metric_macros((metric, place): &(Metric, SourceRange)) -> [GeneratedName<'_>; 2] {
    let Metric { name, shape, .. } = metric;
    let macros = [block_macro(shape.verb(), name), claim_macro(shape.kind(), name)];
    let origin = format!("{} `{name}`", shape.kind());
    macros.map(|generated| GeneratedName {
        name: generated,
        origin: origin.clone(),
        declared: name,
        place,
    })
}

fn metric_type((metric, place): &(Metric, SourceRange)) -> GeneratedName<'_> {
    GeneratedName {
        name: upper_camel(&metric.name),
        origin: format!("{} `{}`", metric.shape.kind(), metric.name),
        declared: &metric.name,
        place,
    }
}

/// The exports of a Node module: declared names are used unchanged.
fn exports<'a>(
    file: &'a FrameFile,
    drafts: &'a [Draft],
    metrics: &'a [(Metric, SourceRange)],
) -> Vec<GeneratedName<'a>> {
    let mut exports = types(file, drafts);
    exports.extend(metrics.iter().map(metric_type));
    for export in &mut exports {
        if !export.origin.starts_with(OF_PPT) {
            export.name = export.declared.to_owned();
        }
    }
    exports
}

struct Clashes<'a> {
    sink: &'a mut DiagnosticSink,
    /// Spans that have been reported, because one mistake may show in several languages.
    reported: HashSet<usize>,
}

impl Clashes<'_> {
    fn is_barred(&self, name: &str) -> bool {
        names::first_violation(NameKind::Value, name, name.len(), self.sink.languages()).is_some()
    }

    fn check(&mut self, language: &'static str, mut names: Vec<GeneratedName<'_>>) {
        names.sort_by_key(|name| name.place.start);
        let mut first: HashMap<&str, &GeneratedName<'_>> = HashMap::new();
        for second in &names {
            let Some(first) = first.get(second.name.as_str()) else {
                first.insert(&second.name, second);
                continue;
            };
            let one_name = first.declared == second.declared;
            // The enum that ppt adds to a chain `Step` is called as its function is in Go.
            let is_added = [first, second].iter().any(|name| name.origin.starts_with(OF_PPT));
            let same = one_name && (first.origin == second.origin || language != "C" && !is_added);
            // An invalid name has already been reported.
            let barred = [first, second].iter().any(|name| self.is_barred(name.declared));
            if same || barred || first.place == second.place {
                continue;
            }
            if !self.reported.insert(second.place.start) {
                continue;
            }
            let note = DiagnosticNote {
                span: first.place.clone(),
                label: format!("`{}` comes from here too", first.name),
            };
            let mistake = NameMistake::SameGenerated {
                language,
                generated: second.name.clone(),
                first: first.origin.clone(),
                second: second.origin.clone(),
            };
            self.sink.report_with(second.place.clone(), mistake, [note]);
        }
    }
}
