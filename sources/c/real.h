/* The functions that stand behind ours: those of the C library, or of another library that was
 * preloaded. */
#ifndef PPT_REAL_H
#define PPT_REAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* X(result, name, parameters), for each of them. */
#define PPT_FUNCTIONS(X)                                                                           \
    X(ssize_t, read, (int, void *, size_t))                                                        \
    X(ssize_t, readv, (int, const struct iovec *, int))                                            \
    X(ssize_t, recv, (int, void *, size_t, int))                                                   \
    X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *))               \
    X(ssize_t, recvmsg, (int, struct msghdr *, int))                                               \
    X(ssize_t, __read_chk, (int, void *, size_t, size_t))                                          \
    X(ssize_t, __recv_chk, (int, void *, size_t, size_t, int))                                     \
    X(ssize_t, __recvfrom_chk,                                                                     \
      (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *))                          \
    X(ssize_t, write, (int, const void *, size_t))                                                 \
    X(ssize_t, writev, (int, const struct iovec *, int))                                           \
    X(ssize_t, send, (int, const void *, size_t, int))                                             \
    X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))       \
    X(ssize_t, sendmsg, (int, const struct msghdr *, int))                                         \
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
    X(int, prctl, (int, unsigned long, unsigned long, unsigned long, unsigned long))

/* Each is callable at any time: before they are looked up, they are system calls. */
struct ppt_real {
#define PPT_POINTER(result, name, parameters) result(*name) parameters;
    PPT_FUNCTIONS(PPT_POINTER)
#undef PPT_POINTER
};
extern struct ppt_real ppt_real;

#endif
