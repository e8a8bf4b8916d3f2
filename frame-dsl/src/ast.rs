//! The syntax tree: the parts of the file with their spans, without their meaning.

use crate::diagnostic::Span;

/// A word, number or string as written (a string without its quotes). A word that is too long for a
/// name is cut, but its span is not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    pub text: String,
    pub span: Span,
}

/// A whole file. Each list is in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct FrameFile {
    pub emits: Vec<Word>,
    pub buffers: Vec<BufferDecl>,
    pub settings: Vec<Setting>,
    pub enums: Vec<Enum>,
    pub frames: Vec<FrameDecl>,
    pub metrics: Vec<Metric>,
    pub edges: Vec<EdgeDecl>,
    /// Names of enums whose declaration could not be parsed. As types they cause no further errors.
    pub lost: Vec<String>,
    /// Whether a part of the file could not be parsed.
    pub damaged: bool,
    /// Length of the file in bytes.
    pub end: usize,
}

/// `buffer NAME [SLOTS];`
#[derive(Debug)]
pub(crate) struct BufferDecl {
    pub name: Word,
    pub slots: Option<Word>,
    pub span: Span,
}

/// `option KEY …;`
#[derive(Debug)]
pub(crate) struct Setting {
    pub key: Word,
    pub arguments: Vec<Argument>,
    pub span: Span,
}

/// `enum NAME : TYPE { … }`
#[derive(Debug)]
pub(crate) struct Enum {
    pub name: Word,
    pub integer: Option<Word>,
    pub values: Vec<EnumValueDecl>,
    pub doc: String,
    /// Whether a value could not be parsed.
    pub damaged: bool,
}

/// `NAME = NUMBER`
#[derive(Debug)]
pub(crate) struct EnumValueDecl {
    pub name: Word,
    pub number: Option<Word>,
}

/// `frame NAME @… { … }`
#[derive(Debug)]
pub(crate) struct FrameDecl {
    pub name: Word,
    pub attributes: Vec<Attribute>,
    pub fields: Vec<FieldDecl>,
    pub doc: String,
    /// Whether a line could not be parsed.
    pub damaged: bool,
}

/// `counter NAME : TYPE @…;` or `histogram NAME : TYPE (FROM, TO, BUCKETS) @…;`
#[derive(Debug)]
pub(crate) struct Metric {
    pub is_histogram: bool,
    pub name: Word,
    pub ty: Option<Word>,
    /// The numbers in brackets, and the span of the brackets.
    pub range: Option<(Vec<Word>, Span)>,
    pub attributes: Vec<Attribute>,
    pub doc: String,
}

/// One declarator with its type: `int kind, who;` makes two.
#[derive(Debug)]
pub(crate) struct FieldDecl {
    /// The span of the word `interval`.
    pub interval: Option<Span>,
    pub ty: Word,
    pub name: Word,
    /// The number in brackets.
    pub length: Option<Word>,
    pub attributes: Vec<Attribute>,
    pub doc: String,
}

/// `edge FROM -> TO within DURATION POLICY;`
#[derive(Debug)]
pub(crate) struct EdgeDecl {
    pub from: EdgeEnd,
    pub to: EdgeEnd,
    pub within: Option<Word>,
    pub policy: Option<Word>,
    /// From `edge` to the end of the line's content.
    pub span: Span,
}

/// One end of an edge: `FRAME` or `BUFFER.FRAME`.
#[derive(Debug)]
pub(crate) struct EdgeEnd {
    pub buffer: Option<Word>,
    pub frame: Word,
    pub span: Span,
}

/// `@NAME(…)`
#[derive(Debug)]
pub(crate) struct Attribute {
    /// Without the `@`.
    pub name: Word,
    pub arguments: Vec<Argument>,
    /// From `@` to the closing bracket.
    pub span: Span,
}

/// The text after an option's key, or in an attribute's brackets.
#[derive(Debug)]
pub(crate) struct Argument {
    pub word: Word,
    pub quoted: bool,
}
