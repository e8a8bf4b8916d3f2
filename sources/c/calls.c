/* The functions that programs call instead of those of the C library, for connections and for all that
 * descriptors may be. While nobody is attached, each is one load (where `files` wants to know, too: two), one
 * branch and a jump.
 *
 * They hold no lock while they wait in the real function, so a thread may be cancelled there, or leave it
 * by longjmp(3). */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "connection.h"
#include "file.h"
#include "real.h"
#include "write.h"

#define PPT_EXPORT __attribute__((visibility("default")))
#define PPT_OFF (__builtin_expect(!ppt_is_on(), 1))
#define PPT_BOTH_OFF (__builtin_expect(!(ppt_is_on() | ppt_files_on()), 1))
/* Apart from the function that programs call, which then needs no stack. */
#define PPT_ON __attribute__((noinline))

/* `size` is the size of the caller's buffer. A call without a buffer reads neither bytes nor the end.
 * Reports of errors are not bytes of the connection. */
static ssize_t came(ppt_connection *c, ssize_t count, size_t size, int flags) {
    if (c && count >= 0 && size > 0 && !(flags & MSG_ERRQUEUE))
        ppt_came(c, (uint64_t)count, flags & MSG_PEEK);
    return count;
}

static ssize_t went(ppt_connection *c, uint64_t before, ssize_t count) {
    if (c && count > 0)
        ppt_went(c, before, (uint64_t)count);
    return count;
}

/* The connection of a call that may be on a file, too. */
static ppt_connection *connection_of(int fd) { return ppt_is_on() ? ppt_connection_at(fd) : NULL; }

/* The stamp of a call's begin if it is on a file whose operations are wanted; otherwise 0. */
static uint64_t begins_on_file(const ppt_connection *c, int fd) {
    return !c && ppt_files_on() && ppt_is_file(fd) ? ppt_files_now() : 0;
}

static void forget_file(int fd) {
    if (ppt_files_on())
        ppt_forget_file(fd);
}

static void forget_files(unsigned first, unsigned last) {
    if (ppt_files_on())
        ppt_forget_files(first, last);
}

/* ---- bytes that come in -------------------------------------------------------------------- */

static PPT_ON ssize_t on_read(int fd, void *to, size_t size) {
    ppt_connection *c = connection_of(fd);
    uint64_t file = begins_on_file(c, fd);
    ssize_t done = ppt_real.read(fd, to, size);
    return file ? ppt_did_io(file, FILES_CALL_READ, fd, done) : came(c, done, size, 0);
}

PPT_EXPORT ssize_t read(int fd, void *to, size_t size) {
    return PPT_BOTH_OFF ? ppt_real.read(fd, to, size) : on_read(fd, to, size);
}

static PPT_ON ssize_t on_readv(int fd, const struct iovec *parts, int count) {
    ppt_connection *c = connection_of(fd);
    uint64_t file = begins_on_file(c, fd);
    ssize_t done = ppt_real.readv(fd, parts, count);
    return file ? ppt_did_io(file, FILES_CALL_READ, fd, done) : came(c, done, 1, 0);
}

PPT_EXPORT ssize_t readv(int fd, const struct iovec *parts, int count) {
    return PPT_BOTH_OFF ? ppt_real.readv(fd, parts, count) : on_readv(fd, parts, count);
}

static PPT_ON ssize_t on_recv(int fd, void *to, size_t size, int flags) {
    ppt_connection *c = ppt_connection_at(fd);
    return came(c, ppt_real.recv(fd, to, size, flags), size, flags);
}

PPT_EXPORT ssize_t recv(int fd, void *to, size_t size, int flags) {
    return PPT_OFF ? ppt_real.recv(fd, to, size, flags) : on_recv(fd, to, size, flags);
}

static PPT_ON ssize_t on_recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
                            socklen_t *length) {
    ppt_connection *c = ppt_connection_at(fd);
    return came(c, ppt_real.recvfrom(fd, to, size, flags, from, length),
                size, flags);
}

PPT_EXPORT ssize_t recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
                            socklen_t *length) {
    return PPT_OFF ? ppt_real.recvfrom(fd, to, size, flags, from, length) : on_recvfrom(fd, to, size, flags, from, length);
}

static PPT_ON ssize_t on_recvmsg(int fd, struct msghdr *message, int flags) {
    ppt_connection *c = ppt_connection_at(fd);
    return came(c, ppt_real.recvmsg(fd, message, flags), 1, flags);
}

PPT_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    return PPT_OFF ? ppt_real.recvmsg(fd, message, flags) : on_recvmsg(fd, message, flags);
}

ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
                       struct sockaddr *from, socklen_t *length);

static PPT_ON ssize_t on___read_chk(int fd, void *to, size_t size, size_t room) {
    ppt_connection *c = connection_of(fd);
    uint64_t file = begins_on_file(c, fd);
    ssize_t done = ppt_real.__read_chk(fd, to, size, room);
    return file ? ppt_did_io(file, FILES_CALL_READ, fd, done) : came(c, done, size, 0);
}

PPT_EXPORT ssize_t __read_chk(int fd, void *to, size_t size, size_t room) {
    return PPT_BOTH_OFF ? ppt_real.__read_chk(fd, to, size, room) : on___read_chk(fd, to, size, room);
}

static PPT_ON ssize_t on___recv_chk(int fd, void *to, size_t size, size_t room, int flags) {
    ppt_connection *c = ppt_connection_at(fd);
    return came(c, ppt_real.__recv_chk(fd, to, size, room, flags),
                size, flags);
}

PPT_EXPORT ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags) {
    return PPT_OFF ? ppt_real.__recv_chk(fd, to, size, room, flags) : on___recv_chk(fd, to, size, room, flags);
}

static PPT_ON ssize_t on___recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
                                  struct sockaddr *from, socklen_t *length) {
    ppt_connection *c = ppt_connection_at(fd);
    return came(c, ppt_real.__recvfrom_chk(fd, to, size, room, flags, from, length),
                size, flags);
}

PPT_EXPORT ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
                                  struct sockaddr *from, socklen_t *length) {
    return PPT_OFF ? ppt_real.__recvfrom_chk(fd, to, size, room, flags, from, length) : on___recvfrom_chk(fd, to, size, room, flags, from, length);
}

/* ---- bytes that go out --------------------------------------------------------------------- */

/* The time is taken before the call: the other end may have read the bytes before it returns. */

static PPT_ON ssize_t on_write(int fd, const void *from, size_t size) {
    ppt_connection *c = connection_of(fd);
    uint64_t before = c ? ppt_stamp() : begins_on_file(c, fd);
    ssize_t done = ppt_real.write(fd, from, size);
    return c || !before ? went(c, before, done) : ppt_did_io(before, FILES_CALL_WRITE, fd, done);
}

PPT_EXPORT ssize_t write(int fd, const void *from, size_t size) {
    return PPT_BOTH_OFF ? ppt_real.write(fd, from, size) : on_write(fd, from, size);
}

static PPT_ON ssize_t on_writev(int fd, const struct iovec *parts, int count) {
    ppt_connection *c = connection_of(fd);
    uint64_t before = c ? ppt_stamp() : begins_on_file(c, fd);
    ssize_t done = ppt_real.writev(fd, parts, count);
    return c || !before ? went(c, before, done) : ppt_did_io(before, FILES_CALL_WRITE, fd, done);
}

PPT_EXPORT ssize_t writev(int fd, const struct iovec *parts, int count) {
    return PPT_BOTH_OFF ? ppt_real.writev(fd, parts, count) : on_writev(fd, parts, count);
}

static PPT_ON ssize_t on_send(int fd, const void *from, size_t size, int flags) {
    ppt_connection *c = ppt_connection_at(fd);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.send(fd, from, size, flags));
}

PPT_EXPORT ssize_t send(int fd, const void *from, size_t size, int flags) {
    return PPT_OFF ? ppt_real.send(fd, from, size, flags) : on_send(fd, from, size, flags);
}

static PPT_ON ssize_t on_sendto(int fd, const void *from, size_t size, int flags,
                          const struct sockaddr *to, socklen_t length) {
    ppt_connection *c = ppt_connection_at(fd);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.sendto(fd, from, size, flags, to, length));
}

PPT_EXPORT ssize_t sendto(int fd, const void *from, size_t size, int flags,
                          const struct sockaddr *to, socklen_t length) {
    return PPT_OFF ? ppt_real.sendto(fd, from, size, flags, to, length) : on_sendto(fd, from, size, flags, to, length);
}

static PPT_ON ssize_t on_sendmsg(int fd, const struct msghdr *message, int flags) {
    ppt_connection *c = ppt_connection_at(fd);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.sendmsg(fd, message, flags));
}

PPT_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    return PPT_OFF ? ppt_real.sendmsg(fd, message, flags) : on_sendmsg(fd, message, flags);
}

ssize_t sendfile(int to, int from, off_t *at, size_t size);
ssize_t sendfile64(int to, int from, off_t *at, size_t size);
ssize_t splice(int from, off_t *at, int to, off_t *to_at, size_t size, unsigned flags);

static PPT_ON ssize_t on_sendfile(int to, int from, off_t *at, size_t size) {
    ppt_connection *c = ppt_connection_at(to);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.sendfile(to, from, at, size));
}

PPT_EXPORT ssize_t sendfile(int to, int from, off_t *at, size_t size) {
    return PPT_OFF ? ppt_real.sendfile(to, from, at, size) : on_sendfile(to, from, at, size);
}

static PPT_ON ssize_t on_sendfile64(int to, int from, off_t *at, size_t size) {
    ppt_connection *c = ppt_connection_at(to);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.sendfile64(to, from, at, size));
}

PPT_EXPORT ssize_t sendfile64(int to, int from, off_t *at, size_t size) {
    return PPT_OFF ? ppt_real.sendfile64(to, from, at, size) : on_sendfile64(to, from, at, size);
}

static PPT_ON ssize_t on_splice(int from, off_t *at, int to, off_t *to_at, size_t size, unsigned flags) {
    ppt_connection *source = ppt_connection_at(from), *c = ppt_connection_at(to);
    uint64_t before = c ? ppt_stamp() : 0;
    ssize_t count = ppt_real.splice(from, at, to, to_at, size, flags);
    came(source, count, size, 0);
    return went(c, before, count);
}

PPT_EXPORT ssize_t splice(int from, off_t *at, int to, off_t *to_at, size_t size, unsigned flags) {
    return PPT_OFF ? ppt_real.splice(from, at, to, to_at, size, flags) : on_splice(from, at, to, to_at, size, flags);
}

/* ---- how connections begin and end --------------------------------------------------------- */

PPT_EXPORT int connect(int fd, const struct sockaddr *to, socklen_t length) {
    int made = ppt_real.connect(fd, to, length);
    int saved = errno;
    if (made == 0 || saved == EINPROGRESS || saved == EINTR)
        ppt_made(fd, PPT_BY_CONNECT);
    errno = saved;
    return made;
}

static int accepted(int fd) {
    int saved = errno;
    if (fd >= 0) {
        ppt_made(fd, PPT_BY_ACCEPT);
        forget_file(fd);
    }
    errno = saved;
    return fd;
}

PPT_EXPORT int accept(int fd, struct sockaddr *from, socklen_t *length) {
    return accepted(ppt_real.accept(fd, from, length));
}

int accept4(int fd, struct sockaddr *from, socklen_t *length, int flags);

PPT_EXPORT int accept4(int fd, struct sockaddr *from, socklen_t *length, int flags) {
    return accepted(ppt_real.accept4(fd, from, length, flags));
}

PPT_EXPORT int shutdown(int fd, int how) {
    if (PPT_OFF)
        return ppt_real.shutdown(fd, how);
    ppt_connection *c = ppt_connection_at(fd);
    int done = ppt_real.shutdown(fd, how);
    if (c && done == 0 && how != SHUT_RD)
        ppt_done_sending(c);
    return done;
}

static PPT_ON int on_close(int fd) {
    /* Before: another thread may get the number as soon as it is free. */
    if (!PPT_OFF)
        ppt_ending(fd);
    forget_file(fd);
    return ppt_real.close(fd);
}

PPT_EXPORT int close(int fd) { return PPT_BOTH_OFF ? ppt_real.close(fd) : on_close(fd); }

int close_range(unsigned first, unsigned last, int flags);
void closefrom(int first);

#define PPT_CLOSE_RANGE_CLOEXEC 4

PPT_EXPORT int close_range(unsigned first, unsigned last, int flags) {
    if (!PPT_OFF && !(flags & PPT_CLOSE_RANGE_CLOEXEC))
        ppt_ending_all(first, last);
    forget_files(first, last);
    return ppt_real.close_range(first, last, flags);
}

PPT_EXPORT void closefrom(int first) {
    if (!PPT_OFF)
        ppt_ending_all(first < 0 ? 0 : (unsigned)first, ~0U);
    forget_files(first < 0 ? 0 : (unsigned)first, ~0U);
    ppt_real.closefrom(first);
}

/* `to` has become the same file as `from`. */
static int copied(int from, int to) {
    if (to >= 0) {
        ppt_copied(from, to);
        forget_file(to);
    }
    return to;
}

PPT_EXPORT int dup(int fd) { return copied(fd, ppt_real.dup(fd)); }

PPT_EXPORT int dup2(int from, int to) {
    if (!PPT_OFF && from != to)
        ppt_ending(to);
    return copied(from, ppt_real.dup2(from, to));
}

int dup3(int from, int to, int flags);

PPT_EXPORT int dup3(int from, int to, int flags) {
    if (!PPT_OFF && from != to)
        ppt_ending(to);
    return copied(from, ppt_real.dup3(from, to, flags));
}

/* ---- what ends programs that call the kernel unexpectedly ---------------------------------- */

/* Nobody installs a filter (seccomp(2)) without one of these before, except with CAP_SYS_ADMIN. */
#define PPT_PR_SET_SECCOMP 22
#define PPT_PR_SET_NO_NEW_PRIVS 38

int prctl(int option, ...);

PPT_EXPORT int prctl(int option, ...) {
    va_list words;
    va_start(words, option);
    unsigned long a = va_arg(words, unsigned long), b = va_arg(words, unsigned long);
    unsigned long c = va_arg(words, unsigned long), d = va_arg(words, unsigned long);
    va_end(words);
    if (option == PPT_PR_SET_SECCOMP || option == PPT_PR_SET_NO_NEW_PRIVS)
        ppt_may_be_filtered();
    return ppt_real.prctl(option, a, b, c, d);
}
