//! HTML from untrusted text.

use std::fmt::Write;

use ppt_text::escaped;
use serde_json::Value;

/// Maximum number of characters of a text on a page.
const MAX_CHARS: usize = 200;

/// Escapes text for HTML or SVG, between tags or in a quoted attribute: no markup, no characters that
/// change the direction of writing, and not too long.
pub fn escape_html(text: &str) -> String {
    markup(text, MAX_CHARS)
}

/// Like [`escape_html`], for longer texts.
pub fn escape_long_html(text: &str) -> String {
    markup(text, 10 * MAX_CHARS)
}

fn markup(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, char) in escaped(text).chars().enumerate() {
        if index == most {
            out.push('…');
            break;
        }
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            char => out.push(char),
        }
    }
    out
}

/// JSON for a script: ends no element and begins no comment. Texts are escaped like those on the page,
/// because the script shows them.
pub fn json(value: &serde_json::Value) -> String {
    let text = shown(value).to_string();
    // These characters occur only within JSON strings.
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Returns the value with escaped texts.
fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(escaped(text)),
        Value::Array(values) => values.iter().map(shown).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (escaped(name), shown(value))).collect()
        }
        other => other.clone(),
    }
}

/// A table; its first columns contain text, the others numbers.
pub struct HtmlTable {
    head: String,
    rows: String,
    words: usize,
}

impl HtmlTable {
    /// An empty table, the first `words` columns of which contain text.
    pub fn new(columns: &[&str], words: usize) -> HtmlTable {
        let mut table = HtmlTable { head: String::new(), rows: String::new(), words };
        table.head = table.cells("th", columns.iter().map(|name| escape_html(name)));
        table
    }

    /// Adds a row of plain text.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.html_row("", cells.into_iter().map(|cell| escape_html(&cell)));
    }

    /// Adds a row whose cells are HTML; `attributes` are those of the row.
    pub fn html_row(&mut self, attributes: &str, cells: impl IntoIterator<Item = String>) {
        let cells = self.cells("td", cells.into_iter());
        let _ = writeln!(self.rows, "<tr{attributes}>{cells}");
    }

    fn cells(&self, tag: &str, cells: impl Iterator<Item = String>) -> String {
        let mut out = String::new();
        for (index, cell) in cells.enumerate() {
            let class = if index < self.words { " class=w" } else { "" };
            let _ = write!(out, "<{tag}{class}>{cell}");
        }
        out
    }

    /// Returns the `<table>` element.
    pub fn html(&self, class: &str) -> String {
        let HtmlTable { head, rows, .. } = self;
        format!(
            "<div class=wide><table class=\"{class}\"><thead><tr>{head}<tbody>\n{rows}</table></div>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        assert_eq!(escape_html("</script><b a='\"'>&\u{202e}\u{1b}"), {
            "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;\\xe2\\x80\\xae\\x1b"
        });
        assert_eq!(escape_html(&"é".repeat(300)).chars().count(), MAX_CHARS + 1);
        let data = json(&serde_json::json!({ "</script>": "<!--<script>&" }));
        assert!(!data.contains(['<', '>', '&']), "{data}");
        let back: serde_json::Value = serde_json::from_str(&data).unwrap();
        assert_eq!(back["</script>"], "<!--<script>&");
    }
}
