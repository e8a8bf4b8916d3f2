//! Frame files, and the schemas that they become.

use ppt_capture::frame_dsl::{Style, columns};
use ppt_codegen::{Language, Schema, generate, parse};

/// A frame file is refused with a message, or becomes a layout, a schema that reads back the same,
/// and code in every language that can say it.
pub(crate) fn text(input: &[u8]) {
    let compiled = match parse(input, "fuzz.frame") {
        Ok(compiled) => compiled,
        Err(failure) => {
            assert!(failure.errors() > 0);
            assert!(failure.render(false).contains("fuzz.frame"));
            failure.render(true);
            return;
        }
    };
    compiled.render_warnings(true);
    let json = compiled.schema.to_json();
    assert_eq!(Schema::from_json(json.as_bytes()).unwrap(), compiled.schema);
    draw(&compiled.schema);
    for &language in Language::ALL {
        // Some names are free in the one language and taken in the other.
        if let Ok(outputs) = generate(&compiled, "fuzz.frame", &[language]) {
            assert!(outputs.iter().all(|it| !it.text.is_empty()));
        }
    }
}

/// A schema as a target or a capture states it: refused, or the same when written and read again.
pub(crate) fn schema(input: &[u8]) {
    let Ok(schema) = Schema::from_json(input) else { return };
    let again = Schema::from_json(schema.to_json().as_bytes()).unwrap();
    assert_eq!(again, schema);
    assert_eq!(again.hash(), schema.hash());
    assert_eq!(again.roles_hash(), schema.roles_hash());
    for frame in &schema.frames {
        assert!(frame.span().is_none_or(|span| !span.keys.is_empty()));
        assert!(frame.point().is_none_or(|point| !(point.ins.is_empty() && point.outs.is_empty())));
    }
    assert_eq!(again.edges(), schema.edges());
    for metric in schema.metrics() {
        let buckets =
            metric.cells.clone().map(|cell| metric.shape.bucket(cell - metric.cells.start));
        let bounds = buckets.flatten().map(|(lo, hi)| (lo.unwrap_or(i128::MIN), hi));
        assert!(bounds.clone().all(|(lo, hi)| hi.is_none_or(|hi| lo < hi)));
        assert_eq!(bounds.count() > 0, metric.shape.is_histogram());
    }
    draw(&schema);
}

fn draw(schema: &Schema) {
    let drawn = ppt_codegen::draw(schema, false);
    let mut frames = schema.frames.iter().filter(|frame| !frame.is_hidden());
    assert!(frames.all(|frame| drawn.contains(&frame.name)));
    assert!(schema.metrics().iter().all(|metric| drawn.contains(&metric.name)));
    for style in [Style::Text, Style::Sql] {
        for frame in &schema.frames {
            columns(schema, frame, style);
        }
    }
}
