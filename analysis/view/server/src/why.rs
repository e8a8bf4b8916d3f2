//! `/v1/why`: the causes of the slowest intervals in a range of time, as `ppt why` prints them.

use ppt_query::why::{SlowInterval, SlowPart, WhyQuestion};
use ppt_query::{Bound, Window};
use ppt_text::escaped;
use serde::{Deserialize, Serialize};

use crate::error::HttpRefusal;
use crate::frame::FrameKey;
use crate::session::ViewSession;
use crate::times::time;

/// The number of slowest intervals.
const MAX_SLOWEST: usize = 20;

#[derive(Debug, Deserialize)]
pub(crate) struct WhyQuery {
    from: String,
    to: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Why {
    slowest: Vec<SlowAnswer>,
}

/// An interval and its parts, whose sum is its length.
#[derive(Debug, Serialize)]
struct SlowAnswer {
    name: String,
    request: String,
    sentence: String,
    thread: Option<i32>,
    key: Option<FrameKey>,
    from: String,
    to: String,
    parts: Vec<PartAnswer>,
}

/// `from` and `to` are those of the longest piece.
#[derive(Debug, Serialize)]
struct PartAnswer {
    cause: String,
    ns: String,
    times: u64,
    from: String,
    to: String,
}

/// The slowest intervals in a range of time.
pub(crate) async fn why(session: &ViewSession, asked: &WhyQuery) -> Result<Why, HttpRefusal> {
    let (from, to) = (time(&asked.from)?, time(&asked.to)?);
    let bound = |ns: i64| u64::try_from(ns).ok().map(Bound::Epoch);
    // `Window::to` is included.
    let window = Window { from: bound(from), to: bound(to.saturating_sub(1)), ..Window::default() };
    let engine = session.engine_of(window)?;
    let question = WhyQuestion { slowest: MAX_SLOWEST, ..WhyQuestion::default() };
    let found = engine.why(&question).await?;
    Ok(Why { slowest: found.slowest.iter().map(slow).collect() })
}

fn slow(slow: &SlowInterval) -> SlowAnswer {
    let key = slow.ring.zip(slow.seqno).and_then(|(ring, seqno)| {
        Some(FrameKey {
            capture: slow.capture.clone(),
            buffer: slow.buffer.clone(),
            segment: slow.segment.clone(),
            ring: u32::try_from(ring).ok()?,
            seqno: seqno.to_string(),
        })
    });
    SlowAnswer {
        name: escaped(&slow.name),
        request: escaped(&slow.label()),
        sentence: escaped(&slow.sentence()),
        thread: slow.tid,
        key,
        from: slow.ts.to_string(),
        to: slow.ts.saturating_add(slow.dur).to_string(),
        parts: slow.parts.iter().map(part).collect(),
    }
}

fn part(part: &SlowPart) -> PartAnswer {
    let (from, to) = part.spent.longest;
    PartAnswer {
        cause: escaped(&part.cause()),
        ns: part.spent.ns.to_string(),
        times: part.spent.times,
        from: from.to_string(),
        to: to.to_string(),
    }
}
