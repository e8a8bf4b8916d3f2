//! Texts with placeholders: `--size={size}`. They are filled in after a command has been split into
//! words, so no value can become two words.

use std::collections::BTreeMap;

use ppt_text::nearest;

use super::error::Mistake;

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Name(String),
}

/// The value of each placeholder; None if it exists but its value is not known yet.
pub(super) type PlaceholderValues = BTreeMap<String, Option<String>>;

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, Mistake> {
        if text.contains('\0') {
            return Err(Mistake::Nul);
        }
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let bracket = if rest[at..].starts_with('{') { '{' } else { '}' };
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix(bracket) {
                plain.push(bracket);
                rest = behind;
                continue;
            }
            let end = rest
                .find(['{', '}'])
                .filter(|index| bracket == '{' && rest[*index..].starts_with('}'));
            let Some(end) = end else { return Err(Mistake::Bracket { bracket }) };
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::Name(rest[..end].to_owned()));
            rest = &rest[end + 1..];
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Self(pieces))
    }

    pub(super) fn fill(&self, values: &PlaceholderValues) -> Result<String, Mistake> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Name(name) => match values.get(name) {
                    Some(Some(value)) => filled.push_str(value),
                    Some(None) => return Err(unknown_of(name)),
                    None => {
                        let available = || values.keys().map(String::as_str);
                        return Err(Mistake::Placeholder {
                            name: name.clone(),
                            nearest: nearest(name, available()).map(str::to_owned),
                            available: available().map(|text| format!("{{{text}}}")).collect(),
                        });
                    }
                },
            }
        }
        Ok(filled)
    }
}

fn unknown_of(name: &str) -> Mistake {
    match name.strip_suffix(".addr") {
        Some(host) => Mistake::NoAddress { host: host.to_owned() },
        None => {
            let host = name.strip_suffix(".dir").unwrap_or(name).to_owned();
            Mistake::NoFolder { host }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, String> {
        let some = |text: &str| Some(text.to_owned());
        let values = [("size", some("48 $(x)")), ("a.addr", some("10.77.0.1")), ("b.addr", None)];
        let values = values.map(|(name, text)| (name.to_owned(), text)).into();
        Template::parse(text)
            .and_then(|template| template.fill(&values))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn placeholders_are_filled_in() {
        assert_eq!(filled("--to={a.addr}:{size}"), Ok("--to=10.77.0.1:48 $(x)".to_owned()));
        assert_eq!(filled("{{size}} }}{{"), Ok("{size} }{".to_owned()));
        assert_eq!(filled(""), Ok(String::new()));
    }

    #[test]
    fn an_unknown_placeholder_is_a_mistake() {
        let mistake = |text: &str| filled(text).unwrap_err();
        assert_eq!(
            mistake("{sise}"),
            "nothing fills in `{sise}` (did you mean `size`?); there are: {a.addr}, {b.addr}, {size}"
        );
        assert!(mistake("{b.addr}").starts_with("the address of `b` is not known: give it"));
        for text in ["{size", "size}", "{a{size}", "}x{size}"] {
            assert!(mistake(text).contains("if you mean the character"), "{text}");
        }
        assert!(mistake("a\0b").contains("NUL"));
    }
}
