//! The frames that wait for others, as bytes: a head in JSON, followed by batches of rows.

use std::collections::BTreeMap;
use std::io::{self, Cursor};

use ppt_query::arrow::array::RecordBatch;
use ppt_query::arrow::ipc::reader::StreamReader;
use ppt_query::{Encoder, ResultFormat, WaitingGroup, WaitingWholes};
use serde_json::{Value, json};

/// A table of spans or chains: its buffer, and its name there.
pub(super) type WholeTable = (String, String);

/// The waiting frames of a table.
#[derive(Debug, Default)]
pub(super) struct WaitingTable {
    /// The capture whose frames came last.
    pub capture: String,
    pub wholes: WaitingWholes,
}

/// The waiting frames by table.
pub(super) type WaitingTables = BTreeMap<WholeTable, WaitingTable>;

/// Encodes the waiting frames, followed by the bytes `beside`, which another format keeps; None if there are
/// neither.
pub(super) fn encode(tables: &WaitingTables, beside: &[u8]) -> io::Result<Option<Vec<u8>>> {
    if tables.is_empty() && beside.is_empty() {
        return Ok(None);
    }
    let (mut heads, mut sections) = (Vec::new(), Vec::new());
    for ((buffer, name), table) in tables {
        let mut section = |batch: &Option<RecordBatch>| -> io::Result<usize> {
            let Some(batch) = batch else { return Ok(0) };
            let mut encoder = Encoder::new(Vec::new(), ResultFormat::Arrow, &batch.schema())?;
            encoder.write(batch)?;
            let bytes = encoder.finish()?;
            let len = bytes.len();
            sections.extend(bytes);
            Ok(len)
        };
        let (halves, rows) = (section(&table.wholes.halves)?, section(&table.wholes.rows)?);
        let groups = table.wholes.groups.iter().map(
            |group| json!({"name": group.name, "before": group.before, "missing": group.missing}),
        );
        let groups: Vec<Value> = groups.collect();
        heads.push(json!({
            "buffer": buffer, "table": name, "capture": table.capture, "groups": groups,
            "halves": halves, "rows": rows,
        }));
    }
    let head = Value::from(heads).to_string().into_bytes();
    let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
    bytes.extend(head);
    bytes.append(&mut sections);
    bytes.extend(beside);
    Ok(Some(bytes))
}

/// Reverses [`encode`]; None if the bytes are invalid.
pub(super) fn decode(bytes: &[u8]) -> Option<(WaitingTables, Vec<u8>)> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (head, mut rest) = rest.split_at_checked(u64::from_le_bytes(*len).try_into().ok()?)?;
    let heads: Vec<Value> = serde_json::from_slice(head).ok()?;
    let mut tables = WaitingTables::new();
    for head in &heads {
        let mut batch = |key: &str| -> Option<Option<RecordBatch>> {
            let len = usize::try_from(head[key].as_u64()?).ok()?;
            if len == 0 {
                return Some(None);
            }
            let (section, behind) = rest.split_at_checked(len)?;
            rest = behind;
            let mut reader = StreamReader::try_new(Cursor::new(section), None).ok()?;
            Some(Some(reader.next()?.ok()?))
        };
        let (halves, rows) = (batch("halves")?, batch("rows")?);
        let text = |key: &str| Some(head[key].as_str()?.to_owned());
        let groups = head["groups"].as_array()?.iter().map(group).collect::<Option<_>>()?;
        let wholes = WaitingWholes { groups, halves, rows };
        let table = WaitingTable { capture: text("capture")?, wholes };
        tables.insert((text("buffer")?, text("table")?), table);
    }
    Some((tables, rest.to_vec()))
}

fn group(value: &Value) -> Option<WaitingGroup> {
    let times = |key: &str| -> Option<Vec<(i64, i64)>> {
        let pair = |pair: &Value| Some((pair[0].as_i64()?, pair[1].as_i64()?));
        value[key].as_array()?.iter().map(pair).collect()
    };
    let name = value["name"].as_str()?.to_owned();
    Some(WaitingGroup { name, before: times("before")?, missing: times("missing")? })
}
