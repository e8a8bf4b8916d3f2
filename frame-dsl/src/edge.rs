//! Edge lines: which point may follow another.
//!
//! The JSON of a schema lists them under a separate key. They state how captures are interpreted,
//! and do not affect frames: no hash covers them, and programs that differ only in them are
//! compatible.
//!
//! ```text
//! "edges":[{"from":"sent","to":"server.received","within":500000000,"policy":"nearest"}]
//! ```

use serde::{Deserialize, Serialize};

use crate::names::is_identifier;
use crate::schema::Schema;

/// Most edge lines of a buffer or of an edge file.
pub const MAX_EDGES: usize = 1024;

/// Key of the list in a schema.
pub(crate) const EDGES: &str = "edges";

/// A line `edge from -> to within … policy;`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The earlier point: the name of a frame, or `buffer.frame`.
    pub from: String,
    /// The point that may follow it.
    pub to: String,
    /// The longest time between them, in nanoseconds.
    pub within: Option<u64>,
    /// The policy for several matching points.
    pub policy: Policy,
}

/// How points with one identity are matched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Each earlier one with each later one.
    #[default]
    All,
    /// The latest earlier one.
    Nearest,
    /// The first with the first, the second with the second.
    Fifo,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 3] = [Policy::All, Policy::Nearest, Policy::Fifo];

    /// The word in a frame file and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Policy::All => "all",
            Policy::Nearest => "nearest",
            Policy::Fifo => "fifo",
        }
    }

    /// The policy with this name.
    pub fn of_word(word: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.word() == word)
    }
}

/// An edge in JSON.
#[derive(Serialize, Deserialize)]
struct EdgeText {
    from: String,
    to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
}

/// The JSON of edges, as the value of a schema's key.
#[cfg(feature = "parser")]
pub(crate) fn to_json(edges: &[Edge]) -> serde_json::Value {
    let texts: Vec<_> = edges.iter().map(EdgeText::from_edge).collect();
    serde_json::to_value(texts).expect("an edge has a JSON text")
}

impl EdgeText {
    #[cfg(feature = "parser")]
    fn from_edge(edge: &Edge) -> EdgeText {
        let Edge { from, to, within, policy } = edge.clone();
        let policy = (policy != Policy::All).then(|| policy.word().to_owned());
        EdgeText { from, to, within, policy }
    }

    /// The edge, if it is valid.
    fn edge(self) -> Option<Edge> {
        let policy = self.policy.as_deref().map_or(Some(Policy::All), Policy::of_word)?;
        let sound = is_point(&self.from) && is_point(&self.to) && self.within != Some(0);
        let EdgeText { from, to, within, .. } = self;
        sound.then_some(Edge { from, to, within, policy })
    }
}

/// Whether the text is `frame` or `buffer.frame`.
fn is_point(text: &str) -> bool {
    match text.split_once('.') {
        Some((buffer, frame)) => is_identifier(buffer) && is_identifier(frame),
        None => is_identifier(text),
    }
}

impl Schema {
    /// The edge lines, in order. A schema may be untrusted: invalid lines, and lines after the
    /// first [`MAX_EDGES`], are ignored.
    pub fn edges(&self) -> Vec<Edge> {
        let list = self.extra.get(EDGES).and_then(serde_json::Value::as_array);
        let texts = list.into_iter().flatten().take(MAX_EDGES);
        texts.filter_map(|text| EdgeText::deserialize(text).ok()?.edge()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"v":1,"buffer":"b","slots":2,"stride":16,"frames":[{"name":"f","kind":"plain","size":16,"fields":[{"name":"a","type":"u64","offset":8}]}],"edges":[{"from":"sent","policy":"nearest","to":"server.received","within":500000000},{"from":"a","to":"b"},{"from":"b","policy":"fifo","to":"b"}]}"#;

    fn schema(from: &str, to: &str) -> Schema {
        let text = TEXT.replacen(from, to, 1);
        assert!(from == to || text != TEXT, "`{from}` is not in the text");
        Schema::from_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn edges_of_a_schema() {
        let schema = schema("", "");
        let edge = |from: &str, to: &str, within, policy| Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            within,
            policy,
        };
        let all = [
            edge("sent", "server.received", Some(500_000_000), Policy::Nearest),
            edge("a", "b", None, Policy::All),
            edge("b", "b", None, Policy::Fifo),
        ];
        assert_eq!(schema.edges(), all);
        assert_eq!(schema.to_json(), TEXT);
    }

    #[test]
    fn no_hash_covers_them() {
        let (with, _) = TEXT.split_once(r#","edges""#).unwrap();
        let without = Schema::from_json(format!("{with}}}").as_bytes()).unwrap();
        assert_eq!(without.edges(), []);
        let schema = schema("", "");
        assert_eq!(without.symbol_prefix(), schema.symbol_prefix());
        assert_eq!(without.hash(), schema.hash());
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        for (from, to) in [
            (r#""sent""#, r#""""#),
            (r#""sent""#, r#""a b""#),
            (r#""sent""#, r#""a.b.c""#),
            (r#""sent""#, r#"".sent""#),
            (r#""sent""#, "1"),
            (r#""from":"sent","#, ""),
            (r#""nearest""#, r#""farthest""#),
            (r#""nearest""#, "true"),
            ("500000000", "0"),
            ("500000000", "-1"),
            ("500000000", "0.5"),
            (r#""edges":[{"from""#, r#""edges":[{"form""#),
        ] {
            assert_eq!(schema(from, to).edges().len(), 2, "{to}");
        }
        assert_eq!(schema(r#""edges":["#, r#""edges":[null,7,"x",[],"#).edges().len(), 3);
        assert_eq!(schema(r#""edges":["#, r#""edges":{},"other":["#).edges(), []);
        let many = r#"{"from":"a","to":"b"},"#.repeat(MAX_EDGES);
        let many = schema(r#""edges":["#, &format!(r#""edges":[{many}"#)).edges();
        assert_eq!((many.len(), &*many[MAX_EDGES - 1].from), (MAX_EDGES, "a"));
    }
}
