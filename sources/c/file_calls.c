/* The functions that programs call instead of those of the C library to work with files; reads and writes
 * that may be on a connection, too, are in calls.c. While nobody is attached, each is one load, one branch
 * and a jump.
 *
 * Those with a variable number of arguments get the last one in the same place as others (x86-64 and aarch64),
 * so they are declared with it here. */
#include <errno.h>
#include <stddef.h>

#include "connection.h"
#include "file.h"
#include "real.h"

#define PPT_EXPORT __attribute__((visibility("default")))
#define PPT_OFF (__builtin_expect(!ppt_files_on(), 1))
/* Apart from the function that programs call, which then needs no stack. */
#define PPT_ON __attribute__((noinline))

/* A function that programs call, by its name, what it does, its descriptor or -1, and the rest. */
#define PPT_FILE_CALL(result, name, call, fd, arguments, ...)                                      \
    result name(__VA_ARGS__);                                                                      \
    static PPT_ON result on_##name(__VA_ARGS__) {                                                  \
        uint64_t start = ppt_files_now();                                                          \
        return (result)ppt_did_io(start, FILES_CALL_##call, fd, ppt_real.name arguments);          \
    }                                                                                              \
    PPT_EXPORT result name(__VA_ARGS__) {                                                          \
        return PPT_OFF ? ppt_real.name arguments : on_##name arguments;                            \
    }

/* The same for functions that make a descriptor. */
#define PPT_OPEN_CALL(name, arguments, ...)                                                        \
    int name(__VA_ARGS__);                                                                         \
    static PPT_ON int on_##name(__VA_ARGS__) {                                                     \
        uint64_t start = ppt_files_now();                                                          \
        int fd = ppt_real.name arguments;                                                          \
        if (fd >= 0)                                                                               \
            ppt_ending(fd);                                                                        \
        return (int)ppt_did_io(start, FILES_CALL_OPEN, fd, fd);                                    \
    }                                                                                              \
    PPT_EXPORT int name(__VA_ARGS__) {                                                             \
        return PPT_BOTH_OFF ? ppt_real.name arguments : on_##name arguments;                       \
    }

PPT_OPEN_CALL(open, (path, flags, mode), const char *path, int flags, unsigned mode)
PPT_OPEN_CALL(open64, (path, flags, mode), const char *path, int flags, unsigned mode)
PPT_OPEN_CALL(openat, (at, path, flags, mode), int at, const char *path, int flags, unsigned mode)
PPT_OPEN_CALL(openat64, (at, path, flags, mode), int at, const char *path, int flags, unsigned mode)
PPT_OPEN_CALL(creat, (path, mode), const char *path, unsigned mode)
PPT_OPEN_CALL(creat64, (path, mode), const char *path, unsigned mode)
PPT_OPEN_CALL(__open_2, (path, flags), const char *path, int flags)
PPT_OPEN_CALL(__open64_2, (path, flags), const char *path, int flags)
PPT_OPEN_CALL(__openat_2, (at, path, flags), int at, const char *path, int flags)
PPT_OPEN_CALL(__openat64_2, (at, path, flags), int at, const char *path, int flags)

PPT_FILE_CALL(ssize_t, pread, PREAD, fd, (fd, to, size, at), int fd, void *to, size_t size, off_t at)
PPT_FILE_CALL(ssize_t, pread64, PREAD, fd, (fd, to, size, at), int fd, void *to, size_t size,
              off_t at)
PPT_FILE_CALL(ssize_t, __pread_chk, PREAD, fd, (fd, to, size, at, room), int fd, void *to,
              size_t size, off_t at, size_t room)
PPT_FILE_CALL(ssize_t, __pread64_chk, PREAD, fd, (fd, to, size, at, room), int fd, void *to,
              size_t size, off_t at, size_t room)
PPT_FILE_CALL(ssize_t, preadv, PREAD, fd, (fd, to, count, at), int fd, const struct iovec *to,
              int count, off_t at)
PPT_FILE_CALL(ssize_t, preadv64, PREAD, fd, (fd, to, count, at), int fd, const struct iovec *to,
              int count, off_t at)
PPT_FILE_CALL(ssize_t, preadv2, PREAD, fd, (fd, to, count, at, flags), int fd,
              const struct iovec *to, int count, off_t at, int flags)
PPT_FILE_CALL(ssize_t, preadv64v2, PREAD, fd, (fd, to, count, at, flags), int fd,
              const struct iovec *to, int count, off_t at, int flags)

PPT_FILE_CALL(ssize_t, pwrite, PWRITE, fd, (fd, from, size, at), int fd, const void *from,
              size_t size, off_t at)
PPT_FILE_CALL(ssize_t, pwrite64, PWRITE, fd, (fd, from, size, at), int fd, const void *from,
              size_t size, off_t at)
PPT_FILE_CALL(ssize_t, pwritev, PWRITE, fd, (fd, from, count, at), int fd,
              const struct iovec *from, int count, off_t at)
PPT_FILE_CALL(ssize_t, pwritev64, PWRITE, fd, (fd, from, count, at), int fd,
              const struct iovec *from, int count, off_t at)
PPT_FILE_CALL(ssize_t, pwritev2, PWRITE, fd, (fd, from, count, at, flags), int fd,
              const struct iovec *from, int count, off_t at, int flags)
PPT_FILE_CALL(ssize_t, pwritev64v2, PWRITE, fd, (fd, from, count, at, flags), int fd,
              const struct iovec *from, int count, off_t at, int flags)

PPT_FILE_CALL(int, fsync, FSYNC, fd, (fd), int fd)
PPT_FILE_CALL(int, fdatasync, FDATASYNC, fd, (fd), int fd)
PPT_FILE_CALL(int, ftruncate, FTRUNCATE, fd, (fd, size), int fd, off_t size)
PPT_FILE_CALL(int, ftruncate64, FTRUNCATE, fd, (fd, size), int fd, off_t size)

PPT_FILE_CALL(int, rename, RENAME, -1, (from, to), const char *from, const char *to)
PPT_FILE_CALL(int, renameat, RENAME, -1, (from_at, from, to_at, to), int from_at, const char *from,
              int to_at, const char *to)
PPT_FILE_CALL(int, renameat2, RENAME, -1, (from_at, from, to_at, to, flags), int from_at,
              const char *from, int to_at, const char *to, unsigned flags)
PPT_FILE_CALL(int, unlink, UNLINK, -1, (path), const char *path)
PPT_FILE_CALL(int, unlinkat, UNLINK, -1, (at, path, flags), int at, const char *path, int flags)
