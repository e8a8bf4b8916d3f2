//! Mistakes in frames.

use crate::schema::{MAX_FIELDS, MAX_FRAME_BYTES, MAX_FRAMES};
use crate::wording::{Short, Wording, say};

/// A mistake in a frame.
#[derive(Debug, Clone)]
pub(crate) enum FrameMistake {
    EmptyFrame { name: String },
    TooManyFrames { count: usize },
    TooManyFields { name: String, count: usize },
    FrameTooLarge { name: String, bytes: u32, largest: String },
    LargeFrame { name: String, bytes: u32 },
    UnevenFrames { name: String, bytes: u32, largest: String, stride: u32, others: usize },
    TimelessFrame { name: String },
    ManyStamps { name: String, stamps: usize },
}

impl FrameMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            FrameMistake::EmptyFrame { .. } => "empty-frame",
            FrameMistake::TooManyFrames { .. } => "too-many-frames",
            FrameMistake::TooManyFields { .. } => "too-many-fields",
            FrameMistake::FrameTooLarge { .. } => "frame-too-large",
            FrameMistake::LargeFrame { .. } => "large-frame",
            FrameMistake::UnevenFrames { .. } => "uneven-frames",
            FrameMistake::TimelessFrame { .. } => "no-time",
            FrameMistake::ManyStamps { .. } => "many-stamps",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            FrameMistake::EmptyFrame { name } => {
                say(format!("the frame `{}` has no fields", Short(name)), "expected a field inside")
                    .help("a field looks like `int who;`")
            }
            FrameMistake::TooManyFrames { count } => say(
                format!("{count} frames; a buffer has at most {MAX_FRAMES}"),
                "the first one too many",
            ),
            FrameMistake::TooManyFields { name, count } => say(
                format!("the frame `{}` has {count} fields; at most {MAX_FIELDS}", Short(name)),
                "too many fields",
            ),
            FrameMistake::FrameTooLarge { name, bytes, largest } => say(
                format!("the frame `{}` has {bytes} bytes; at most {MAX_FRAME_BYTES}", Short(name)),
                "too large",
            )
            .help(format!("its largest field is {largest}")),
            FrameMistake::ManyStamps { name, stamps } => say(
                format!("the frame `{name}` is stamped {stamps} times"),
                "each stamp asks the system for the time, which costs more than the frame",
            )
            .help("`option time tsc;` reads the CPU's counter, at a third of the cost"),
            FrameMistake::LargeFrame { name, bytes } => say(
                format!("the frame `{}` has {bytes} bytes", Short(name)),
                "every write copies that many bytes",
            )
            .help("frames up to 512 bytes are usual; every slot of the ring has the largest size"),
            FrameMistake::UnevenFrames { name, bytes, largest, stride, others } => {
                let others = match others {
                    0 => String::new(),
                    1 => "; one more frame is small, too".to_owned(),
                    _ => format!("; {others} more frames are small, too"),
                };
                say(
                    format!(
                        "`{}` has {bytes} bytes in slots of {stride}, the size of `{}`{others}",
                        Short(name),
                        Short(largest)
                    ),
                    format!("leaves {} bytes of its slots unused", stride - bytes),
                )
                .help(format!(
                    "trim `{}`, or put it into a frame file, and so a buffer, of its own \
                     (`option allow \"uneven-frames\";` silences this)",
                    Short(largest)
                ))
            }
            FrameMistake::TimelessFrame { name } => say(
                format!("the frame `{}` has no time", Short(name)),
                "other frames of the buffer have one",
            )
            .help(
                "without a `time` field it cannot be placed among the frames of other threads \
                 (`option allow \"no-time\";` silences this)",
            ),
        }
    }
}
