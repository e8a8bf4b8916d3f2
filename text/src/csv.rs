//! Quoting of comma-separated values (RFC 4180).

/// Appends `cell`, between quotes if it contains a comma, a quote or a line end.
pub fn csv_cell(cell: &[u8], out: &mut Vec<u8>) {
    if !cell.iter().any(|byte| b",\"\r\n".contains(byte)) {
        out.extend_from_slice(cell);
        return;
    }
    out.push(b'"');
    for part in cell.split_inclusive(|&byte| byte == b'"') {
        out.extend_from_slice(part);
        if part.ends_with(b"\"") {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_quoted_is() {
        let written = |cell: &str| {
            let mut out = Vec::new();
            csv_cell(cell.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(["", "a", "a,b", "a\nb"].map(written), ["", "a", "\"a,b\"", "\"a\nb\""]);
        assert_eq!(written("\"q\" \""), r#""""q"" """"#);
    }
}
