//! The syntax tree: the parts of the file with their spans, without their meaning.

use crate::diagnostic::SourceRange;

/// A word, number or string as written (a string without its quotes). A word that is too long for a
/// name is cut, but its span is not.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceWord {
    pub text: String,
    pub span: SourceRange,
}

/// A whole file. Each list is in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct FrameFile {
    pub emits: Vec<SourceWord>,
    pub buffers: Vec<BufferDecl>,
    pub settings: Vec<Setting>,
    pub enums: Vec<Enum>,
    pub frames: Vec<FrameDecl>,
    pub metrics: Vec<MetricDeclaration>,
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
    pub name: SourceWord,
    pub slots: Option<SourceWord>,
    pub span: SourceRange,
}

/// `option KEY …;`
#[derive(Debug)]
pub(crate) struct Setting {
    pub key: SourceWord,
    pub arguments: Vec<Argument>,
    pub span: SourceRange,
}

/// `enum NAME : TYPE { … }`
#[derive(Debug)]
pub(crate) struct Enum {
    pub name: SourceWord,
    pub integer: Option<SourceWord>,
    pub values: Vec<EnumValueDecl>,
    pub doc: String,
    /// Whether a value could not be parsed.
    pub damaged: bool,
}

/// `NAME = NUMBER`
#[derive(Debug)]
pub(crate) struct EnumValueDecl {
    pub name: SourceWord,
    pub number: Option<SourceWord>,
}

/// `frame NAME @… { … }`
#[derive(Debug)]
pub(crate) struct FrameDecl {
    pub name: SourceWord,
    pub attributes: Vec<Attribute>,
    pub fields: Vec<FieldDecl>,
    pub doc: String,
    /// Whether a line could not be parsed.
    pub damaged: bool,
}

/// `counter NAME : TYPE @…;` or `histogram NAME : TYPE (FROM, TO, BUCKETS) @…;`
#[derive(Debug)]
pub(crate) struct MetricDeclaration {
    pub is_histogram: bool,
    pub name: SourceWord,
    pub ty: Option<SourceWord>,
    /// The numbers in brackets, and the span of the brackets.
    pub range: Option<(Vec<SourceWord>, SourceRange)>,
    pub attributes: Vec<Attribute>,
    pub doc: String,
}

/// One declarator with its type: `int kind, who;` makes two.
#[derive(Debug)]
pub(crate) struct FieldDecl {
    /// The span of the word `interval`.
    pub interval: Option<SourceRange>,
    pub ty: SourceWord,
    pub name: SourceWord,
    /// The number in brackets.
    pub length: Option<SourceWord>,
    pub attributes: Vec<Attribute>,
    pub doc: String,
}

/// `edge FROM -> TO within DURATION POLICY;`
#[derive(Debug)]
pub(crate) struct EdgeDecl {
    pub from: EdgeEnd,
    pub to: EdgeEnd,
    pub within: Option<SourceWord>,
    pub policy: Option<SourceWord>,
    /// From `edge` to the end of the line's content.
    pub span: SourceRange,
}

/// One end of an edge: `FRAME` or `BUFFER.FRAME`.
#[derive(Debug)]
pub(crate) struct EdgeEnd {
    pub buffer: Option<SourceWord>,
    pub frame: SourceWord,
    pub span: SourceRange,
}

/// `@NAME(…)`
#[derive(Debug)]
pub(crate) struct Attribute {
    /// Without the `@`.
    pub name: SourceWord,
    pub arguments: Vec<Argument>,
    /// From `@` to the closing bracket.
    pub span: SourceRange,
}

/// The text after an option's key, or in an attribute's brackets.
#[derive(Debug)]
pub(crate) struct Argument {
    pub word: SourceWord,
    pub quoted: bool,
}
