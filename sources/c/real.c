/* Looks up the functions behind ours when the library is loaded. Until then, other libraries'
 * constructors may call ours, and dlsym(3) may not be called: it allocates, and an allocator that was
 * preloaded may not be ready. So each function begins as a system call. It stays one where the C
 * library has no such function, or no dlsym (glibc before 2.34, in programs without libdl). */
#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma weak dlsym
#pragma weak dlerror

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

/* The functions of programs that were built with _FORTIFY_SOURCE end them rather than overflow. */
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
#ifdef SYS_close_range
    return (int)syscall(SYS_close_range, first, last, flags);
#else
    return (int)syscall(436, first, last, flags);
#endif
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

/* All in one loop, whose results are used: were one call the last act of a function, the compiler would
 * jump to dlsym, which then takes our caller for the library that asks for the next function. */
static __attribute__((constructor(102))) void look_up(void) {
    if (!dlsym)
        return;
    int saved = errno, failed = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = dlsym(RTLD_NEXT, names[i]);
        if (found)
            memcpy((char *)&ppt_real + i * sizeof found, &found, sizeof found);
        else
            failed = 1;
    }
    /* So that the program does not find our error. */
    if (failed && dlerror)
        dlerror();
    errno = saved;
}
