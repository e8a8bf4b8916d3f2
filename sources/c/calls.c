/* The functions that programs call instead of those of the C library, for connections and for all that
 * descriptors may be. While nobody is attached, each is one load (where `files` wants to know, too: two), one
 * branch and a jump.
 *
 * They hold no lock while they wait in the real function, so a thread may be cancelled there, or leave it
 * by longjmp(3). */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "connection.h"
#include "file.h"
#include "real.h"
#include "write.h"

#define PPT_EXPORT __attribute__((visibility("default")))
#define PPT_OFF (__builtin_expect(!ppt_is_on(), 1))
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

/* A call on a descriptor of which nothing can be known. */
static __attribute__((noinline, cold)) void count_unknown(int fd, int may_be_file) {
    int beyond = fd >= 0 && !ppt_is_in_table(fd);
    if (!beyond && !ppt_is_filtered())
        return;
    if (ppt_is_on() && beyond)
        ppt_count_beyond();
    else if (ppt_is_on())
        ppt_count_filtered();
    if (may_be_file && ppt_files_on())
        PPT_ADD_SKIPPED(1);
}

/* A call that is on no known connection: `*file` becomes its begin if it is on a file whose operations are
 * wanted. */
static __attribute__((noinline)) ppt_connection *look_again(int fd, int sends, uint64_t *file) {
    uint64_t now = ppt_files_on() ? ppt_files_now() : ppt_stamp(), meaning = ppt_meaning(fd, now);
    if (ppt_kind_of(meaning) == PPT_SOCKET && ppt_is_on())
        return ppt_connection_of(fd, meaning, sends);
    if (ppt_kind_of(meaning) == PPT_FILE && ppt_files_on() && file)
        *file = now;
    if (meaning == 0)
        count_unknown(fd, file != NULL);
    return NULL;
}

/* The connection that a call is on, or 0. Of one that is known, the time is only looked at after the call.
 * `*file` becomes the stamp of a file's call; `file` is 0 for calls that are on no file. */
static inline ppt_connection *look(int fd, int sends, uint64_t *file) {
    ppt_connection *c = ppt_is_on() ? ppt_known_connection(fd) : NULL;
    if (file)
        *file = 0;
    return __builtin_expect(c != NULL, 1) ? c : look_again(fd, sends, file);
}

static inline ppt_connection *connection_of(int fd, int sends) { return look(fd, sends, NULL); }

/* ---- bytes that come in -------------------------------------------------------------------- */

static PPT_ON ssize_t on_read(int fd, void *to, size_t size) {
    uint64_t file;
    ppt_connection *c = look(fd, 0, &file);
    ssize_t done = ppt_real.read(fd, to, size);
    return file ? ppt_did_io(file, FILES_CALL_READ, fd, done) : came(c, done, size, 0);
}

PPT_EXPORT ssize_t read(int fd, void *to, size_t size) {
    return PPT_BOTH_OFF ? ppt_real.read(fd, to, size) : on_read(fd, to, size);
}

static PPT_ON ssize_t on_readv(int fd, const struct iovec *parts, int count) {
    uint64_t file;
    ppt_connection *c = look(fd, 0, &file);
    ssize_t done = ppt_real.readv(fd, parts, count);
    return file ? ppt_did_io(file, FILES_CALL_READ, fd, done) : came(c, done, 1, 0);
}

PPT_EXPORT ssize_t readv(int fd, const struct iovec *parts, int count) {
    return PPT_BOTH_OFF ? ppt_real.readv(fd, parts, count) : on_readv(fd, parts, count);
}

static PPT_ON ssize_t on_recv(int fd, void *to, size_t size, int flags) {
    ppt_connection *c = connection_of(fd, 0);
    return came(c, ppt_real.recv(fd, to, size, flags), size, flags);
}

PPT_EXPORT ssize_t recv(int fd, void *to, size_t size, int flags) {
    return PPT_OFF ? ppt_real.recv(fd, to, size, flags) : on_recv(fd, to, size, flags);
}

static PPT_ON ssize_t on_recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
                            socklen_t *length) {
    ppt_connection *c = connection_of(fd, 0);
    return came(c, ppt_real.recvfrom(fd, to, size, flags, from, length),
                size, flags);
}

PPT_EXPORT ssize_t recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
                            socklen_t *length) {
    return PPT_OFF ? ppt_real.recvfrom(fd, to, size, flags, from, length) : on_recvfrom(fd, to, size, flags, from, length);
}

static PPT_ON ssize_t on_recvmsg(int fd, struct msghdr *message, int flags) {
    ppt_connection *c = connection_of(fd, 0);
    return came(c, ppt_real.recvmsg(fd, message, flags), 1, flags);
}

PPT_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    return PPT_OFF ? ppt_real.recvmsg(fd, message, flags) : on_recvmsg(fd, message, flags);
}

/* The bytes of the first messages. */
static ssize_t sum(const struct mmsghdr *messages, int count) {
    ssize_t all = count < 0 ? count : 0;
    for (int i = 0; i < count; i++)
        all += messages[i].msg_len;
    return all;
}

static PPT_ON int on_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                              struct timespec *until) {
    ppt_connection *c = connection_of(fd, 0);
    int done = ppt_real.recvmmsg(fd, messages, count, flags, until);
    if (c)
        came(c, sum(messages, done), 1, flags);
    return done;
}

PPT_EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                        struct timespec *until) {
    return PPT_OFF ? ppt_real.recvmmsg(fd, messages, count, flags, until)
                   : on_recvmmsg(fd, messages, count, flags, until);
}

ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
                       struct sockaddr *from, socklen_t *length);

static PPT_ON ssize_t on___read_chk(int fd, void *to, size_t size, size_t room) {
    uint64_t file;
    ppt_connection *c = look(fd, 0, &file);
    ssize_t done = ppt_real.__read_chk(fd, to, size, room);
    return file ? ppt_did_io(file, FILES_CALL_READ, fd, done) : came(c, done, size, 0);
}

PPT_EXPORT ssize_t __read_chk(int fd, void *to, size_t size, size_t room) {
    return PPT_BOTH_OFF ? ppt_real.__read_chk(fd, to, size, room) : on___read_chk(fd, to, size, room);
}

static PPT_ON ssize_t on___recv_chk(int fd, void *to, size_t size, size_t room, int flags) {
    ppt_connection *c = connection_of(fd, 0);
    return came(c, ppt_real.__recv_chk(fd, to, size, room, flags),
                size, flags);
}

PPT_EXPORT ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags) {
    return PPT_OFF ? ppt_real.__recv_chk(fd, to, size, room, flags) : on___recv_chk(fd, to, size, room, flags);
}

static PPT_ON ssize_t on___recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
                                  struct sockaddr *from, socklen_t *length) {
    ppt_connection *c = connection_of(fd, 0);
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
    uint64_t file;
    ppt_connection *c = look(fd, 1, &file);
    uint64_t before = c ? ppt_stamp() : file;
    ssize_t done = ppt_real.write(fd, from, size);
    return c || !before ? went(c, before, done) : ppt_did_io(before, FILES_CALL_WRITE, fd, done);
}

PPT_EXPORT ssize_t write(int fd, const void *from, size_t size) {
    return PPT_BOTH_OFF ? ppt_real.write(fd, from, size) : on_write(fd, from, size);
}

static PPT_ON ssize_t on_writev(int fd, const struct iovec *parts, int count) {
    uint64_t file;
    ppt_connection *c = look(fd, 1, &file);
    uint64_t before = c ? ppt_stamp() : file;
    ssize_t done = ppt_real.writev(fd, parts, count);
    return c || !before ? went(c, before, done) : ppt_did_io(before, FILES_CALL_WRITE, fd, done);
}

PPT_EXPORT ssize_t writev(int fd, const struct iovec *parts, int count) {
    return PPT_BOTH_OFF ? ppt_real.writev(fd, parts, count) : on_writev(fd, parts, count);
}

static PPT_ON ssize_t on_send(int fd, const void *from, size_t size, int flags) {
    ppt_connection *c = connection_of(fd, 1);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.send(fd, from, size, flags));
}

PPT_EXPORT ssize_t send(int fd, const void *from, size_t size, int flags) {
    return PPT_OFF ? ppt_real.send(fd, from, size, flags) : on_send(fd, from, size, flags);
}

static PPT_ON ssize_t on_sendto(int fd, const void *from, size_t size, int flags,
                          const struct sockaddr *to, socklen_t length) {
    ppt_connection *c = connection_of(fd, 1);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.sendto(fd, from, size, flags, to, length));
}

PPT_EXPORT ssize_t sendto(int fd, const void *from, size_t size, int flags,
                          const struct sockaddr *to, socklen_t length) {
    return PPT_OFF ? ppt_real.sendto(fd, from, size, flags, to, length) : on_sendto(fd, from, size, flags, to, length);
}

static PPT_ON ssize_t on_sendmsg(int fd, const struct msghdr *message, int flags) {
    ppt_connection *c = connection_of(fd, 1);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.sendmsg(fd, message, flags));
}

PPT_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    return PPT_OFF ? ppt_real.sendmsg(fd, message, flags) : on_sendmsg(fd, message, flags);
}

static PPT_ON int on_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    ppt_connection *c = connection_of(fd, 1);
    uint64_t before = c ? ppt_stamp() : 0;
    int done = ppt_real.sendmmsg(fd, messages, count, flags);
    if (c)
        went(c, before, sum(messages, done));
    return done;
}

PPT_EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    return PPT_OFF ? ppt_real.sendmmsg(fd, messages, count, flags)
                   : on_sendmmsg(fd, messages, count, flags);
}

ssize_t sendfile(int to, int from, off_t *at, size_t size);
ssize_t sendfile64(int to, int from, off_t *at, size_t size);
ssize_t splice(int from, off_t *at, int to, off_t *to_at, size_t size, unsigned flags);

static PPT_ON ssize_t on_sendfile(int to, int from, off_t *at, size_t size) {
    ppt_connection *c = connection_of(to, 1);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.sendfile(to, from, at, size));
}

PPT_EXPORT ssize_t sendfile(int to, int from, off_t *at, size_t size) {
    return PPT_OFF ? ppt_real.sendfile(to, from, at, size) : on_sendfile(to, from, at, size);
}

static PPT_ON ssize_t on_sendfile64(int to, int from, off_t *at, size_t size) {
    ppt_connection *c = connection_of(to, 1);
    uint64_t before = c ? ppt_stamp() : 0;
    return went(c, before, ppt_real.sendfile64(to, from, at, size));
}

PPT_EXPORT ssize_t sendfile64(int to, int from, off_t *at, size_t size) {
    return PPT_OFF ? ppt_real.sendfile64(to, from, at, size) : on_sendfile64(to, from, at, size);
}

static PPT_ON ssize_t on_splice(int from, off_t *at, int to, off_t *to_at, size_t size, unsigned flags) {
    ppt_connection *source = connection_of(from, 0), *c = connection_of(to, 1);
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
    if (PPT_OFF)
        return made;
    if (made == 0 || errno == EINPROGRESS || errno == EINTR)
        ppt_made(fd);
    return made;
}

/* A descriptor has become another file. If the C library has not closed the one before, that is noticed now. */
static int began(int fd) {
    if (fd >= 0)
        ppt_ending(fd);
    return fd;
}

static int accepted(int fd) {
    if (PPT_OFF)
        return PPT_BOTH_OFF ? fd : began(fd);
    if (fd >= 0)
        ppt_made(fd);
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
    ppt_connection *c = connection_of(fd, 1);
    int done = ppt_real.shutdown(fd, how);
    if (c && done == 0 && how != SHUT_RD)
        ppt_done_sending(c);
    return done;
}

static PPT_ON int on_close(int fd) {
    /* Before: another thread may get the number as soon as it is free. */
    ppt_ending(fd);
    return ppt_real.close(fd);
}

PPT_EXPORT int close(int fd) { return PPT_BOTH_OFF ? ppt_real.close(fd) : on_close(fd); }

int close_range(unsigned first, unsigned last, int flags);
void closefrom(int first);

#define PPT_CLOSE_RANGE_CLOEXEC 4

static void ending_range(unsigned first, unsigned last, int flags) {
    if (!PPT_BOTH_OFF && !(flags & PPT_CLOSE_RANGE_CLOEXEC))
        ppt_ending_all(first, last);
}

PPT_EXPORT int close_range(unsigned first, unsigned last, int flags) {
    ending_range(first, last, flags);
    return ppt_real.close_range(first, last, flags);
}

PPT_EXPORT void closefrom(int first) {
    ending_range(first < 0 ? 0 : (unsigned)first, ~0U, 0);
    ppt_real.closefrom(first);
}

/* Streams close a descriptor without close(2). */
int fileno(FILE *stream);
int dirfd(DIR *folder);

#define PPT_CLOSE_CALL(name, type, number)                                                         \
    int name(type *it);                                                                            \
    static PPT_ON int on_##name(type *it) {                                                        \
        int saved = errno;                                                                         \
        ppt_ending(number(it));                                                                    \
        errno = saved;                                                                             \
        return ppt_real.name(it);                                                                  \
    }                                                                                              \
    PPT_EXPORT int name(type *it) { return PPT_BOTH_OFF ? ppt_real.name(it) : on_##name(it); }

PPT_CLOSE_CALL(fclose, FILE, fileno)
PPT_CLOSE_CALL(pclose, FILE, fileno)
PPT_CLOSE_CALL(closedir, DIR, dirfd)

#define PPT_REOPEN_CALL(name)                                                                      \
    FILE *name(const char *path, const char *how, FILE *it);                                       \
    static PPT_ON FILE *on_##name(const char *path, const char *how, FILE *it) {                   \
        int saved = errno;                                                                         \
        ppt_ending(fileno(it));                                                                    \
        errno = saved;                                                                             \
        FILE *made = ppt_real.name(path, how, it);                                                 \
        if (made)                                                                                  \
            ppt_forget(fileno(made));                                                              \
        return made;                                                                               \
    }                                                                                              \
    PPT_EXPORT FILE *name(const char *path, const char *how, FILE *it) {                           \
        return PPT_BOTH_OFF ? ppt_real.name(path, how, it) : on_##name(path, how, it);             \
    }

PPT_REOPEN_CALL(freopen)
PPT_REOPEN_CALL(freopen64)

PPT_EXPORT int dup(int fd) {
    int made = ppt_real.dup(fd);
    return PPT_BOTH_OFF ? made : began(made);
}

/* `to` becomes the same file as `from`. Until then, another thread may use it as what it was. */
#define PPT_DUP_CALL(name, arguments, ...)                                                         \
    int name(__VA_ARGS__);                                                                         \
    static PPT_ON int on_##name(__VA_ARGS__) {                                                     \
        if (from != to && ppt_is_open(from))                                                       \
            ppt_ending(to);                                                                        \
        int made = ppt_real.name arguments;                                                        \
        if (from != to)                                                                            \
            ppt_forget(to);                                                                        \
        return made;                                                                               \
    }                                                                                              \
    PPT_EXPORT int name(__VA_ARGS__) {                                                             \
        return PPT_BOTH_OFF ? ppt_real.name arguments : on_##name arguments;                       \
    }

PPT_DUP_CALL(dup2, (from, to), int from, int to)
PPT_DUP_CALL(dup3, (from, to, flags), int from, int to, int flags)

/* A filter (seccomp(2)) is installed by one of these, or by syscall(2). */
#define PPT_PR_SET_SECCOMP 22
#define PPT_PR_SET_NO_NEW_PRIVS 38

/* Some programs and libraries (libuv) close by syscall(2). */
static PPT_ON long on_syscall(long number, long a, long b, long c) {
    int copies = number != SYS_close && number != SYS_close_range;
    if (number == SYS_close_range)
        ending_range((unsigned)a, (unsigned)b, (int)c);
    else if (!copies || (a != b && ppt_is_open((int)a)))
        ppt_ending((int)(copies ? b : a));
    long done = ppt_real.syscall(number, a, b, c, 0, 0, 0);
    if (copies && a != b)
        ppt_forget((int)b);
    return done;
}

#ifdef SYS_dup2
#define PPT_IS_DUP(number) ((number) == SYS_dup2 || (number) == SYS_dup3)
#else
#define PPT_IS_DUP(number) ((number) == SYS_dup3)
#endif

/* Any other number is a jump, because a call may return twice. On x86-64, the last argument is on the stack of
 * the caller, who may have another variable there: it is not declared, so that it is neither read nor written. */
#ifdef __x86_64__
#define PPT_LAST(...)
#else
#define PPT_LAST(...) __VA_ARGS__
#endif

static PPT_ON void filters(long number, long a) {
    if (number == SYS_seccomp || a == PPT_PR_SET_SECCOMP || a == PPT_PR_SET_NO_NEW_PRIVS)
        ppt_may_be_filtered();
}

PPT_EXPORT long syscall(long number, long a, long b, long c, long d, long e PPT_LAST(, long f)) {
    typedef long call(long, long, long, long, long, long PPT_LAST(, long));
    if (__builtin_expect(number == SYS_seccomp || number == SYS_prctl, 0))
        filters(number, a);
    int ends = number == SYS_close || number == SYS_close_range || PPT_IS_DUP(number);
    return __builtin_expect(ends, 0) && !PPT_BOTH_OFF
               ? on_syscall(number, a, b, c)
               : ((call *)(void *)ppt_real.syscall)(number, a, b, c, d, e PPT_LAST(, f));
}

/* ---- libraries whose calls are not seen ---------------------------------------------------- */

/* Numbers of glibc's dlfcn.h. A load with the second one only looks. */
#define PPT_RTLD_DEEPBIND 8
#define PPT_RTLD_NOLOAD 4

static PPT_ON void count_apart(int flags) {
    if (!(flags & PPT_RTLD_NOLOAD))
        ppt_count_apart(1);
}

/* The real functions are reached by a jump, because they look at their caller. */
void *dlopen(const char *path, int flags);
PPT_EXPORT void *dlopen(const char *path, int flags) {
    if (__builtin_expect(flags & PPT_RTLD_DEEPBIND, 0))
        count_apart(flags);
    return ppt_real.dlopen(path, flags);
}

void *dlmopen(long space, const char *path, int flags);
PPT_EXPORT void *dlmopen(long space, const char *path, int flags) {
    if (space != 0 || (flags & PPT_RTLD_DEEPBIND))
        count_apart(flags);
    return ppt_real.dlmopen(space, path, flags);
}

/* ---- what ends programs that call the kernel unexpectedly ---------------------------------- */

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
