/* Works with files, and counts what it does: filing_main CASE [NUMBER].
 *
 * `calls`: each function, NUMBER times. `numbers`: descriptors that are files, pipes and files again.
 * `returns`: what each function returns, and errno, in lines. Nothing here knows of ppt. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));           \
            exit(1);                                                                               \
        }                                                                                          \
    while (0)

enum { OPEN, READ, WRITE, PREAD, PWRITE, FSYNC, FDATASYNC, RENAME, UNLINK, FTRUNCATE, CALLS };
static const char *const names[] = {"OPEN",  "READ",      "WRITE",  "PREAD",  "PWRITE",
                                    "FSYNC", "FDATASYNC", "RENAME", "UNLINK", "FTRUNCATE"};
static unsigned long calls[CALLS], failed, bytes;
static char text[4096];

/* Counts a call, and what it moved. */
static long count(int call, long result) {
    calls[call]++;
    if (result < 0)
        failed++;
    else if (call >= READ && call <= PWRITE)
        bytes += (unsigned long)result;
    return result;
}

#define DID(call, function) count(call, (long)(function))

static void every_call(void) {
    struct iovec parts[2] = {{text, 100}, {text + 100, 50}};
    int fd = (int)DID(OPEN, open("data", O_RDWR | O_CREAT | O_TRUNC, 0600));
    CHECK(fd >= 0);
    CHECK(DID(WRITE, write(fd, text, 300)) == 300);
    CHECK(DID(WRITE, writev(fd, parts, 2)) == 150);
    CHECK(DID(PWRITE, pwrite(fd, text, 1000, 4096)) == 1000);
    CHECK(DID(PWRITE, pwritev(fd, parts, 2, 10)) == 150);
    CHECK(DID(FSYNC, fsync(fd)) == 0);
    CHECK(DID(FDATASYNC, fdatasync(fd)) == 0);
    CHECK(DID(PREAD, pread(fd, text, 4096, 0)) == 4096);
    CHECK(DID(PREAD, pread(fd, text, 4096, 5000)) == 96);
    CHECK(DID(PREAD, preadv(fd, parts, 2, 0)) == 150);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK(DID(READ, read(fd, text, 100)) == 100);
    CHECK(DID(READ, readv(fd, parts, 2)) == 150);
#ifdef __GLIBC__
    CHECK(DID(PREAD, preadv2(fd, parts, 2, 0, 0)) == 150);
    CHECK(DID(PWRITE, pwritev2(fd, parts, 2, 0, 0)) == 150);
    CHECK(DID(RENAME, renameat2(AT_FDCWD, "data", AT_FDCWD, "third", 1)) == 0);
    CHECK(DID(RENAME, rename("third", "data")) == 0);
#endif
    CHECK(DID(FTRUNCATE, ftruncate(fd, 10)) == 0);
    CHECK(close(fd) == 0);
    CHECK(DID(RENAME, rename("data", "other")) == 0);
    CHECK(DID(RENAME, renameat(AT_FDCWD, "other", AT_FDCWD, "data")) == 0);
    fd = (int)DID(OPEN, openat(AT_FDCWD, "data", O_RDONLY));
    CHECK(DID(READ, read(fd, text, 4096)) == 10);
    CHECK(DID(READ, read(fd, text, 4096)) == 0);
    CHECK(close(fd) == 0);
    fd = (int)DID(OPEN, creat("data", 0600));
    CHECK(close(fd) == 0);
    CHECK(DID(UNLINK, unlink("data")) == 0);
    /* Those that fail. */
    CHECK(DID(OPEN, open("nowhere", O_RDONLY)) == -1 && errno == ENOENT);
    CHECK(DID(UNLINK, unlinkat(AT_FDCWD, "nowhere", 0)) == -1 && errno == ENOENT);
    CHECK(DID(PREAD, pread(-1, text, 1, 0)) == -1 && errno == EBADF);
    CHECK(DID(FSYNC, fsync(-1)) == -1 && errno == EBADF);
    /* What is no file. */
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], text, 10) == 10 && read(ends[0], text, 10) == 10);
    CHECK(read(-1, text, 1) == -1 && errno == EBADF);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* The same number is one after the other a file, a pipe, a socket, and a file again. */
static void numbers(void) {
    int fd = (int)DID(OPEN, open("data", O_RDWR | O_CREAT, 0600)), ends[2];
    CHECK(DID(WRITE, write(fd, text, 5)) == 5);
    CHECK(close(fd) == 0);
    CHECK(pipe(ends) == 0 && ends[0] == fd);
    CHECK(write(ends[1], text, 7) == 7 && read(fd, text, 7) == 7);
    int file = (int)DID(OPEN, open("data", O_RDWR));
    CHECK(dup2(file, fd) == fd);
    CHECK(DID(READ, read(fd, text, 100)) == 5);
    CHECK(DID(WRITE, write(file, text, 2)) == 2);
    CHECK(close(file) == 0 && close(ends[1]) == 0);
    /* A child of vfork(2) closes its own. */
    pid_t child = vfork();
    if (child == 0) {
        close(fd);
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(DID(WRITE, write(fd, text, 2)) == 2);
#ifdef __GLIBC__
    CHECK(close_range((unsigned)fd, (unsigned)fd, 0) == 0);
#else
    CHECK(close(fd) == 0);
#endif
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && ends[0] == fd);
    CHECK(write(fd, text, 3) == 3 && read(ends[1], text, 3) == 3);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    CHECK(DID(UNLINK, unlink("data")) == 0);
}

#define SAY(call)                                                                                  \
    do {                                                                                           \
        errno = 7;                                                                                 \
        long said = (long)(call);                                                                  \
        printf("%s: %ld, errno %d\n", #call, said, errno);                                         \
    } while (0)

static void returns(void) {
    struct iovec part = {text, 10};
    /* The compiler must not see that they are wrong. */
    void *volatile nowhere = (char *)1;
    volatile int too_few = -1, too_many = 5000;
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0640), flags = O_RDONLY, ends[2];
    SAY(umask(022));
    SAY(open("made", O_CREAT | O_WRONLY, 0604));
    SAY(open("made", O_CREAT | O_EXCL | O_WRONLY, 0604));
    SAY(openat(fd, "made", O_RDONLY));
    SAY(openat(-1, "made", O_RDONLY));
    SAY(open("nowhere/made", O_CREAT, 0600));
    SAY(open(".", O_WRONLY));
    SAY(open(".", O_TMPFILE | O_RDWR, 0600));
    SAY(open("data", flags));
    SAY(creat("made", 0600));
    SAY(write(fd, text, 100));
    SAY(write(fd, nowhere, 100));
    SAY(write(999, text, 100));
    SAY(read(fd, text, 100));
    SAY(read(fd, nowhere, 100));
    SAY(pread(fd, text, 100, 50));
    SAY(pread(fd, text, 100, -1));
    SAY(pread(fd, nowhere, 100, 0));
    SAY(pwrite(fd, text, 100, -1));
    SAY(pwrite(-1, text, 100, 0));
    SAY(preadv(fd, &part, 1, 0));
    SAY(preadv(fd, &part, too_few, 0));
    SAY(pwritev(fd, &part, 1, 0));
    SAY(readv(fd, &part, too_many));
    SAY(fsync(fd));
    SAY(fsync(999));
    SAY(fdatasync(-1));
    SAY(ftruncate(fd, 7));
    SAY(ftruncate(fd, -7));
    SAY(ftruncate(0, 7));
    SAY(rename("data", "nowhere/data"));
    SAY(rename("data", "made"));
    SAY(renameat(AT_FDCWD, "made", fd, "data"));
    SAY(unlink("."));
    SAY(unlink("made"));
    SAY(unlink("made"));
    SAY(unlinkat(AT_FDCWD, ".", AT_REMOVEDIR));
    SAY(pipe(ends));
    SAY(pread(ends[0], text, 10, 0));
    SAY(fsync(ends[1]));
    SAY(close(ends[0]));
    SAY(syscall(SYS_copy_file_range, fd, NULL, fd, &(off_t){90}, 5, 0L));
    SAY(syscall(SYS_copy_file_range, fd, NULL, fd, &(off_t){90}, 5, 1L)); /* no such flag */
    SAY(syscall(SYS_close, 999));
    SAY(syscall(SYS_dup3, 999, fd, 0));
    SAY(syscall(SYS_close_range, 9, 8, 0));
    SAY(fclose(fopen("/proc/self/exe", "r")));
    SAY(freopen("nowhere", "r", fopen("/proc/self/exe", "r")) != NULL);
    SAY(pclose(popen("exit 3", "r")));
    signal(SIGPIPE, SIG_IGN);
    SAY(write(ends[1], text, 10));
    SAY(close(ends[1]));
    SAY(close(ends[1]));
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long number = argc > 2 ? atol(argv[2]) : 1;
    if (strcmp(what, "returns") == 0) {
        returns();
        return 0;
    }
    for (volatile long i = 0; i < number; i++)
        if (strcmp(what, "calls") == 0)
            every_call();
        else if (strcmp(what, "numbers") == 0)
            numbers();
    for (int call = 0; call < CALLS; call++)
        printf("%s %lu\n", names[call], calls[call]);
    printf("failed %lu\nbytes %lu\n", failed, bytes);
    fflush(stdout);
    return 0;
}
