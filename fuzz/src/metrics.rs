//! Metrics: the request of any client that reaches the port, and the names that a target gives.

use std::collections::BTreeSet;
use std::sync::Arc;

use ppt_listener::{FeedTally, Process, SessionTally, Source};
use ppt_metrics::{Series, SessionFacts, read_request};

/// Most bytes of a target's name, as the kernel keeps it.
const COMM: usize = 15;

/// A request is answered by its beginning, as soon as that says enough, and this machine alone is answered
/// less than everybody would be.
pub(crate) fn request(input: &[u8]) {
    let whole = read_request(input, false);
    for end in 0..input.len().min(256) {
        if let Some(early) = read_request(&input[..end], false) {
            assert_eq!(Some(early), whole, "it had been answered after {end} bytes");
        }
    }
    match read_request(input, true) {
        Some(Ok(request)) => assert_eq!(whole, Some(Ok(request))),
        other => assert_eq!(other.is_some(), whole.is_some()),
    }
}

/// A target's name and its schema become a text in which each line is a sample, and no two are the same.
pub(crate) fn series(input: &[u8]) {
    let (comm, schema) = input.split_at(input.len().min(COMM));
    let comm = String::from_utf8_lossy(comm).into_owned();
    let buffer = schema.split(|&byte| byte == b'"').nth(5).unwrap_or_default();
    let source = Source {
        schema_json: schema.to_vec(),
        buffer: String::from_utf8_lossy(buffer).chars().take(64).collect(),
        process: Process { comm: comm.clone(), ..Process::default() },
        ..Source::default()
    };
    let facts = SessionFacts { host: comm, version: "0".to_owned(), began_ns: 1, is_flight: false };
    let feed = Arc::new(FeedTally::new(&source));
    feed.add([(0, 1), (1, u64::MAX), (2, 3)]);
    let session = SessionTally { drained: 1, waiting: 0, bytes: u64::MAX };
    let text = Series::new(facts).text(session, vec![feed.clone(), feed]);
    let (samples, end) = text.split_at(text.len() - "# EOF\n".len());
    assert_eq!(end, "# EOF\n");
    let mut seen = BTreeSet::new();
    for line in samples.lines() {
        if line.starts_with("# ") {
            continue;
        }
        let (series, value) = line.rsplit_once("} ").expect("labels and a value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(seen.insert(series), "twice: {line}");
        let name = series.split('{').next().unwrap_or_default();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        assert!(name.starts_with("ppt_") && name.bytes().all(fits), "{line}");
        let quotes = series.replace("\\\\", "").replace("\\\"", "").matches('"').count();
        assert_eq!(quotes % 2, 0, "{line}");
    }
}
