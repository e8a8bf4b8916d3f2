//! The Common Trace Format, which babeltrace reads.

use super::{all, check_values, expected_missing, frames, id, missing};

#[test]
fn babeltrace_finds_what_the_captures_hold() {
    for captures in all() {
        let Some((events, discarded)) = captures.by_others("ctf") else { return };
        let mut rest = frames(&captures);
        for event in events.iter().filter(|event| event.name != "missing frames") {
            let (buffer, frame, time) = rest.remove(&id(&event.args)).expect("a frame, once");
            let name =
                frame.map_or("unknown frame".to_owned(), |frame| format!("{buffer}:{frame}"));
            assert_eq!((&event.name, event.ts), (&name, time), "{event:?}");
        }
        assert!(rest.is_empty(), "not in the trace: {rest:?}");
        check_values(&captures, &events, false);
        let mut expected = expected_missing(&captures);
        assert_eq!(missing(&events), expected);
        // Frames of these causes are not lost.
        for cause in ["unattended", "left_out", "absent"] {
            expected.remove(cause);
        }
        assert_eq!(discarded, expected.values().sum::<i64>(), "what the reader itself says");
    }
}
