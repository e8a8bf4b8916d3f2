//! The exported names of a package of Go: types, functions that begin with a verb, and constants of enums.

use super::declared::{GeneratedName, halves, types};
use crate::ast::FrameFile;
use crate::check::frames::Draft;
use crate::diagnostic::SourceRange;
use crate::metric::Metric;
use crate::names::upper_camel;
use crate::schema::MAX_VALUES;

/// The names of one package.
pub(super) fn exports<'a>(
    file: &'a FrameFile,
    drafts: &'a [Draft],
    metrics: &'a [(Metric, SourceRange)],
) -> Vec<GeneratedName<'a>> {
    let mut names = types(file, drafts);
    names.extend(halves(drafts));
    names.extend(drafts.iter().flat_map(functions));
    names.extend(constants(file));
    names.extend(drafts.iter().flat_map(own_constants));
    names.extend(metrics.iter().flat_map(|(metric, place)| {
        let of = format!("{} `{}`", metric.shape.kind(), metric.name);
        let prefixes = ["On", metric.shape.verb()];
        prefixes.map(|prefix| GeneratedName {
            name: upper_camel(prefix) + &upper_camel(&metric.name),
            origin: of.clone(),
            declared: &metric.name,
            place,
        })
    }));
    names
}

/// The names of the fields of each frame.
pub(super) fn fields(Draft { frame, places, .. }: &Draft) -> Vec<GeneratedName<'_>> {
    let fields = frame.fields.iter().zip(&places.fields).filter(|(field, _)| !field.is_own());
    let fields = fields.map(|(field, place)| GeneratedName {
        name: upper_camel(&field.name),
        origin: format!("`{}` of frame `{}`", field.name, frame.name),
        declared: &field.name,
        place,
    });
    fields.collect()
}

/// `OnWork`, `WriteWork`, and where an interval can be measured `StartWork` and `ScopeOfWork`.
fn functions(Draft { frame, places, .. }: &Draft) -> impl Iterator<Item = GeneratedName<'_>> {
    let camel = upper_camel(&frame.name);
    let mut names = vec![format!("On{camel}")];
    names.extend(frame.verbs().iter().map(|verb| upper_camel(verb) + &camel));
    let is_own = frame.fields.iter().any(crate::schema::Field::is_own);
    if !is_own && frame.fields.iter().filter(|field| field.is_stamped()).count() > 1 {
        names.extend([format!("Start{camel}"), format!("ScopeOf{camel}")]);
    }
    names.into_iter().map(|name| GeneratedName {
        name,
        origin: format!("frame `{}`", frame.name),
        declared: &frame.name,
        place: &places.name,
    })
}

fn constants(file: &FrameFile) -> impl Iterator<Item = GeneratedName<'_>> {
    file.enums.iter().flat_map(|declared| {
        let of = &declared.name.text;
        declared.values.iter().take(MAX_VALUES).map(move |value| GeneratedName {
            name: upper_camel(of) + &upper_camel(&value.name.text),
            origin: format!("`{}` of enum `{of}`", value.name.text),
            // Of the enum: a frame may have the name of a value.
            declared: of,
            place: &value.name.span,
        })
    })
}

fn own_constants(Draft { frame, own, .. }: &Draft) -> impl Iterator<Item = GeneratedName<'_>> {
    own.iter().flat_map(move |own| {
        let values = own.declared.values.iter().zip(&own.values);
        values.map(move |((value, _), place)| GeneratedName {
            name: own.declared.name.clone() + &upper_camel(value),
            origin: format!("`{value}` of frame `{}`", frame.name),
            declared: &frame.name,
            place,
        })
    })
}
