/* read(2), write(2) and pread(2) that do nothing: what is left of a call is what stands before them. */
#include <stddef.h>
#include <sys/types.h>

ssize_t read(int fd, void *to, size_t size) {
    (void)fd, (void)to;
    return (ssize_t)size;
}

ssize_t write(int fd, const void *from, size_t size) {
    (void)fd, (void)from;
    return (ssize_t)size;
}

ssize_t pread(int fd, void *to, size_t size, off_t at) {
    (void)fd, (void)to, (void)at;
    return (ssize_t)size;
}
