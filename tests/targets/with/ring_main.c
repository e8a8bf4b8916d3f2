/* Sends requests over a connection, and answers them: by calls of the C library, or through an io_uring.
 *
 * usage: ring        Prints "ready". Each line of stdin makes a step:
 *   plain N          N requests by write and read: prints "plain N"
 *   open             makes a ring: prints "ring", or "refused WHY"
 *   ring N           N requests through the ring: prints "through N"
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
} ring;

static void must(int is_so, const char *what) {
    if (!is_so) {
        perror(what);
        exit(1);
    }
}

static void *mapped(size_t size, uint64_t offset) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, (off_t)offset);
    must(at != MAP_FAILED, "mmap");
    return at;
}

/* Makes the ring. Returns false if the kernel does not. */
static int opened(void) {
    struct io_uring_params asked;
    memset(&asked, 0, sizeof asked);
    ring.fd = (int)syscall(SYS_io_uring_setup, 4, &asked);
    if (ring.fd < 0) return 0;
    char *sq = mapped(asked.sq_off.array + asked.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    char *cq = mapped(asked.cq_off.cqes + asked.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring.sqes = mapped(asked.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring.sq_tail = (unsigned *)(sq + asked.sq_off.tail);
    ring.sq_mask = (unsigned *)(sq + asked.sq_off.ring_mask);
    ring.sq_array = (unsigned *)(sq + asked.sq_off.array);
    ring.cq_head = (unsigned *)(cq + asked.cq_off.head);
    ring.cq_tail = (unsigned *)(cq + asked.cq_off.tail);
    ring.cq_mask = (unsigned *)(cq + asked.cq_off.ring_mask);
    ring.cqes = (struct io_uring_cqe *)(cq + asked.cq_off.cqes);
    return 1;
}

/* One operation, waited for. */
static void through(int operation, int fd, char *bytes, unsigned size) {
    unsigned tail = *ring.sq_tail, slot = tail & *ring.sq_mask;
    struct io_uring_sqe *sqe = &ring.sqes[slot];
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = (uint8_t)operation;
    sqe->fd = fd;
    sqe->addr = (uintptr_t)bytes;
    sqe->len = size;
    ring.sq_array[slot] = slot;
    __atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
    must(syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1, "io_uring_enter");
    unsigned head = *ring.cq_head;
    must(head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE), "no completion");
    int result = ring.cqes[head & *ring.cq_mask].res;
    __atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
    errno = -result;
    must(result == (int)size, "an operation");
}

static void plain(int operation, int fd, char *bytes, unsigned size) {
    ssize_t done = operation == IORING_OP_SEND ? write(fd, bytes, size) : read(fd, bytes, size);
    must(done == (ssize_t)size, "write, read");
}

static void exchange(void (*move)(int, int, char *, unsigned), const int ends[2], int count) {
    char bytes[16] = "a short message";
    for (int number = 0; number < count; number++) {
        move(IORING_OP_SEND, ends[0], bytes, sizeof bytes);
        move(IORING_OP_RECV, ends[1], bytes, sizeof bytes);
        move(IORING_OP_SEND, ends[1], bytes, sizeof bytes);
        move(IORING_OP_RECV, ends[0], bytes, sizeof bytes);
    }
}

/* Both ends of a connection to itself. */
static void connected(int ends[2]) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0, "listen");
    must(getsockname(listener, (struct sockaddr *)&at, &size) == 0, "getsockname");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(ends[0], (struct sockaddr *)&at, size) == 0, "connect");
    ends[1] = accept(listener, NULL, NULL);
    must(ends[1] >= 0, "accept");
    close(listener);
}

int main(void) {
    int ends[2];
    char line[64], word[16];
    connected(ends);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        int count = 0;
        if (sscanf(line, "%15s %d", word, &count) < 1) continue;
        if (!strcmp(word, "open")) {
            if (opened()) puts("ring");
            else printf("refused %s\n", strerror(errno));
        } else if (!strcmp(word, "ring")) {
            exchange(through, ends, count);
            printf("through %d\n", count);
        } else {
            exchange(plain, ends, count);
            printf("plain %d\n", count);
        }
    }
    return 0;
}
