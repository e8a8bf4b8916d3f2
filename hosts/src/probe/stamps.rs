//! A UDP socket with kernel stamps (CLOCK_REALTIME) of sent and received packets. No other
//! module reads such stamps.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::sockopt::Timestamping;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, TimestampingFlag, recvmsg, setsockopt,
};
use nix::sys::time::TimeSpec;

use super::clock::HostClock;

/// The most packets with outstanding stamps; beyond this the driver is taken to make none.
const OUTSTANDING: usize = 256;

/// A non-blocking socket. `M` identifies the caller's packets.
#[derive(Debug)]
pub(super) struct Stamped<M> {
    socket: UdpSocket,
    clock: HostClock,
    /// The kernel's number of the next packet.
    next: u32,
    sent: VecDeque<Sent<M>>,
}

#[derive(Debug)]
struct Sent<M> {
    id: u32,
    mark: M,
    /// The machine's CLOCK_REALTIME before sending.
    before: u64,
}

/// A received packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    /// The length in bytes, which exceeds the buffer if the packet was cut.
    pub length: usize,
    /// The sender; `None` if the socket is connected.
    pub from: Option<SocketAddr>,
    /// The kernel's stamp.
    pub stamp: Option<u64>,
    /// The ticks right after receiving.
    pub tick: u64,
}

impl<M> Stamped<M> {
    /// Enables stamps for packets that `socket` sends and receives.
    pub fn new(socket: UdpSocket, clock: HostClock) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let mut stamped = Self { socket, clock, next: 0, sent: VecDeque::new() };
        stamped.renumber()?;
        Ok(stamped)
    }

    /// Restarts the kernel's numbering at 0, because it may have counted a packet that was not
    /// sent.
    fn renumber(&mut self) -> io::Result<()> {
        let flags = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
        setsockopt(&self.socket, Timestamping, &flags)?;
        setsockopt(
            &self.socket,
            Timestamping,
            &(flags | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID),
        )?;
        self.next = 0;
        self.sent.clear();
        Ok(())
    }

    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Sends a packet to `to`, or to the connected peer.
    pub fn send(&mut self, packet: &[u8], to: Option<SocketAddr>, mark: M) -> io::Result<()> {
        let before = ppt_now::realtime();
        let sent = match to {
            Some(to) => self.socket.send_to(packet, to),
            None => self.socket.send(packet),
        };
        if let Err(error) = sent {
            self.renumber()?;
            return Err(error);
        }
        if self.sent.len() == OUTSTANDING {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { id: self.next, mark, before });
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    /// The next packet, if one has arrived.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut control = nix::cmsg_space!([u8; 64], [u8; 64]);
        let mut parts = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        let fd = self.socket.as_raw_fd();
        let message = match recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), flags) {
            Err(Errno::EAGAIN) => return Ok(None),
            message => message?,
        };
        let tick = self.clock.ticks();
        let stamp = message.cmsgs()?.find_map(|owned| match owned {
            ControlMessageOwned::ScmTimestampsns(scm_timestampsns) => {
                nanoseconds(scm_timestampsns.system)
            }
            _ => None,
        });
        let from = message.address.as_ref().and_then(address);
        let stamp = stamp.map(|stamp| self.clock.stamp(stamp));
        Ok(Some(Received { length: message.bytes, from, stamp, tick }))
    }

    /// Passes on the stamps of sent packets.
    pub fn left(&mut self, mut each: impl FnMut(M, u64)) -> io::Result<()> {
        loop {
            let mut control = nix::cmsg_space!([u8; 64], [u8; 64]);
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_ERRQUEUE;
            let fd = self.socket.as_raw_fd();
            let message = match recvmsg::<SockaddrStorage>(fd, &mut [], Some(&mut control), flags) {
                Err(Errno::EAGAIN) => return Ok(()),
                message => message?,
            };
            let (mut stamp, mut id) = (None, None);
            for cmsg in message.cmsgs()? {
                match cmsg {
                    ControlMessageOwned::ScmTimestampsns(scm_timestampsns) => {
                        stamp = nanoseconds(scm_timestampsns.system);
                    }
                    ControlMessageOwned::Ipv4RecvErr(ipv4_recv_err, _) => {
                        id = Some(ipv4_recv_err.ee_data);
                    }
                    ControlMessageOwned::Ipv6RecvErr(ipv6_recv_err, _) => {
                        id = Some(ipv6_recv_err.ee_data);
                    }
                    _ => {}
                }
            }
            let (Some(stamp), Some(id)) = (stamp, id) else { continue };
            let Some(at) = self.sent.iter().position(|sent| sent.id == id) else { continue };
            let Some(sent) = self.sent.remove(at) else { continue };
            // A stamp of an earlier packet, if the kernel's numbering differs from the expected
            // one.
            if stamp < sent.before {
                self.renumber()?;
                return Ok(());
            }
            each(sent.mark, self.clock.stamp(stamp));
        }
    }
}

impl<M> AsFd for Stamped<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn nanoseconds(time: TimeSpec) -> Option<u64> {
    let (seconds, rest) = (u64::try_from(time.tv_sec()).ok()?, u64::try_from(time.tv_nsec()).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(rest).filter(|&number| number > 0)
}

fn address(from: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = from.as_sockaddr_in().map(|sockaddr_in| SocketAddr::V4((*sockaddr_in).into()));
    v4.or_else(|| from.as_sockaddr_in6().map(|in6| SocketAddr::V6((*in6).into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(address: &str) -> Option<(Stamped<u8>, Stamped<u8>)> {
        let receiver = UdpSocket::bind(address).ok()?;
        let sender = UdpSocket::bind(address).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let stamped = |socket| Stamped::new(socket, HostClock::default()).unwrap();
        Some((stamped(sender), stamped(receiver)))
    }

    fn wait(socket: &UdpSocket) {
        let mut fds = [rustix::event::PollFd::new(socket, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, None).unwrap();
    }

    /// Waits until the kernel stamps arrivals: it begins a while after the first socket of the machine
    /// has enabled stamps.
    fn until_it_stamps(sender: &mut Stamped<u8>, receiver: &mut Stamped<u8>) {
        loop {
            sender.send(b"it", None, 0).unwrap();
            sender.left(|_, _| ()).unwrap();
            wait(receiver.socket());
            if receiver
                .receive(&mut [0; 16])
                .unwrap()
                .is_some_and(|receive| receive.stamp.is_some())
            {
                return;
            }
        }
    }

    /// The stamps of sending and of arrival lie between two readings of the clock.
    #[test]
    fn stamps_are_in_the_order_of_things() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Some((mut sender, mut receiver)) = pair(address) else {
                eprintln!("no {address}: left out");
                continue;
            };
            until_it_stamps(&mut sender, &mut receiver);
            let (mut left, mut stamped) = (Vec::new(), 0);
            for mark in 0..100 {
                let before = ppt_now::realtime();
                sender.send(b"it", None, mark).unwrap();
                while left.len() <= usize::from(mark) {
                    sender.left(|mark, stamp| left.push((mark, stamp))).unwrap();
                }
                let (found, sent) = left[usize::from(mark)];
                wait(receiver.socket());
                let mut buffer = [0; 16];
                let got = receiver.receive(&mut buffer).unwrap().unwrap();
                let after = ppt_now::realtime();
                assert_eq!((found, got.length, &buffer[..2]), (mark, 2, &b"it"[..]));
                assert_eq!(got.from, Some(sender.socket().local_addr().unwrap()));
                // One CPU may start to stamp later than the other.
                let Some(came) = got.stamp else { continue };
                stamped += 1;
                let order = [before, sent, came, after];
                assert!(order.is_sorted(), "{order:?}");
            }
            assert!(stamped > 0, "none of 100 has a stamp");
            assert!(receiver.receive(&mut [0; 16]).unwrap().is_none());
        }
    }

    /// The kernel may have numbered a packet that it failed to send: no other packet gets its
    /// stamp.
    #[test]
    fn a_packet_that_is_refused_spoils_no_stamps() {
        let (mut sender, receiver) = pair("127.0.0.1:0").unwrap();
        let mut marks = Vec::new();
        for mark in 0..20 {
            if mark % 3 == 1 {
                sender.send(&[0; 70_000], None, 100).unwrap_err();
            }
            let before = ppt_now::realtime();
            sender.send(b"it", None, mark).unwrap();
            while marks.last() != Some(&mark) {
                sender
                    .left(|mark, stamp| {
                        assert!(stamp >= before, "{mark}");
                        marks.push(mark);
                    })
                    .unwrap();
            }
        }
        assert_eq!(marks, (0..20).collect::<Vec<_>>());
        drop(receiver);
    }

    #[test]
    fn a_packet_too_long_shows_its_length() {
        let (mut sender, mut receiver) = pair("127.0.0.1:0").unwrap();
        sender.send(&[7; 1000], None, 0).unwrap();
        wait(receiver.socket());
        let got = receiver.receive(&mut [0; 16]).unwrap().unwrap();
        assert_eq!(got.length, 1000);
    }
}
