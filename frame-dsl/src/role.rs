//! Kinds of frames other than plain ones, and the roles of fields in them.
//!
//! The JSON of a schema states them under separate keys. A reader that does not know these keys
//! shows such a frame as a plain one, with all fields, including those that ppt adds. For the same
//! reason the hash of the layout covers none of these keys; [`Schema::roles_hash`] does. The kind,
//! and the fields that ppt adds, were in the JSON before: the hash of the layout covers them.
//!
//! ```text
//! frame  "across":"process"  "fifo":true
//! field  "key":true          "edge":true  "step":true  "stamp":true  "hash":"xxh3"
//!        "in":"messageid"    "out":"payload"  "half":"end"  "thread":true
//! ```

use crate::names::is_identifier;
use crate::schema::{Field, FieldType, Frame, Schema};

/// [`Frame::kind`] of a frame that describes one event completely.
pub const PLAIN: &str = "plain";
/// [`Frame::kind`] of a frame for the begin or the end of a span.
pub const SPAN: &str = "span";
/// [`Frame::kind`] of a frame for one step of a chain.
pub const CHAIN: &str = "chain";
/// [`Frame::kind`] of a frame that identifies the data that passed a point.
pub const POINT: &str = "point";

/// Names of the fields that ppt adds: which end of a span the frame is, …
pub const EDGE: &str = "edge";
/// … which step of a chain, …
pub const STEP: &str = "step";
/// … and when the frame began.
pub const AT: &str = "at";

/// The values of the field [`EDGE`], each with its name.
pub const EDGES: [(&str, i128); 2] = [("begin", 0), ("end", 1)];

/// Keys of a frame.
pub(crate) const ACROSS: &str = "across";
pub(crate) const FIFO: &str = "fifo";
/// Keys of a field. [`EDGE`] and [`STEP`] are also names of such keys.
pub(crate) const KEY: &str = "key";
pub(crate) const STAMP: &str = "stamp";
pub(crate) const HASH: &str = "hash";
pub(crate) const IN: &str = "in";
pub(crate) const OUT: &str = "out";
pub(crate) const HALF: &str = "half";
pub(crate) const THREAD: &str = "thread";
/// All keys, in the order in which they are hashed.
pub(crate) const FRAME_KEYS: [&str; 2] = [ACROSS, FIFO];
pub(crate) const FIELD_KEYS: [&str; 9] = [KEY, EDGE, STEP, STAMP, HASH, IN, OUT, HALF, THREAD];

/// Most identities on one side of a point.
pub const MAX_IDENTITIES: usize = 16;

/// The scope in which the end of a span can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Across {
    /// In the process that began it.
    Process,
    /// In any process of the host.
    Host,
    /// On any host.
    Everywhere,
}

impl Across {
    /// All values.
    pub const ALL: [Across; 3] = [Across::Process, Across::Host, Across::Everywhere];

    /// The word in a frame file and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Across::Process => "process",
            Across::Host => "host",
            Across::Everywhere => "everywhere",
        }
    }

    /// The scope with this name.
    pub fn of_word(word: &str) -> Option<Across> {
        Across::ALL.into_iter().find(|across| across.word() == word)
    }
}

/// One of the two frames of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpanHalf {
    /// The frame that begins it.
    Begin,
    /// The frame that ends it.
    End,
}

impl SpanHalf {
    /// Both halves.
    pub const ALL: [SpanHalf; 2] = [SpanHalf::Begin, SpanHalf::End];

    /// The word in JSON, the name of the attribute and that of the value in [`EDGES`].
    pub fn word(self) -> &'static str {
        match self {
            SpanHalf::Begin => EDGES[0].0,
            SpanHalf::End => EDGES[1].0,
        }
    }

    /// The half with this name.
    pub fn from_word(word: &str) -> Option<SpanHalf> {
        SpanHalf::ALL.into_iter().find(|half| half.word() == word)
    }

    /// The other frame of the span.
    pub fn other(self) -> SpanHalf {
        match self {
            SpanHalf::Begin => SpanHalf::End,
            SpanHalf::End => SpanHalf::Begin,
        }
    }
}

/// How the value of a field of type `hash` or `hash128` is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// XXH3 of bytes, seed 0, as in xxHash 0.8: 64 bits, or 128 with the most significant byte
    /// first.
    Xxh3,
    /// The program's own value: `@raw`.
    Raw,
}

impl Hash {
    /// All values.
    pub const ALL: [Hash; 2] = [Hash::Xxh3, Hash::Raw];
    /// Bytes of the wider of the two types.
    pub const WIDE: u32 = 16;

    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Hash::Xxh3 => "xxh3",
            Hash::Raw => "raw",
        }
    }
}

/// How frames of the kind `span` belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanRole<'a> {
    /// An end belongs to a begin with the same values of these fields. There is at least one.
    pub keys: Vec<&'a Field>,
    /// States which of [`EDGES`] the frame is.
    pub edge: &'a Field,
    /// The scope of an end.
    pub across: Across,
    /// Whether an end belongs to the earliest begin without an end, instead of the latest.
    pub fifo: bool,
}

/// How frames of the kind `chain` belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain<'a> {
    /// The steps of one chain have the same values of these fields. There is at least one.
    pub keys: Vec<&'a Field>,
    /// States the step of the frame: a value of an enum, whose values are in the order of the
    /// chain.
    pub step: &'a Field,
}

/// The content of a frame of the kind `point`: the identities of data that came in, and of data
/// that went out. Each has a hash type, which occurs only once per side, and a field; one side may
/// have none.
#[derive(Debug, Clone, PartialEq)]
pub struct PointRole<'a> {
    /// Incoming identities.
    pub ins: Vec<(&'a str, &'a Field)>,
    /// Outgoing identities, if stated.
    pub outs: Vec<(&'a str, &'a Field)>,
}

impl PointRole<'_> {
    /// Whether the incoming data also went out, because no other identity is stated. No point
    /// has to take it in.
    pub fn implied(&self) -> bool {
        self.outs.is_empty()
    }
}

impl Frame {
    /// The ways to write such a frame, as words in function names.
    pub fn verbs(&self) -> &'static [&'static str] {
        let has = |role| self.fields.iter().any(|field| field.says(role));
        match () {
            () if has(EDGE) => &["begin", "end"],
            () if has(STEP) => &["step"],
            () => &["write"],
        }
    }

    /// The ways in which such a frame is written, in order, each with its value: steps of a chain,
    /// edges of a span; empty for a plain frame.
    pub fn steps<'a>(&self, schema: &'a Schema) -> &'a [(String, i128)] {
        let mark = self.fields.iter().find(|field| field.is_mark());
        match mark.map(|field| &field.ty) {
            Some(FieldType::Enum { name }) => {
                schema.enum_named(name).map(|enum_named| &enum_named.values[..]).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// How these frames belong together, if they are of the kind `span`. A schema may be untrusted:
    /// if its keys are invalid, the frame is a plain one.
    pub fn span(&self) -> Option<SpanRole<'_>> {
        if self.kind != SPAN {
            return None;
        }
        let across = self.extra.get(ACROSS)?.as_str().and_then(Across::of_word)?;
        let fifo = self.extra.get(FIFO).map_or(Some(false), serde_json::Value::as_bool)?;
        let (keys, edge) = self.keys_and(EDGE)?;
        Some(SpanRole { keys, edge, across, fifo })
    }

    /// The same for the kind `chain`.
    pub fn chain(&self) -> Option<Chain<'_>> {
        if self.kind != CHAIN {
            return None;
        }
        let (keys, step) = self.keys_and(STEP)?;
        Some(Chain { keys, step })
    }

    /// The incoming and outgoing identities, if these frames are of the kind `point`.
    pub fn point(&self) -> Option<PointRole<'_>> {
        if self.kind != POINT {
            return None;
        }
        let point = PointRole { ins: self.identities(IN)?, outs: self.identities(OUT)? };
        (!point.ins.is_empty() || !point.outs.is_empty()).then_some(point)
    }

    /// The field that names the thread the frame is about. A schema may be untrusted: `None` if it states
    /// several, or one of another type, or for a point: the thread that writes one is the one that passed it.
    pub fn thread(&self) -> Option<&Field> {
        if self.kind == POINT {
            return None;
        }
        let mut all = self.fields.iter().filter(|field| field.says(THREAD));
        let one = all.next().filter(|field| field.can_be_thread())?;
        all.next().is_none().then_some(one)
    }

    /// The only half of a span that sets the field: `@begin` or `@end`. `None`: both do, or these
    /// frames are not spans. Keys and fields set by ppt are in both halves, whatever a schema
    /// states.
    pub fn only_half(&self, field: &Field) -> Option<SpanHalf> {
        let word = field.extra.get(HALF)?.as_str()?;
        let is_in_both = field.is_key() || field.is_own() || field.at;
        SpanHalf::from_word(word).filter(|_| !is_in_both && self.span().is_some())
    }

    /// One side of a point. `None` if it is invalid.
    fn identities(&self, side: &str) -> Option<Vec<(&str, &Field)>> {
        let mut all: Vec<(&str, &Field)> = Vec::new();
        for field in self.fields.iter().filter(|field| field.extra.contains_key(side)) {
            let ty = field.extra[side].as_str().filter(|text| is_identifier(text))?;
            let again = all.iter().any(|(other, _)| *other == ty);
            if field.hash().is_none() || again || all.len() == MAX_IDENTITIES {
                return None;
            }
            all.push((ty, field));
        }
        Some(all)
    }

    /// The keys, and the field that states which part of the whole the frame is.
    fn keys_and(&self, role: &str) -> Option<(Vec<&Field>, &Field)> {
        let keys: Vec<_> = self.fields.iter().filter(|field| field.is_key()).collect();
        let mut marks = self.fields.iter().filter(|field| field.is_mark());
        let mark = marks.next().filter(|mark| mark.says(role) && !mark.is_key())?;
        let sound = marks.next().is_none()
            && !keys.is_empty()
            && keys.iter().all(|key| key.ty.can_be_key() && key.array.is_none())
            && matches!(mark.ty, FieldType::Enum { .. })
            && mark.array.is_none();
        sound.then_some((keys, mark))
    }
}

impl Field {
    /// Whether frames with the same value of this field belong together.
    pub fn is_key(&self) -> bool {
        self.says(KEY)
    }

    /// Whether ppt added the field and sets it.
    pub fn is_own(&self) -> bool {
        self.is_mark() || self.is_own_stamp()
    }

    /// Whether the field states in which of several ways the frame was written.
    pub fn is_mark(&self) -> bool {
        self.says(EDGE) || self.says(STEP)
    }

    /// Whether the field states when the frame began.
    pub fn is_own_stamp(&self) -> bool {
        self.says(STAMP)
    }

    /// How the field identifies data, for the types `hash` and `hash128`. A schema may be
    /// untrusted: `None` for a field of another type.
    pub fn hash(&self) -> Option<Hash> {
        let word = self.extra.get(HASH)?.as_str()?;
        let fits = match self.ty {
            FieldType::U64 => true,
            FieldType::Bytes { len } => len == Hash::WIDE,
            _ => false,
        };
        let known = Hash::ALL.into_iter().find(|hash| hash.word() == word);
        known.filter(|_| fits && self.array.is_none())
    }

    /// Whether its values can be numbers of threads.
    pub(crate) fn can_be_thread(&self) -> bool {
        matches!(self.ty, FieldType::U32 | FieldType::I32)
            && self.array.is_none()
            && self.interval.is_none()
    }

    fn says(&self, key: &str) -> bool {
        says(&self.extra, key)
    }
}

fn says(extra: &crate::schema::Extra, key: &str) -> bool {
    extra.get(key).is_some_and(|value| *value == true)
}

impl FieldType {
    /// Whether a single value of this type can be a key: equal values have equal bytes.
    pub fn can_be_key(&self) -> bool {
        match self {
            FieldType::F32 | FieldType::F64 | FieldType::Duration => false,
            other => !other.is_time(),
        }
    }
}

impl Schema {
    /// The frame whose ways of writing the enum at `index` lists, if it is such an enum.
    pub fn marked_by(&self, index: usize) -> Option<&Frame> {
        let of = |field: &Field| match &field.ty {
            FieldType::Enum { name } => field.is_mark() && *name == self.enums[index].name,
            _ => false,
        };
        self.frames.iter().find(|frame| frame.fields.iter().any(of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":32,"frames":[{"name":"r","kind":"span","size":32,"fields":[{"name":"id","type":"u64","offset":16,"key":true},{"name":"edge","type":"enum","enum":"REdge","offset":24,"edge":true},{"name":"at","type":"tsc","offset":8,"at":true,"stamp":true}],"across":"host","fifo":true}],"enums":[{"name":"REdge","type":"u8","values":[["begin",0],["end",1]]}]}"#;

    fn schema(from: &str, to: &str) -> Schema {
        let text = TEXT.replacen(from, to, 1);
        assert!(from == to || text != TEXT, "`{from}` is not in the text");
        Schema::from_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_span_of_a_schema() {
        let schema = schema("", "");
        let span = schema.frames[0].span().unwrap();
        assert_eq!((span.keys[0].name.as_str(), span.edge.name.as_str()), ("id", "edge"));
        assert_eq!((span.across, span.fifo), (Across::Host, true));
        let own = schema.frames[0].fields.iter().map(Field::is_own).collect::<Vec<_>>();
        assert_eq!(own, [false, true, true]);
        assert_eq!(schema.marked_by(0).unwrap().name, "r");
        assert_eq!(schema.to_json(), TEXT);
    }

    #[test]
    fn halves_of_a_schema() {
        let status = r#"{"name":"status","type":"u16","offset":26,"half":"end"},{"name":"edge""#;
        let schema = schema(r#"{"name":"edge""#, status);
        let half = |schema: &Schema, field: usize| {
            schema.frames[0].only_half(&schema.frames[0].fields[field])
        };
        let of = |field| half(&schema, field);
        assert_eq!([0, 1, 2, 3].map(of), [None, Some(SpanHalf::End), None, None]);
        let text = schema.to_json();
        let but = |from: &str, to: &str| {
            let other = text.replace(from, to);
            assert_ne!(other, text);
            let other = Schema::from_json(other.as_bytes()).unwrap();
            (half(&other, 1), other.hash(), other.roles_hash())
        };
        let (hash, roles) = (schema.hash(), schema.roles_hash());
        let (begin, same, other) = but(r#""half":"end""#, r#""half":"begin""#);
        assert_eq!((begin, same), (Some(SpanHalf::Begin), hash));
        assert_ne!(other, roles);
        assert_eq!(but(r#""half":"end""#, r#""half":"middle""#).0, None);
        assert_eq!(but(r#""half":"end""#, r#""half":"end","key":true"#).0, None);
        assert_eq!(but(r#""kind":"span""#, r#""kind":"chain""#).0, None);
    }

    #[test]
    fn a_chain_of_a_schema() {
        let text = TEXT.replace(r#""edge":true"#, r#""step":true"#);
        let text = text.replace(r#""kind":"span""#, r#""kind":"chain""#);
        let schema = Schema::from_json(text.as_bytes()).unwrap();
        let frame = &schema.frames[0];
        let chain = frame.chain().unwrap();
        assert_eq!((chain.keys[0].name.as_str(), chain.step.name.as_str()), ("id", "edge"));
        assert_eq!((frame.verbs(), frame.span()), (&["step"][..], None));
        let keyless = text.replace(r#","key":true"#, "");
        assert_eq!(Schema::from_json(keyless.as_bytes()).unwrap().frames[0].chain(), None);
    }

    #[test]
    fn hashes_of_a_schema() {
        let of = |from: &str, to: &str| schema(from, to).frames[0].fields[0].hash();
        let id = r#""type":"u64","offset":16"#;
        let word =
            |ty: &str, word: &str| of(id, &format!(r#""type":{ty},"offset":16,"hash":{word}"#));
        assert_eq!(of("", ""), None);
        assert_eq!(word(r#""u64""#, r#""xxh3""#), Some(Hash::Xxh3));
        assert_eq!(word(r#""u64""#, r#""raw""#), Some(Hash::Raw));
        assert_eq!(word(r#""u64""#, r#""md5""#), None);
        assert_eq!(word(r#""u64""#, "true"), None);
        assert_eq!(word(r#""i64""#, r#""xxh3""#), None);
        assert_eq!(word(r#""u32""#, r#""xxh3""#), None);
    }

    const POINT_TEXT: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":48,"frames":[{"name":"p","kind":"point","size":48,"fields":[{"name":"id","type":"u64","offset":16,"hash":"xxh3","in":"messageid"},{"name":"body","type":"bytes","len":16,"offset":24,"hash":"raw","in":"trace","out":"payload"},{"name":"size","type":"u32","offset":40},{"name":"at","type":"tsc","offset":8,"at":true,"stamp":true}]}]}"#;

    /// The types of the incoming and outgoing identities.
    type Sides = (Vec<String>, Vec<String>);

    fn sides_with(from: &str, to: &str) -> Option<Sides> {
        let text = POINT_TEXT.replace(from, to);
        assert!(from == to || text != POINT_TEXT, "`{from}` is not in the text");
        let schema = Schema::from_json(text.as_bytes()).unwrap();
        assert_eq!(schema.to_json(), text);
        let point = schema.frames[0].point()?;
        assert_eq!(point.implied(), point.outs.is_empty());
        let types = |side: &[(&str, &Field)]| side.iter().map(|entry| entry.0.to_owned()).collect();
        Some((types(&point.ins), types(&point.outs)))
    }

    #[test]
    fn a_point_of_a_schema() {
        let schema = Schema::from_json(POINT_TEXT.as_bytes()).unwrap();
        let frame = &schema.frames[0];
        let point = frame.point().unwrap();
        let names =
            |side: &[(&str, &Field)]| side.iter().map(|entry| entry.1.name.clone()).collect();
        let (ins, outs): (Vec<_>, Vec<_>) = (names(&point.ins), names(&point.outs));
        assert_eq!((ins, outs), (vec!["id".into(), "body".into()], vec!["body".into()]));
        assert_eq!((frame.verbs(), frame.span(), frame.chain()), (&["write"][..], None, None));
        let own = frame.fields.iter().map(Field::is_own).collect::<Vec<_>>();
        assert_eq!(own, [false, false, false, true]);

        let sides = |ins: &[&str], outs: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            Some((owned(ins), owned(outs)))
        };
        assert_eq!(sides_with("", ""), sides(&["messageid", "trace"], &["payload"]));
        assert_eq!(sides_with(r#","out":"payload""#, ""), sides(&["messageid", "trace"], &[]));
        assert_eq!(sides_with(r#","in":"messageid""#, ""), sides(&["trace"], &["payload"]));
        // The same type on both sides: it passes through.
        assert_eq!(sides_with("payload", "trace"), sides(&["messageid", "trace"], &["trace"]));
    }

    #[test]
    fn what_makes_no_sense_is_no_point() {
        for (from, to) in [
            (r#""kind":"point""#, r#""kind":"plain""#),
            ("messageid", "message id"),
            ("messageid", ""),
            ("messageid", "trace"),
            (r#""messageid""#, "true"),
            (r#""payload""#, r#"["payload"]"#),
            (r#""hash":"xxh3","#, ""),
            (r#""hash":"raw""#, r#""hash":"md5""#),
            (r#""offset":40"#, r#""offset":40,"in":"size""#),
        ] {
            assert_eq!(sides_with(from, to), None, "{to}");
        }
        let none = POINT_TEXT.replace(r#","in":"messageid""#, "");
        let none = none.replace(r#","in":"trace","out":"payload""#, "");
        assert_eq!(Schema::from_json(none.as_bytes()).unwrap().frames[0].point(), None);
    }

    #[test]
    fn identities_are_bounded() {
        let schema = |count: usize| {
            let fields: Vec<_> = (0..count)
                .map(|index| {
                    let offset = 8 + 8 * index;
                    format!(r#"{{"name":"f{index}","type":"u64","offset":{offset},"hash":"raw","out":"t{index}"}}"#)
                })
                .collect();
            let size = 8 + 8 * count;
            let text = format!(
                r#"{{"v":1,"buffer":"b","slots":16,"stride":{size},"frames":[{{"name":"p","kind":"point","size":{size},"fields":[{}]}}]}}"#,
                fields.join(",")
            );
            Schema::from_json(text.as_bytes()).unwrap()
        };
        let most = schema(MAX_IDENTITIES);
        assert_eq!(most.frames[0].point().unwrap().outs.len(), MAX_IDENTITIES);
        assert_eq!(schema(MAX_IDENTITIES + 1).frames[0].point(), None);
    }

    /// Captures and programs may contain anything.
    #[test]
    fn what_makes_no_sense_is_a_plain_frame() {
        for (from, to) in [
            (r#""kind":"span""#, r#""kind":"plain""#),
            (r#""across":"host""#, r#""across":"moon""#),
            (r#""across":"host","#, ""),
            (r#""across":"host""#, r#""across":1"#),
            (r#","key":true"#, ""),
            (r#""key":true"#, r#""key":1"#),
            (r#""type":"u64""#, r#""type":"f64""#),
            (r#""type":"u64""#, r#""type":"u8","array":2"#),
            (r#""edge":true"#, r#""edge":"true""#),
            (r#""edge":true"#, r#""edge":true,"key":true"#),
            (r#""key":true"#, r#""key":true,"edge":true"#),
            (r#""key":true"#, r#""key":true,"step":true"#),
            (r#""fifo":true"#, r#""fifo":1"#),
            (r#""type":"enum","enum":"REdge""#, r#""type":"u8""#),
        ] {
            assert_eq!(schema(from, to).frames[0].span(), None, "{to}");
        }
        assert!(!schema(r#""fifo":true"#, r#""fifo":false"#).frames[0].span().unwrap().fifo);
    }
}
