//! Packets between hosts: what somebody sends who has the key, and what somebody who has not.

use ppt_hosts::probe::{PacketRefusal, ProbeQuestion, ProbeReply, SharedKey};

/// A packet is refused, or read; what was read is read again from the packet that says it.
pub(crate) fn packet(input: &[u8]) {
    let Some(key) = SharedKey::new(b"what only they know") else { return };
    assert_eq!(ProbeQuestion::open(input, &key), Err(PacketRefusal::Foreign));
    let signed = [input, &key.tag(input)].concat();
    if let Ok((head, question)) = ProbeQuestion::open(&signed, &key) {
        let again = question.seal(head, &key);
        assert_eq!(
            (again.len(), ProbeQuestion::open(&again, &key)),
            (signed.len(), Ok((head, question)))
        );
    }
    if let Ok((head, answer)) = ProbeReply::open(&signed, &key) {
        let again = answer.seal(head, signed.len().max(256), &key);
        assert_eq!(ProbeReply::open(&again, &key), Ok((head, answer)));
    }
}
