//! Statistics for programs: an array of objects, one for each frame and field.

use std::io::{self, Write};

use ppt_query::stats::Number;
use ppt_query::summary::{Ask, FieldSummary, FrameSummary, Group, Values};
use serde_json::{Map, Value, json};

pub(super) fn write(frames: &[FrameSummary], ask: &Ask, out: &mut impl Write) -> io::Result<()> {
    let mut before = "[\n";
    for frame in frames {
        for group in &frame.groups {
            let of_frame = std::iter::once(of_frame(group, ask));
            for (field, said) in of_frame.chain(group.fields.iter().map(of_field)) {
                let mut object = Map::new();
                object.insert("buffer".into(), json!(frame.buffer));
                object.insert("frame".into(), json!(frame.frame));
                object.insert("field".into(), field);
                let by =
                    ask.by.iter().zip(&group.by).map(|(name, value)| (name.clone(), json!(value)));
                object.insert("by".into(), Value::Object(by.collect()));
                object.insert("slice".into(), json!(group.slice));
                object.extend(said);
                write!(out, "{before}{}", Value::Object(object))?;
                before = ",\n";
            }
        }
    }
    let empty = before == "[\n";
    out.write_all(if empty { b"[]\n" } else { b"\n]\n" })
}

type Said = (Value, Map<String, Value>);

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn of_frame(group: &Group, ask: &Ask) -> Said {
    let said = json!({
        "count": group.count,
        "rate": group.rate(ask.every),
        "first": group.time.map(|it| it.0),
        "last": group.time.map(|it| it.1),
        "threads": group.threads,
    });
    (Value::Null, object(said))
}

fn of_field(field: &FieldSummary) -> Said {
    let said = match &field.values {
        Values::Numbers { summary, busy, .. } => {
            let [p50, p90, p99, p999] = summary.percentiles;
            json!({
                "count": summary.count,
                "nulls": summary.nulls,
                "min": summary.min.map(number),
                "mean": summary.mean,
                "sd": summary.sd,
                "p50": p50,
                "p90": p90,
                "p99": p99,
                "p999": p999,
                "max": summary.max.map(number),
                "busy": busy,
                "unit": field.unit,
                "exact": summary.exact,
            })
        }
        Values::Words { counts, nulls } => {
            let count: u64 = counts.iter().map(|it| it.1).sum();
            let values: Map<String, Value> =
                counts.iter().map(|(word, count)| (word.clone(), json!(count))).collect();
            json!({"count": count, "nulls": nulls, "values": values})
        }
    };
    (json!(field.name), object(said))
}

/// Whole numbers of 64 bits as they are.
fn number(number: Number) -> Value {
    match number {
        Number::Whole(whole) => match (i64::try_from(whole), u64::try_from(whole)) {
            (Ok(whole), _) => json!(whole),
            (_, Ok(whole)) => json!(whole),
            _ => json!(whole as f64),
        },
        Number::Real(real) => json!(real),
    }
}
