/* A file system with copies of some files, which answers until it is told otherwise: fuse FOLDER FILE…
 *
 * It mounts in a namespace of its own, so nothing is left when it has ended: after five minutes at most. Commands on
 * stdin:
 *   slow MS       answers after so many milliseconds
 *   silent N      answers N more requests, and then none
 *   silent N KIND the same, of this kind (an opcode of linux/fuse.h)
 *   no flush      knows no FLUSH, so that a close asks nothing */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ROOM (1 << 20)

static int fuse, files, silent, slow, left = -1, kind, flushes = 1;
static char **paths;

static void die(const char *what) {
    printf("ready, but no %s: %s\n", what, strerror(errno));
    exit(1);
}

static void answer(uint64_t unique, int error, const void *bytes, size_t length) {
    struct fuse_out_header head = {.len = sizeof head + length, .error = -error, .unique = unique};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)bytes, length}};
    if (writev(fuse, parts, error || !length ? 1 : 2) < 0 && errno != ENOENT) die("answer");
}

/* Attributes are asked for each time: none is valid for a moment. */
static struct fuse_attr attributes(uint64_t node) {
    struct stat found = {.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    if (node > 1 && stat(paths[node - 2], &found)) die("stat");
    return (struct fuse_attr){.ino = node, .size = found.st_size, .mode = found.st_mode, .nlink = found.st_nlink,
                              .mtime = found.st_mtime, .ctime = found.st_mtime, .blksize = 4096};
}

static void request(char *bytes) {
    struct fuse_in_header *head = (void *)bytes;
    void *body = bytes + sizeof *head;
    uint64_t node = head->nodeid, unique = head->unique;
    if (left >= 0 && (!kind || kind == (int)head->opcode) && left-- == 0) silent = 1;
    if (head->opcode == FUSE_FORGET || head->opcode == FUSE_BATCH_FORGET || head->opcode == FUSE_INTERRUPT || silent) return;
    if (slow) nanosleep(&(struct timespec){.tv_nsec = slow * 1000000L}, NULL);
    switch (head->opcode) {
    case FUSE_INIT: {
        struct fuse_init_out out = {.major = 7, .minor = 31, .max_readahead = 1 << 17, .max_write = 1 << 17};
        answer(unique, 0, &out, sizeof out);
        break;
    }
    case FUSE_LOOKUP: {
        int at = 0;
        while (at < files && strcmp(strrchr(paths[at], '/') + 1, body)) at++;
        struct fuse_entry_out out = {.nodeid = at + 2};
        if (at < files) out.attr = attributes(at + 2);
        answer(unique, at < files ? 0 : ENOENT, &out, sizeof out);
        break;
    }
    case FUSE_GETATTR: {
        struct fuse_attr_out out = {.attr = attributes(node)};
        answer(unique, 0, &out, sizeof out);
        break;
    }
    case FUSE_OPEN: {
        struct fuse_open_out out = {.fh = open(paths[node - 2], O_RDONLY)};
        answer(unique, 0, &out, sizeof out);
        break;
    }
    case FUSE_READ: {
        struct fuse_read_in *in = body;
        static char room[ROOM];
        ssize_t got = pread(in->fh, room, in->size < ROOM ? in->size : ROOM, in->offset);
        answer(unique, got < 0 ? errno : 0, room, got < 0 ? 0 : got);
        break;
    }
    case FUSE_RELEASE:
        close(((struct fuse_release_in *)body)->fh);
        answer(unique, 0, NULL, 0);
        break;
    case FUSE_FLUSH:
        answer(unique, flushes ? 0 : ENOSYS, NULL, 0);
        break;
    case FUSE_ACCESS:
        answer(unique, 0, NULL, 0);
        break;
    case FUSE_STATFS: {
        struct fuse_statfs_out out = {.st = {.bsize = 4096, .namelen = 255}};
        answer(unique, 0, &out, sizeof out);
        break;
    }
    default:
        answer(unique, ENOSYS, NULL, 0);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    paths = argv + 2, files = argc - 2;
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) die("namespace");
    if ((fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC)) < 0) die("/dev/fuse");
    char options[99];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
    if (mount("ppt-test", argv[1], "fuse.test", MS_NOSUID | MS_NODEV, options)) die("mount");
    alarm(300);
    puts("ready");
    fflush(stdout);
    static char bytes[ROOM + 4096], line[99];
    for (;;) {
        struct pollfd waits[] = {{fuse, POLLIN, 0}, {0, POLLIN, 0}};
        if (poll(waits, 2, -1) < 0) die("poll");
        if (waits[1].revents) {
            ssize_t got = read(0, line, sizeof line - 1);
            if (got <= 0) return 0;
            line[got] = 0;
            if (!strcmp(line, "no flush\n")) flushes = 0;
            else if (sscanf(line, "silent %d %d", &left, &kind) < 1) sscanf(line, "slow %d", &slow);
            puts("done");
            fflush(stdout);
        }
        if (waits[0].revents && read(fuse, bytes, sizeof bytes) > 0) request(bytes);
    }
}
