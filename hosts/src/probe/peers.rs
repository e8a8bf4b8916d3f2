//! The asking hosts, as seen by the answering host.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::packet::EARLIER;
use super::window::{NumberState, Window};

/// The most conversations at a time.
pub const MAX_PEERS: usize = 64;
/// A conversation that is silent for this long makes room for others.
const IDLE_NS: u64 = 30_000_000_000;

/// Conversations, each with its window.
#[derive(Debug, Default)]
pub(super) struct Peers {
    all: HashMap<u64, Peer>,
}

/// One conversation.
#[derive(Debug)]
pub(super) struct Peer {
    address: SocketAddr,
    /// The token in the answer to its hello; only a host that received it can ask more.
    pub token: u64,
    window: Window,
    /// The host has returned the token, so it is not a replayed recording.
    alive: bool,
    /// The time of its last question.
    asked_ns: u64,
    /// Sending times of answers: their numbers and kernel stamps.
    left: [(u64, u64); EARLIER],
    /// The number of questions received.
    pub questions: u64,
}

/// Why a question is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// The packet was received before.
    Replayed,
    /// The packet is so late that a replay cannot be ruled out.
    Late,
    /// The packet belongs to an unknown conversation, or comes from another address.
    Unknown,
    /// There are too many conversations.
    Full,
}

impl Peers {
    /// Accepts question `number` of a possibly new conversation, with an unguessable token.
    pub fn greeted(
        &mut self,
        conversation: u64,
        number: u64,
        address: SocketAddr,
        now_ns: u64,
        token: impl FnOnce() -> u64,
    ) -> Result<&mut Peer, Unanswered> {
        if !self.all.contains_key(&conversation) {
            self.make_room(now_ns)?;
            let left = [(0, 0); EARLIER];
            let (window, alive, questions) = (Window::default(), false, 0);
            let token = token();
            let peer = Peer { address, token, window, alive, asked_ns: now_ns, left, questions };
            self.all.insert(conversation, peer);
        }
        self.take(conversation, number, address, now_ns)
    }

    /// Accepts question `number` of a known conversation from a host that has its token.
    pub fn asked(
        &mut self,
        conversation: u64,
        number: u64,
        token: u64,
        address: SocketAddr,
        now_ns: u64,
    ) -> Result<&mut Peer, Unanswered> {
        let peer = self.all.get_mut(&conversation).filter(|peer| peer.token == token);
        peer.ok_or(Unanswered::Unknown)?.alive = true;
        self.take(conversation, number, address, now_ns)
    }

    fn take(
        &mut self,
        conversation: u64,
        number: u64,
        address: SocketAddr,
        now_ns: u64,
    ) -> Result<&mut Peer, Unanswered> {
        let peer = self.all.get_mut(&conversation).filter(|peer| peer.address == address);
        let peer = peer.ok_or(Unanswered::Unknown)?;
        match peer.window.take(number) {
            NumberState::Replayed => return Err(Unanswered::Replayed),
            NumberState::Late => return Err(Unanswered::Late),
            NumberState::Fresh => {}
        }
        (peer.asked_ns, peer.questions) = (now_ns, peer.questions + 1);
        Ok(peer)
    }

    /// Records that the answer to `number` was sent.
    pub fn left(&mut self, conversation: u64, number: u64, stamp: u64) {
        if let Some(peer) = self.all.get_mut(&conversation) {
            peer.left.rotate_right(1);
            peer.left[0] = (number, stamp);
        }
    }

    /// Replayed recordings make room for live conversations, and silent hosts for asking ones.
    fn make_room(&mut self, now_ns: u64) -> Result<(), Unanswered> {
        if self.all.len() < MAX_PEERS {
            return Ok(());
        }
        let idle = |peer: &Peer| now_ns.saturating_sub(peer.asked_ns) > IDLE_NS;
        let least = self.all.iter().filter(|(_, peer)| !peer.alive || idle(peer));
        let least = least.min_by_key(|(_, peer)| (peer.alive, peer.asked_ns));
        let conversation = *least.ok_or(Unanswered::Full)?.0;
        self.all.remove(&conversation);
        Ok(())
    }
}

impl Peer {
    /// The sending times of the answers before `number`; 0 where unknown.
    pub fn earlier(&self, number: u64) -> [u64; EARLIER] {
        std::array::from_fn(|back| {
            let wanted = number.checked_sub(back as u64 + 1).filter(|&number| number > 0);
            let found = self.left.iter().find(|entry| Some(entry.0) == wanted);
            found.map_or(0, |found| found.1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn only_who_got_the_answer_asks_more() {
        let mut peers = Peers::default();
        assert_eq!(peers.asked(1, 1, 0, address(1), 0).unwrap_err(), Unanswered::Unknown);
        assert_eq!(peers.greeted(1, 1, address(1), 0, || 7).unwrap().token, 7);
        assert_eq!(peers.asked(1, 2, 8, address(1), 0).unwrap_err(), Unanswered::Unknown);
        assert_eq!(peers.asked(1, 2, 7, address(2), 0).unwrap_err(), Unanswered::Unknown);
        assert_eq!(peers.asked(1, 2, 7, address(1), 0).unwrap().questions, 2);
        assert_eq!(peers.asked(1, 2, 7, address(1), 0).unwrap_err(), Unanswered::Replayed);
        assert_eq!(peers.asked(1, 1000, 7, address(1), 0).unwrap().questions, 3);
        assert_eq!(peers.asked(1, 3, 7, address(1), 0).unwrap_err(), Unanswered::Late);
        // A repeated hello is a replay.
        assert_eq!(peers.greeted(1, 1000, address(1), 0, || 9).unwrap_err(), Unanswered::Replayed);
    }

    #[test]
    fn replayed_recordings_displace_no_live_conversation() {
        let mut peers = Peers::default();
        for conversation in 0..MAX_PEERS as u64 / 2 {
            peers.greeted(conversation, 1, address(1), 0, || 7).unwrap();
            peers.asked(conversation, 2, 7, address(1), 0).unwrap();
        }
        for conversation in 1000..2000 {
            peers.greeted(conversation, 1, address(2), 0, || 7).unwrap();
            assert!(peers.all.len() <= MAX_PEERS);
        }
        for conversation in 0..MAX_PEERS as u64 / 2 {
            peers.asked(conversation, 3, 7, address(1), 0).unwrap();
        }
        // While all conversations are live, no other host is admitted until one falls silent.
        for conversation in 2000..2000 + MAX_PEERS as u64 / 2 {
            peers.greeted(conversation, 1, address(3), 1, || 7).unwrap();
            peers.asked(conversation, 2, 7, address(3), 1).unwrap();
        }
        assert_eq!(peers.greeted(1, 1, address(1), 1, || 7).unwrap_err(), Unanswered::Replayed);
        assert_eq!(peers.greeted(5000, 1, address(4), 1, || 7).unwrap_err(), Unanswered::Full);
        peers.greeted(5000, 1, address(4), IDLE_NS + 1, || 7).unwrap();
    }

    #[test]
    fn an_answer_tells_when_those_before_it_left() {
        let mut peers = Peers::default();
        peers.greeted(1, 1, address(1), 0, || 7).unwrap();
        for number in [1, 2, 4, 5, 6] {
            peers.left(1, number, number * 100);
        }
        peers.left(2, 1, 5);
        let peer = peers.asked(1, 7, 7, address(1), 0).unwrap();
        assert_eq!(peer.earlier(7), [600, 500, 400, 0]);
        assert_eq!(peer.earlier(5), [400, 0, 200, 0]);
        assert_eq!(peer.earlier(1), [0; EARLIER]);
    }
}
