/* read(2) and write(2) that do nothing: what is left of a call is what stands before them. */
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
