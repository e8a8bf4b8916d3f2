//! Malicious packets, and mistakes.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use ppt_clock::sync::Host;
use ppt_hosts::probe::{
    Head, HostClock, MAX_PACKET, MAX_PEERS, MeasureError, PeerIdentity, ProbeEvent, ProbeQuestion,
    ProbeReply, ProbeServer, ProbedHost, ServeError, ServerEvent, SharedKey, VERSION,
};

use crate::relay::{More, Relay, RelayDirection};
use crate::{Serving, ask, ask_in_vain, asked, identity, key};

/// An attacker's socket.
struct Peer {
    socket: UdpSocket,
    conversation: u64,
    token: u64,
    /// Bytes sent and received.
    sent: usize,
    came: usize,
}

impl Peer {
    /// Sends a hello.
    fn new(serving: &Serving, conversation: u64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(serving.address).unwrap();
        let mut peer = Self { socket, conversation, token: 0, sent: 0, came: 0 };
        let hello = peer.hello(1);
        peer.send(&hello);
        let (head, answer) = peer.answer();
        assert_eq!(head, peer.head(1));
        let ProbeReply::Hello { token, .. } = answer else { panic!("{answer:?}") };
        peer.token = token;
        peer
    }

    fn head(&self, number: u64) -> Head {
        Head { conversation: self.conversation, number }
    }

    fn hello(&self, number: u64) -> Vec<u8> {
        let host = Host::new("peer", "its boot", 1).unwrap();
        let me = PeerIdentity { host, program: "0".into() };
        ProbeQuestion::Hello(me).seal(self.head(number), &key())
    }

    fn probe(&self, number: u64) -> Vec<u8> {
        ProbeQuestion::Probe { token: self.token }.seal(self.head(number), &key())
    }

    fn send(&mut self, packet: &[u8]) {
        self.sent += self.socket.send(packet).unwrap();
    }

    /// Waits for an answer.
    fn answer(&mut self) -> (Head, ProbeReply) {
        let mut buffer = [0; 2048];
        let length = self.socket.recv(&mut buffer).unwrap();
        self.came += length;
        ProbeReply::open(&buffer[..length], &key()).unwrap()
    }

    /// Sends a question that is answered, which proves that all earlier ones were not.
    fn nothing_but(&mut self, number: u64) {
        let probe = self.probe(number);
        self.send(&probe);
        let (head, answer) = self.answer();
        assert_eq!(head, self.head(number));
        assert!(matches!(answer, ProbeReply::Probe(_)), "{answer:?}");
    }
}

#[test]
fn what_is_not_authentic_gets_no_answer() {
    let serving = Serving::new("b");
    let mut peer = Peer::new(&serving, 1);
    let genuine = peer.probe(2);
    let mut foreign = 0;
    // Each bit of a question, each length, other keys, zeros, and packets that are too long.
    let flipped = (0..genuine.len() * 8).map(|bit| {
        let mut packet = genuine.clone();
        packet[bit / 8] ^= 1 << (bit % 8);
        packet
    });
    let cut = (0..genuine.len()).map(|index| genuine[..index].to_vec());
    let other = SharedKey::new(b"what others know ...").unwrap();
    let signed = ProbeQuestion::Probe { token: peer.token }.seal(peer.head(3), &other);
    let long = [&genuine[..], &[0; 1300]].concat();
    let odd = [vec![0; genuine.len()], vec![255; MAX_PACKET], signed, long];
    for packet in flipped.chain(cut).chain(odd).collect::<Vec<_>>() {
        peer.send(&packet);
        foreign += 1;
        // No more than the socket buffer holds.
        if foreign % 50 == 0 {
            peer.nothing_but(100 + foreign);
        }
    }
    peer.nothing_but(5000);
    assert!(peer.came <= peer.sent);
    let counts = serving.finish();
    assert_eq!((counts.foreign, counts.replayed, counts.unknown), (foreign, 0, 0));
}

#[test]
fn a_question_is_answered_once_whoever_sends_it() {
    let serving = Serving::new("b");
    let mut peer = Peer::new(&serving, 1);
    let numbers: Vec<u64> = (2..100).collect();
    // In any order.
    let packets: Vec<_> = numbers.iter().rev().map(|&number| peer.probe(number)).collect();
    for packet in &packets {
        peer.send(packet);
        peer.answer();
    }
    let hello = peer.hello(1);
    for packet in packets.iter().chain([&hello]) {
        peer.send(packet);
    }
    // Replayed from another address.
    let thief = UdpSocket::bind("127.0.0.1:0").unwrap();
    let packet = peer.probe(200);
    thief.send_to(&packet, serving.address).unwrap();
    peer.nothing_but(300);
    // So old that a replay cannot be ruled out.
    let packet = peer.probe(101);
    peer.send(&packet);
    // From an earlier conversation, and with a guessed token.
    let packet =
        ProbeQuestion::Probe { token: 1 }.seal(Head { conversation: 2, number: 1 }, &key());
    peer.send(&packet);
    let packet = ProbeQuestion::Clocks { token: peer.token ^ 1 }.seal(peer.head(301), &key());
    peer.send(&packet);
    peer.nothing_but(302);
    thief.set_nonblocking(true).unwrap();
    assert!(thief.recv(&mut [0; 16]).is_err(), "an answer to a thief");
    assert!(peer.came <= peer.sent);
    let counts = serving.finish();
    assert_eq!((counts.replayed, counts.late, counts.unknown), (99, 1, 3));
    assert_eq!((counts.answered, counts.foreign), (1 + 98 + 2, 0));
}

/// Replayed hellos fill the table; live conversations stay.
#[test]
fn recordings_displace_no_host() {
    let serving = Serving::new("b");
    let mut first = Peer::new(&serving, 1);
    first.nothing_but(2);
    for conversation in 10..10 + 2 * MAX_PEERS as u64 {
        Peer::new(&serving, conversation);
    }
    first.nothing_but(3);
    let mut last = Peer::new(&serving, 2);
    last.nothing_but(2);
    assert_eq!(serving.finish().crowded, 0);
}

/// The tag and the version field are at the same place in every version.
#[test]
fn another_version_is_named() {
    let other = |packet: &[u8]| {
        let mut packet = packet.to_vec();
        packet[4] = VERSION + 6;
        let end = packet.len() - 16;
        let tag = key().tag(&packet[..end]);
        packet[end..].copy_from_slice(&tag);
        packet
    };
    // The answering host receives another version, and answers with its own.
    let serving = Serving::new("b");
    let mut peer = Peer::new(&serving, 1);
    peer.conversation = 2;
    let question = other(&peer.hello(1));
    peer.send(&question);
    assert_eq!(peer.answer(), (peer.head(1), ProbeReply::OtherVersion));
    // It is reported once, and answered once per question.
    peer.send(&question);
    let question = other(&peer.hello(2));
    peer.send(&question);
    assert_eq!(peer.answer(), (peer.head(2), ProbeReply::OtherVersion));
    assert!(peer.came <= peer.sent);
    let events: Vec<_> = serving.events.try_iter().collect();
    let address = peer.socket.local_addr().unwrap();
    let version = VERSION + 6;
    assert_eq!(events[1..], [ServerEvent::OtherVersion { address, version }]);
    let counts = serving.finish();
    assert_eq!((counts.other_version, counts.replayed), (3, 1));

    // The asking host receives another version.
    let newer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = newer.local_addr().unwrap();
    let answering = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        let (length, from) = newer.recv_from(&mut buffer).unwrap();
        let (head, _) = ProbeQuestion::open(&buffer[..length], &key()).unwrap();
        let answer = ProbeReply::OtherVersion.seal(head, length, &key());
        newer.send_to(&other(&answer), from).unwrap();
    });
    let error = ask_in_vain(&[asked(address)], "a", &key(), Duration::from_secs(600));
    answering.join().unwrap();
    let said =
        format!("{address} speaks version 7 of the protocol, and this program version {VERSION}");
    assert_eq!(error.to_string(), said);
}

#[test]
fn who_does_not_answer_is_named() {
    let serving = Serving::new("b");
    let patience = Duration::from_millis(300);
    let hosts = [asked(serving.address)];
    let other = SharedKey::new(b"what others know ...").unwrap();
    let error = ask_in_vain(&hosts, "a", &other, patience).to_string();
    let why = "does not answer: possible reasons are the address, a firewall or another key";
    assert_eq!(error, format!("{0} ({0}) {why}", serving.address));
    // One reachable address of two is enough.
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let hosts = [asked(serving.address), asked(nobody.local_addr().unwrap())];
    let error = ask_in_vain(&hosts, "a", &key(), patience);
    let address = nobody.local_addr().unwrap();
    assert!(matches!(error, MeasureError::NoAnswer { address: it, .. } if it == address));
    // The system there reports that no program listens.
    let patience = Duration::from_secs(2);
    drop(nobody);
    let error = ask_in_vain(&hosts[1..], "a", &key(), patience).to_string();
    assert!(error.ends_with("does not answer: no program listens there"), "{error}");
    assert!(serving.finish().foreign > 0);
}

#[test]
fn a_host_is_not_asked_for_itself() {
    let serving = Serving::new("a");
    let patience = Duration::from_secs(600);
    let error = ask_in_vain(&[asked(serving.address)], "a", &key(), patience).to_string();
    let said = format!("{} is this host itself (\"a\", and the same boot)", serving.address);
    assert_eq!(error, said);
}

/// Two boots with the same name are two hosts, which cannot be distinguished by name.
#[test]
fn two_hosts_of_one_name_are_refused() {
    let clock = HostClock::default();
    let mut other = identity("b", &clock);
    other.host = Host::new("b", "another boot", 1).unwrap();
    let first = Serving::new("b");
    let mut second = ProbeServer::bind(([127, 0, 0, 1], 0).into(), key(), other, clock).unwrap();
    let address = second.address().unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| second.run(&stop, &mut |_| ()).unwrap());
        let hosts = [asked(first.address), asked(address)];
        let error = ask_in_vain(&hosts, "a", &key(), Duration::from_secs(600));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(error.to_string().starts_with("two hosts call themselves \"b\", "), "{error}");
    });
}

#[test]
fn a_port_has_one_server() {
    let serving = Serving::new("b");
    let clock = HostClock::default();
    let again = ProbeServer::bind(serving.address, key(), identity("c", &clock), clock);
    assert!(matches!(again, Err(ServeError::InUse(it)) if it == serving.address));
    let clock = HostClock::default();
    let foreign: SocketAddr = "192.0.2.1:0".parse().unwrap();
    let error = ProbeServer::bind(foreign, key(), identity("c", &clock), clock).unwrap_err();
    assert!(error.to_string().starts_with("cannot listen on 192.0.2.1:0: "), "{error}");
}

/// Effects of a bad network are counted, and damage no reading.
#[test]
fn losses_are_counted_each_way() {
    let serving = Serving::new("b");
    let way = |loss, harm| RelayDirection {
        base: Duration::from_micros(100),
        more: More::None,
        loss,
        harm,
    };
    let relay = Relay::new(serving.address, way(0.3, 0.05), way(0.1, 0.1));
    let (lines, counts, _) = ask(&[asked(relay.address)], 100.0, 200);
    let counts = counts[0];
    assert!(counts.complete >= 200, "{counts:?}");
    assert_eq!(lines.readings().probes().len() as u64, counts.complete);
    assert!(counts.lost_there > 0 && counts.unanswered > counts.lost_there / 2, "{counts:?}");
    assert!(counts.foreign > 0 && counts.replayed > 0, "{counts:?}");
    let asked = counts.answered + counts.unanswered;
    assert_eq!(asked, counts.asked, "{counts:?}");
    let came = serving.finish();
    assert!(came.answered >= counts.answered, "{came:?} {counts:?}");
    assert!(came.foreign > 0 && came.replayed > 0, "{came:?}");
    assert_eq!((came.unknown, came.crowded), (0, 0));
}

/// The second address is the one that answers, and it takes longer than a hello waits for the next.
#[test]
fn a_far_host_is_reached_by_one_of_its_addresses() {
    let serving = Serving::new("b");
    let base = Duration::from_millis(300);
    let way = RelayDirection { base, more: More::None, loss: 0.0, harm: 0.0 };
    let relay = Relay::new(serving.address, way, way);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let host = ProbedHost { name: "b".to_owned(), addresses: vec![nobody, relay.address] };
    let (lines, counts, events) = ask(&[host], 20.0, 10);
    let ProbeEvent::Answered { place: 0, address, identity } = &events[0] else {
        panic!("{events:?}")
    };
    assert_eq!((*address, identity.host.name()), (relay.address, "b"));
    assert!(counts[0].least_ns.is_some_and(|it| it >= 600_000_000), "{counts:?}");
    assert!(lines.readings().probes().len() >= 10);
}
