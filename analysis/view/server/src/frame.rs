//! `/v1/frame`: the fields of a frame.

use ppt_text::escaped;
use ppt_view::{Content, FieldContent, FrameName, FramePlace, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::HttpRefusal;
use crate::session::ViewSession;

/// The name of a frame in pages and links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FrameKey {
    pub capture: String,
    pub buffer: String,
    /// The nonce of the segment, 16 hex digits.
    pub segment: String,
    pub ring: u32,
    /// The sequence number, in decimal digits.
    pub seqno: String,
}

/// A requested frame: by its key, or by its numbers in a view.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum FrameQuery {
    Key(FrameKey),
    Cell { view: u64, chunk: u32, frame: u32 },
}

impl FrameKey {
    fn new(name: &FrameName) -> FrameKey {
        FrameKey {
            capture: name.capture.clone(),
            buffer: name.buffer.clone(),
            segment: format!("{:016x}", name.segment),
            ring: name.ring,
            seqno: name.seqno.to_string(),
        }
    }

    /// The key in the cells of an answer: capture, buffer, segment, ring, sequence number.
    pub fn from_cells(cells: &[Option<String>]) -> Option<FrameKey> {
        let [capture, buffer, segment, ring, seqno] = cells else { return None };
        Some(FrameKey {
            capture: capture.clone()?,
            buffer: buffer.clone()?,
            segment: segment.clone()?,
            ring: ring.as_ref()?.parse().ok()?,
            seqno: seqno.clone()?,
        })
    }

    pub fn name(&self) -> Result<FrameName, HttpRefusal> {
        let bad = |what: &str| HttpRefusal::bad(format!("a frame has no such {what}"));
        Ok(FrameName {
            capture: self.capture.clone(),
            buffer: self.buffer.clone(),
            segment: u64::from_str_radix(&self.segment, 16).map_err(|_| bad("segment"))?,
            ring: self.ring,
            seqno: self.seqno.parse().map_err(|_| bad("sequence number"))?,
        })
    }
}

impl FrameQuery {
    /// The view that has the frame, and the name of the frame.
    pub fn name(
        &self,
        session: &ViewSession,
    ) -> Result<(std::sync::Arc<View>, FrameName), HttpRefusal> {
        match self {
            FrameQuery::Key(key) => Ok((session.view().1, key.name()?)),
            FrameQuery::Cell { view, chunk, frame } => {
                let view = session.view_of(*view)?;
                let place = FramePlace { chunk: *chunk, frame: *frame };
                let name = view.frame_name(place).ok_or(ppt_view::ViewError::NoSuchFrame)?;
                Ok((view, name))
            }
        }
    }
}

/// The fields of a frame, its row and times, and the command that prints it in a terminal.
pub(crate) fn frame(session: &ViewSession, asked: &FrameQuery) -> Result<Value, HttpRefusal> {
    let (view, name) = asked.name(session)?;
    let found = view.frame(&name)?;
    let times = || {
        found.fields.iter().filter_map(|field| match field.content {
            Some(Content::Time(ns)) => Some(ns),
            _ => None,
        })
    };
    Ok(json!({
        "key": FrameKey::new(&name),
        "name": escaped(&found.frame),
        "buffer": escaped(&name.buffer),
        "thread": found.tid,
        "process": found.pid,
        "host": escaped(&found.host),
        "row": view.thread_row(&name).map(|row| row.to_string()),
        "from": times().min().map(|ns| ns.to_string()),
        "to": times().max().map(|ns| ns.to_string()),
        "fields": found.fields.iter().map(field).collect::<Vec<_>>(),
        "command": format!("ppt dump CAPTURE -b {} --frame {} --from {} --to {}",
            quoted(&name.buffer), quoted(&found.frame), name.seqno, name.seqno),
    }))
}

/// A word, quoted for a shell if necessary.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", escaped(word).replace('\'', r"'\''"))
    }
}

/// A field as JSON. `type` is the way to show `text`. Numbers are texts, so that they keep all digits.
fn field(field: &FieldContent) -> Value {
    let (kind, text) = match &field.content {
        None => ("none", String::new()),
        Some(Content::Integer(number)) => ("number", number.to_string()),
        Some(Content::Float(number)) => ("number", number.to_string()),
        Some(Content::Bool(is)) => ("text", is.to_string()),
        Some(Content::Duration(ns)) => ("duration", ns.to_string()),
        Some(Content::CpuTime(ns)) => ("duration", ns.to_string()),
        Some(Content::Time(ns)) => ("time", ns.to_string()),
        Some(Content::Address(address)) => ("text", format!("{address:#x}")),
        Some(Content::Enum(Some(name), _)) => ("text", escaped(name)),
        Some(Content::Enum(None, number)) => ("number", number.to_string()),
        Some(Content::Text(bytes)) => ("text", escaped(&String::from_utf8_lossy(bytes))),
        Some(Content::Bytes(bytes)) => ("text", hex::encode(bytes)),
    };
    json!({ "name": escaped(&field.name), "unit": escaped(&field.unit), "type": kind, "text": text })
}
