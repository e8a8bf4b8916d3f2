//! The form of the text of a mistake. A message states the mistake, the label describes the span,
//! and the help states the remedy.

use std::fmt::{self, Display};

use ppt_text::escaped;

use crate::schema::MAX_NAME_BYTES;

/// The text of one mistake.
pub(crate) struct Wording {
    pub message: String,
    pub label: String,
    pub help: Option<String>,
}

pub(crate) fn say(message: impl Into<String>, label: impl Into<String>) -> Wording {
    Wording { message: message.into(), label: label.into(), help: None }
}

impl Wording {
    pub fn help(self, help: impl Into<String>) -> Wording {
        Wording { help: Some(help.into()), ..self }
    }

    pub fn meant(self, suggestion: Option<&str>, otherwise: impl Into<String>) -> Wording {
        match suggestion {
            Some(word) => self.help(format!("did you mean `{word}`?")),
            None => self.help(otherwise),
        }
    }

    pub fn other_name(self, name: &str) -> Wording {
        self.help(format!("choose another name, such as `{name}_`"))
    }
}

/// Text from a file in a message, cut and made printable.
pub(crate) struct Short<'a>(pub &'a str);

impl Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut: String = self.0.chars().take(MAX_NAME_BYTES).collect();
        let more = if cut.len() < self.0.len() { "…" } else { "" };
        write!(f, "{}{more}", escaped(&cut))
    }
}
