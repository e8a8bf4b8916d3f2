//! The poll loop: what a capture waits for.

use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::control_socket::ControlSocket;
use super::wait_result::WaitResult;
use super::{Follow, Live, Member};
use crate::failure::{Failure, failed};

impl Live<'_> {
    /// Waits until something is ready, here or in `others`.
    pub(crate) fn wait(&self, others: &[BorrowedFd]) -> Result<WaitResult, Failure> {
        let pidfds: Vec<_> = self.members.iter().map(|member| member.session.pidfd()).collect();
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = vec![watch(self.listener.wake()), watch(self.ticks.as_fd())];
        let undersized = if self.grows() { PollFlags::POLLIN } else { PollFlags::empty() };
        fds.push(PollFd::new(self.listener.undersized_fd(), undersized));
        fds.extend(self.deadline.as_ref().map(|deadline| watch(deadline.as_fd())));
        let first_other = fds.len();
        fds.extend(others.iter().copied().map(watch));
        let hellos = fds.len();
        fds.extend(self.follow.iter().flat_map(Follow::fds).map(watch));
        let hellos = fds.len() - hellos;
        fds.extend(pidfds.iter().flatten().copied().map(watch));
        let clients = fds.len();
        fds.extend(self.control_socket.iter().flat_map(ControlSocket::fds).map(watch));
        let clients = fds.len() - clients;
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(failed("wait")(error)),
        }
        let mut ready = fds.iter().map(|fd| fd.any().unwrap_or(false));
        let mut next = || ready.next().unwrap_or(false);
        let (listener, tick, undersized) = (next(), next(), next());
        let deadline = first_other > 3 && next();
        let others = others.iter().map(|_| next()).collect();
        let hello = (0..hellos).fold(false, |hello, _| hello | next());
        // Without a pidfd, the regular checks find the end.
        let ended = |(member, pidfd): (&Member, &Option<_>)| {
            (pidfd.is_some() && next()).then_some(member.feed)
        };
        let ended = self.members.iter().zip(&pidfds).filter_map(ended).collect();
        let request = (0..clients).fold(false, |request, _| request | next());
        Ok(WaitResult { listener, undersized, tick, deadline, request, hello, ended, others })
    }
}
