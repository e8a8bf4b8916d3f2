//! All mistakes that the compiler reports. Each area has a file, with their codes and texts.

mod attributes;
mod buffers;
mod edges;
mod enums;
mod file;
mod frames;
mod metrics;
mod names;
mod options;
mod points;
mod roles;
mod syntax;
mod tables;
mod types;

pub(crate) use attributes::AttributeMistake;
pub(crate) use buffers::BufferMistake;
pub(crate) use edges::{DurationFault, EdgeMistake};
pub(crate) use enums::EnumMistake;
pub(crate) use file::FileMistake;
pub(crate) use frames::FrameMistake;
pub(crate) use metrics::MetricMistake;
pub(crate) use names::{NameKind, NameMistake};
pub(crate) use options::OptionMistake;
pub(crate) use points::PointMistake;
pub(crate) use roles::RoleMistake;
pub(crate) use syntax::{NumberFault, SyntaxMistake};
pub(crate) use tables::TableMistake;
pub(crate) use types::TypeMistake;

use crate::wording::Wording;

/// The severity of a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Advice; nothing is wrong.
    Hint,
    /// Probably a mistake.
    Warning,
    /// A mistake; the file has no schema.
    Error,
}

macro_rules! mistakes {
    ($($area:ident($mistake:ident),)*) => {
        /// A mistake in a frame file.
        #[derive(Debug, Clone)]
        pub(crate) enum Mistake {
            $($area($mistake),)*
        }

        $(impl From<$mistake> for Mistake {
            fn from(mistake: $mistake) -> Self {
                Mistake::$area(mistake)
            }
        })*

        impl Mistake {
            /// The stable name of the rule.
            pub fn code(&self) -> &'static str {
                match self {
                    $(Mistake::$area(mistake) => mistake.code(),)*
                }
            }

            /// Message, label and help.
            pub fn wording(&self) -> Wording {
                match self {
                    $(Mistake::$area(mistake) => mistake.wording(),)*
                }
            }
        }
    };
}

mistakes! {
    File(FileMistake),
    Syntax(SyntaxMistake),
    Option(OptionMistake),
    Buffer(BufferMistake),
    Name(NameMistake),
    Enum(EnumMistake),
    Frame(FrameMistake),
    Type(TypeMistake),
    Attribute(AttributeMistake),
    Role(RoleMistake),
    Point(PointMistake),
    Edge(EdgeMistake),
    Table(TableMistake),
    Metric(MetricMistake),
}

impl Mistake {
    /// Hints and warnings do not reject a file.
    pub fn severity(&self) -> Severity {
        match self {
            Mistake::Frame(FrameMistake::LargeFrame { .. })
            | Mistake::Frame(FrameMistake::TimelessFrame { .. })
            | Mistake::Frame(FrameMistake::ManyStamps { .. }) => Severity::Hint,
            Mistake::Option(OptionMistake::CpuClock { .. })
            | Mistake::Enum(EnumMistake::SameValue { .. })
            | Mistake::Buffer(BufferMistake::LanguageTwice { .. })
            | Mistake::Attribute(AttributeMistake::UnknownAttribute { .. })
            | Mistake::Option(OptionMistake::UnknownWarning { .. })
            | Mistake::Buffer(BufferMistake::LargeRing { .. })
            | Mistake::Frame(FrameMistake::UnevenFrames { .. })
            | Mistake::File(FileMistake::Unsaid { errors: false, .. }) => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

/// The warnings and hints that `option allow` can silence.
pub(crate) const WARNINGS: [&str; 9] = [
    "cpu-clock",
    "language-twice",
    "large-frame",
    "large-ring",
    "many-stamps",
    "no-time",
    "same-value",
    "uneven-frames",
    "unknown-attribute",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation lists exactly the warnings that a file can suppress.
    #[test]
    fn the_page_lists_every_warning() {
        let page = include_str!("../../docs/frame-files.md");
        let section = page.split("\n## Warnings and hints\n").nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let mut names: Vec<_> = rows.map(|row| row.split('`').next().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, WARNINGS);
    }
}
