//! `.sync` files: readings of clocks, which another host may have sent.

use ppt_clock::sync::{HEADER, Readings, Record};

/// A file is refused, or is readings; what a line says reads back.
pub(crate) fn sync(input: &[u8]) {
    let mut readings = Readings::default();
    let _ = readings.read(input);
    let whole = [HEADER.as_bytes(), b"\n", input, b"\n"].concat();
    let _ = readings.read(&whole);
    for line in input.split(|&byte| byte == b'\n') {
        if let Ok(Some(record)) = Record::parse(line) {
            let again = Record::parse(record.to_string().as_bytes());
            assert_eq!(again, Ok(Some(record)));
        }
    }
}
