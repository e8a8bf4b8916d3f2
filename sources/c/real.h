/* The functions that ours call: those of the C library, or of another preloaded library. */
#ifndef PPT_REAL_H
#define PPT_REAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Streams of the C library; those names are the same in each. */
typedef struct _IO_FILE FILE;
typedef struct __dirstream DIR;

struct mmsghdr;
struct timespec;

/* X(result, name, parameters), for each of them. */
#define PPT_FUNCTIONS(X)                                                                           \
    X(ssize_t, read, (int, void *, size_t))                                                        \
    X(ssize_t, readv, (int, const struct iovec *, int))                                            \
    X(ssize_t, recv, (int, void *, size_t, int))                                                   \
    X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *))               \
    X(ssize_t, recvmsg, (int, struct msghdr *, int))                                               \
    X(int, recvmmsg, (int, struct mmsghdr *, unsigned, int, struct timespec *))                    \
    X(ssize_t, __read_chk, (int, void *, size_t, size_t))                                          \
    X(ssize_t, __recv_chk, (int, void *, size_t, size_t, int))                                     \
    X(ssize_t, __recvfrom_chk,                                                                     \
      (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *))                          \
    X(ssize_t, write, (int, const void *, size_t))                                                 \
    X(ssize_t, writev, (int, const struct iovec *, int))                                           \
    X(ssize_t, send, (int, const void *, size_t, int))                                             \
    X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))       \
    X(ssize_t, sendmsg, (int, const struct msghdr *, int))                                         \
    X(int, sendmmsg, (int, struct mmsghdr *, unsigned, int))                                       \
    X(ssize_t, sendfile, (int, int, off_t *, size_t))                                              \
    X(ssize_t, sendfile64, (int, int, off_t *, size_t))                                            \
    X(ssize_t, splice, (int, off_t *, int, off_t *, size_t, unsigned))                             \
    X(int, connect, (int, const struct sockaddr *, socklen_t))                                     \
    X(int, accept, (int, struct sockaddr *, socklen_t *))                                          \
    X(int, accept4, (int, struct sockaddr *, socklen_t *, int))                                    \
    X(int, shutdown, (int, int))                                                                   \
    X(int, close, (int))                                                                           \
    X(int, close_range, (unsigned, unsigned, int))                                                 \
    X(void, closefrom, (int))                                                                      \
    X(int, dup, (int))                                                                             \
    X(int, dup2, (int, int))                                                                       \
    X(int, dup3, (int, int, int))                                                                  \
    X(int, fclose, (FILE *))                                                                       \
    X(int, pclose, (FILE *))                                                                       \
    X(int, closedir, (DIR *))                                                                      \
    X(FILE *, freopen, (const char *, const char *, FILE *))                                       \
    X(FILE *, freopen64, (const char *, const char *, FILE *))                                     \
    X(long, syscall, (long, long, long, long, long, long, long))                                   \
    X(void *, dlopen, (const char *, int))                                                         \
    X(void *, dlmopen, (long, const char *, int))                                                  \
    X(int, prctl, (int, unsigned long, unsigned long, unsigned long, unsigned long))               \
    X(int, open, (const char *, int, unsigned))                                                    \
    X(int, open64, (const char *, int, unsigned))                                                  \
    X(int, openat, (int, const char *, int, unsigned))                                             \
    X(int, openat64, (int, const char *, int, unsigned))                                           \
    X(int, creat, (const char *, unsigned))                                                        \
    X(int, creat64, (const char *, unsigned))                                                      \
    X(int, __open_2, (const char *, int))                                                          \
    X(int, __open64_2, (const char *, int))                                                        \
    X(int, __openat_2, (int, const char *, int))                                                   \
    X(int, __openat64_2, (int, const char *, int))                                                 \
    X(ssize_t, pread, (int, void *, size_t, off_t))                                                \
    X(ssize_t, pread64, (int, void *, size_t, off_t))                                              \
    X(ssize_t, __pread_chk, (int, void *, size_t, off_t, size_t))                                  \
    X(ssize_t, __pread64_chk, (int, void *, size_t, off_t, size_t))                                \
    X(ssize_t, preadv, (int, const struct iovec *, int, off_t))                                    \
    X(ssize_t, preadv64, (int, const struct iovec *, int, off_t))                                  \
    X(ssize_t, preadv2, (int, const struct iovec *, int, off_t, int))                              \
    X(ssize_t, preadv64v2, (int, const struct iovec *, int, off_t, int))                           \
    X(ssize_t, pwrite, (int, const void *, size_t, off_t))                                         \
    X(ssize_t, pwrite64, (int, const void *, size_t, off_t))                                       \
    X(ssize_t, pwritev, (int, const struct iovec *, int, off_t))                                   \
    X(ssize_t, pwritev64, (int, const struct iovec *, int, off_t))                                 \
    X(ssize_t, pwritev2, (int, const struct iovec *, int, off_t, int))                             \
    X(ssize_t, pwritev64v2, (int, const struct iovec *, int, off_t, int))                          \
    X(int, fsync, (int))                                                                           \
    X(int, fdatasync, (int))                                                                       \
    X(int, ftruncate, (int, off_t))                                                                \
    X(int, ftruncate64, (int, off_t))                                                              \
    X(int, rename, (const char *, const char *))                                                   \
    X(int, renameat, (int, const char *, int, const char *))                                       \
    X(int, renameat2, (int, const char *, int, const char *, unsigned))                            \
    X(int, unlink, (const char *))                                                                 \
    X(int, unlinkat, (int, const char *, int))

/* They can be called at any time: before they are looked up, they are system calls. */
struct ppt_real {
#define PPT_POINTER(result, name, parameters) result(*name) parameters;
    PPT_FUNCTIONS(PPT_POINTER)
#undef PPT_POINTER
};
extern struct ppt_real ppt_real;

#endif
