/* Looks up the functions that ours call when the library is loaded. Until then, other libraries'
 * constructors may call ours, so each function begins as a system call. It stays one where the C
 * library has no such function. */
#define _GNU_SOURCE
#include "real.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "next.h"

/* Functions that are no system calls look themselves up before that. */
#define PPT_BY_NAME(result, name, missing, arguments, ...)                                         \
    static result early_##name(__VA_ARGS__) {                                                      \
        void *there = ppt_next(#name);                                                             \
        result (*found)(__VA_ARGS__);                                                              \
        memcpy(&found, &there, sizeof found);                                                      \
        return found ? found arguments : (missing);                                                \
    }

PPT_BY_NAME(int, fclose, -1, (it), FILE *it)
PPT_BY_NAME(int, pclose, -1, (it), FILE *it)
PPT_BY_NAME(int, closedir, -1, (it), DIR *it)
PPT_BY_NAME(FILE *, freopen, NULL, (path, how, it), const char *path, const char *how, FILE *it)
PPT_BY_NAME(FILE *, freopen64, NULL, (path, how, it), const char *path, const char *how, FILE *it)
PPT_BY_NAME(void *, dlopen, NULL, (path, flags), const char *path, int flags)
PPT_BY_NAME(void *, dlmopen, NULL, (space, path, flags), long space, const char *path, int flags)
PPT_BY_NAME(long, syscall, -1, (number, a, b, c, d, e, f), long number, long a, long b, long c,
            long d, long e, long f)

static ssize_t early_read(int fd, void *to, size_t size) { return syscall(SYS_read, fd, to, size); }

static ssize_t early_readv(int fd, const struct iovec *parts, int count) {
    return syscall(SYS_readv, fd, parts, count);
}

static ssize_t early_recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
                              socklen_t *length) {
    return syscall(SYS_recvfrom, fd, to, size, flags, from, length);
}

static ssize_t early_recv(int fd, void *to, size_t size, int flags) {
    return early_recvfrom(fd, to, size, flags, NULL, NULL);
}

static ssize_t early_recvmsg(int fd, struct msghdr *message, int flags) {
    return syscall(SYS_recvmsg, fd, message, flags);
}

static int early_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                          struct timespec *until) {
    return (int)syscall(SYS_recvmmsg, fd, messages, count, flags, until);
}

/* The functions for programs built with _FORTIFY_SOURCE abort instead of overflowing a buffer. */
static size_t within(size_t size, size_t room) {
    if (size > room)
        __builtin_trap();
    return size;
}

static ssize_t early___read_chk(int fd, void *to, size_t size, size_t room) {
    return early_read(fd, to, within(size, room));
}

static ssize_t early___recv_chk(int fd, void *to, size_t size, size_t room, int flags) {
    return early_recv(fd, to, within(size, room), flags);
}

static ssize_t early___recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
                                    struct sockaddr *from, socklen_t *length) {
    return early_recvfrom(fd, to, within(size, room), flags, from, length);
}

static ssize_t early_write(int fd, const void *from, size_t size) {
    return syscall(SYS_write, fd, from, size);
}

static ssize_t early_writev(int fd, const struct iovec *parts, int count) {
    return syscall(SYS_writev, fd, parts, count);
}

static ssize_t early_sendto(int fd, const void *from, size_t size, int flags,
                            const struct sockaddr *to, socklen_t length) {
    return syscall(SYS_sendto, fd, from, size, flags, to, length);
}

static ssize_t early_send(int fd, const void *from, size_t size, int flags) {
    return early_sendto(fd, from, size, flags, NULL, 0);
}

static ssize_t early_sendmsg(int fd, const struct msghdr *message, int flags) {
    return syscall(SYS_sendmsg, fd, message, flags);
}

static int early_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

static ssize_t early_sendfile(int to, int from, off_t *at, size_t size) {
    return syscall(SYS_sendfile, to, from, at, size);
}

#define early_sendfile64 early_sendfile

static ssize_t early_splice(int from, off_t *at, int to, off_t *to_at, size_t size,
                            unsigned flags) {
    return syscall(SYS_splice, from, at, to, to_at, size, flags);
}

static int early_connect(int fd, const struct sockaddr *to, socklen_t length) {
    return (int)syscall(SYS_connect, fd, to, length);
}

static int early_accept4(int fd, struct sockaddr *from, socklen_t *length, int flags) {
    return (int)syscall(SYS_accept4, fd, from, length, flags);
}

static int early_accept(int fd, struct sockaddr *from, socklen_t *length) {
    return early_accept4(fd, from, length, 0);
}

static int early_shutdown(int fd, int how) { return (int)syscall(SYS_shutdown, fd, how); }

static int early_close(int fd) { return (int)syscall(SYS_close, fd); }

static int early_close_range(unsigned first, unsigned last, int flags) {
    return (int)syscall(SYS_close_range, first, last, flags);
}

static void early_closefrom(int first) {
    early_close_range(first < 0 ? 0 : (unsigned)first, ~0U, 0);
}

static int early_dup(int fd) { return (int)syscall(SYS_dup, fd); }

static int early_dup3(int from, int to, int flags) {
    return (int)syscall(SYS_dup3, from, to, flags);
}

static int early_dup2(int from, int to) {
    if (from != to)
        return early_dup3(from, to, 0);
    return syscall(SYS_fcntl, from, 1 /* F_GETFD */) < 0 ? -1 : to;
}

static int early_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                       unsigned long d) {
    return (int)syscall(SYS_prctl, option, a, b, c, d);
}

/* Files, whose descriptors are named from this folder on. */
#define PPT_HERE (-100) /* AT_FDCWD */
#define PPT_CREATES 01101 /* O_CREAT | O_WRONLY | O_TRUNC */

#define PPT_BY_CALL(result, name, parameters, ...)                                                 \
    static result early_##name parameters { return (result)syscall(__VA_ARGS__); }

PPT_BY_CALL(int, open, (const char *path, int flags, unsigned mode), SYS_openat, PPT_HERE, path,
            flags, mode)
PPT_BY_CALL(int, openat, (int at, const char *path, int flags, unsigned mode), SYS_openat, at, path,
            flags, mode)
PPT_BY_CALL(int, creat, (const char *path, unsigned mode), SYS_openat, PPT_HERE, path, PPT_CREATES,
            mode)
PPT_BY_CALL(int, __open_2, (const char *path, int flags), SYS_openat, PPT_HERE, path, flags, 0)
PPT_BY_CALL(int, __openat_2, (int at, const char *path, int flags), SYS_openat, at, path, flags, 0)
PPT_BY_CALL(ssize_t, pread, (int fd, void *to, size_t size, off_t at), SYS_pread64, fd, to, size, at)
PPT_BY_CALL(ssize_t, __pread_chk, (int fd, void *to, size_t size, off_t at, size_t room),
            SYS_pread64, fd, to, within(size, room), at)
PPT_BY_CALL(ssize_t, preadv, (int fd, const struct iovec *to, int count, off_t at), SYS_preadv, fd,
            to, count, at, 0)
PPT_BY_CALL(ssize_t, preadv2, (int fd, const struct iovec *to, int count, off_t at, int flags),
            SYS_preadv2, fd, to, count, at, 0, flags)
PPT_BY_CALL(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), SYS_pwrite64, fd,
            from, size, at)
PPT_BY_CALL(ssize_t, pwritev, (int fd, const struct iovec *from, int count, off_t at), SYS_pwritev,
            fd, from, count, at, 0)
PPT_BY_CALL(ssize_t, pwritev2, (int fd, const struct iovec *from, int count, off_t at, int flags),
            SYS_pwritev2, fd, from, count, at, 0, flags)
PPT_BY_CALL(int, fsync, (int fd), SYS_fsync, fd)
PPT_BY_CALL(int, fdatasync, (int fd), SYS_fdatasync, fd)
PPT_BY_CALL(int, ftruncate, (int fd, off_t size), SYS_ftruncate, fd, size)
PPT_BY_CALL(int, rename, (const char *from, const char *to), SYS_renameat2, PPT_HERE, from,
            PPT_HERE, to, 0)
PPT_BY_CALL(int, renameat, (int from_at, const char *from, int to_at, const char *to),
            SYS_renameat2, from_at, from, to_at, to, 0)
PPT_BY_CALL(int, renameat2,
            (int from_at, const char *from, int to_at, const char *to, unsigned flags),
            SYS_renameat2, from_at, from, to_at, to, flags)
PPT_BY_CALL(int, unlink, (const char *path), SYS_unlinkat, PPT_HERE, path, 0)
PPT_BY_CALL(int, unlinkat, (int at, const char *path, int flags), SYS_unlinkat, at, path, flags)

/* Files are large everywhere. */
#define early_open64 early_open
#define early_openat64 early_openat
#define early_creat64 early_creat
#define early___open64_2 early___open_2
#define early___openat64_2 early___openat_2
#define early_pread64 early_pread
#define early___pread64_chk early___pread_chk
#define early_preadv64 early_preadv
#define early_preadv64v2 early_preadv2
#define early_pwrite64 early_pwrite
#define early_pwritev64 early_pwritev
#define early_pwritev64v2 early_pwritev2
#define early_ftruncate64 early_ftruncate

struct ppt_real ppt_real = {
#define PPT_EARLY(result, name, parameters) early_##name,
    PPT_FUNCTIONS(PPT_EARLY)
#undef PPT_EARLY
};

static const char *const names[] = {
#define PPT_NAME(result, name, parameters) #name,
    PPT_FUNCTIONS(PPT_NAME)
#undef PPT_NAME
};

_Static_assert(sizeof(struct ppt_real) == sizeof names, "a pointer for each name");

static __attribute__((constructor(102))) void look_up(void) {
    int saved = errno;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = ppt_next_by_linker(names[i], NULL);
        if (found)
            memcpy((char *)&ppt_real + i * sizeof found, &found, sizeof found);
    }
    errno = saved;
}
