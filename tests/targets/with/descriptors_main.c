/* Makes, copies, passes, uses and closes descriptors at random, and counts what it does:
 *
 *     descriptors_main SEED OPERATIONS raw|plain
 *
 * Two threads do so at once, so that each gets numbers that the other one has closed. With `raw`, some
 * closing and making is done without the C library. Nothing here knows of ppt. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));           \
            exit(1);                                                                               \
        }                                                                                          \
    while (0)

/* A system call without the C library. */
static long raw(long number, long a, long b, long c, long d) {
#ifdef __x86_64__
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long eighth __asm__("x8") = number;
    register long x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(eighth), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#endif
}

enum { NONE, A_FILE, A_PIPE, AN_EVENT, A_CONNECTION, KINDS };

/* What it has: one descriptor, or two ends. Of a connection, the first one is the client. */
typedef struct thing {
    int kind, ends[2];
} thing;

#define THINGS 12
typedef struct worker {
    unsigned long served, called, reads, writes, opens;
    uint64_t state;
    thing things[THINGS];
    int number, operations, is_raw, tcp, path, pair[2];
    struct sockaddr_in tcp_address;
    struct sockaddr_un path_address;
} worker;

static unsigned pick(worker *w, unsigned below) {
    w->state = w->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(w->state >> 33) % below;
}

static void passed_to(int over, int fd) {
    char byte = 1;
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    CHECK(sendmsg(over, &message, 0) == 1);
}

static int passed_from(int over) {
    char byte;
    int fd;
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    CHECK(recvmsg(over, &message, 0) == 1 && message.msg_controllen >= sizeof(struct cmsghdr));
    memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
    return fd;
}

static void close_one(worker *w, int fd) {
    FILE *stream;
    switch (pick(w, w->is_raw ? 8 : 6)) {
    case 0: CHECK(syscall(SYS_close, fd) == 0); break;
    case 1: CHECK(close_range((unsigned)fd, (unsigned)fd, 0) == 0); break;
    case 2: CHECK(syscall(SYS_close_range, fd, fd, 0) == 0); break;
    case 3:
        if ((stream = fdopen(fd, "r"))) {
            CHECK(fclose(stream) == 0);
            break;
        }
        /* It was opened for writing. */
        /* fall through */
    case 4:
    case 5: CHECK(close(fd) == 0); break;
    default: CHECK(raw(SYS_close, fd, 0, 0, 0) == 0);
    }
}

/* The same file, by another number. */
static int moved(worker *w, int fd) {
    int to, high = 200 + w->number * 100 + (int)pick(w, 40);
    switch (pick(w, w->is_raw ? 9 : 8)) {
    case 0: to = dup(fd); break;
    case 1: to = fcntl(fd, F_DUPFD, 3); break;
    case 2: to = fcntl(fd, F_DUPFD_CLOEXEC, high); break;
    case 3: to = (int)syscall(SYS_dup, fd); break;
    case 4:
        passed_to(w->pair[0], fd);
        to = passed_from(w->pair[1]);
        break;
    case 5: CHECK((to = dup(1)) >= 0 && dup2(fd, to) == to); break;
    case 6: CHECK((to = eventfd(0, 0)) >= 0 && dup3(fd, to, O_CLOEXEC) == to); break;
    case 7: CHECK((to = dup(0)) >= 0 && syscall(SYS_dup3, fd, to, 0) == to); break;
    default: CHECK((to = dup(1)) >= 0 && raw(SYS_dup3, fd, to, 0, 0) == to);
    }
    CHECK(to >= 0);
    close_one(w, fd);
    return to;
}

static ssize_t put(worker *w, int fd, size_t size) {
    char bytes[64] = {1};
    struct iovec parts[2] = {{bytes, 1}, {bytes + 1, size - 1}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                                  {.msg_hdr = {.msg_iov = parts + 1, .msg_iovlen = 1}}};
    switch (pick(w, 6)) {
    case 0: return send(fd, bytes, size, MSG_NOSIGNAL);
    case 1: return sendto(fd, bytes, size, 0, NULL, 0);
    case 2: return sendmsg(fd, &message, 0);
    case 3: return writev(fd, parts, 2);
    case 4: CHECK(sendmmsg(fd, messages, 2, 0) == 2); return (ssize_t)size;
    default: return write(fd, bytes, size);
    }
}

static void get(worker *w, int fd, size_t size) {
    char bytes[64];
    while (size > 0) {
        struct iovec part = {bytes, size};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        struct mmsghdr messages[1] = {{.msg_hdr = message}};
        ssize_t got;
        switch (pick(w, 6)) {
        case 0: got = recv(fd, bytes, size, 0); break;
        case 1: got = recvfrom(fd, bytes, size, 0, NULL, NULL); break;
        case 2: got = recvmsg(fd, &message, 0); break;
        case 3: got = readv(fd, &part, 1); break;
        case 4: got = recvmmsg(fd, messages, 1, 0, NULL) == 1 ? (ssize_t)messages[0].msg_len : -1; break;
        default: got = read(fd, bytes, size);
        }
        CHECK(got > 0);
        size -= (size_t)got;
    }
}

static void answer(worker *w, const thing *it, size_t question) {
    size_t size = 2 + pick(w, 50);
    get(w, it->ends[1], question);
    CHECK(put(w, it->ends[1], size) == (ssize_t)size);
    get(w, it->ends[0], size);
    w->served++, w->called++;
}

/* Some clients send with the packet that connects, and some take a name of their own. */
static void connect_one(worker *w, thing *it) {
    int is_path = pick(w, 3) == 0, first = 0, on = 1;
    const struct sockaddr *to = is_path ? (struct sockaddr *)&w->path_address : (struct sockaddr *)&w->tcp_address;
    socklen_t length = is_path ? sizeof w->path_address : sizeof w->tcp_address;
    char bytes[8] = "request";
    struct iovec part = {bytes, 8};
    struct mmsghdr message = {.msg_hdr = {.msg_name = (void *)to, .msg_namelen = length,
                                          .msg_iov = &part, .msg_iovlen = 1}};
    CHECK((it->ends[0] = socket(to->sa_family, SOCK_STREAM, 0)) >= 0);
    switch (pick(w, 6)) {
    case 0:
        first = !is_path && sendto(it->ends[0], bytes, 8, MSG_FASTOPEN, to, length) == 8;
        break;
    case 1: first = !is_path && sendmsg(it->ends[0], &message.msg_hdr, MSG_FASTOPEN) == 8; break;
    case 2: first = !is_path && sendmmsg(it->ends[0], &message, 1, MSG_FASTOPEN) == 1; break;
    case 3:
        if (!is_path)
            setsockopt(it->ends[0], IPPROTO_TCP, 30 /* TCP_FASTOPEN_CONNECT */, &on, sizeof on);
        break;
    case 4:
        if (is_path) /* an abstract name, which the kernel chooses */
            CHECK(bind(it->ends[0], (struct sockaddr *)&(struct sockaddr_un){.sun_family = AF_UNIX},
                       sizeof(sa_family_t)) == 0);
    }
    if (!is_path)
        setsockopt(it->ends[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!first) {
        CHECK((w->is_raw && pick(w, 2) ? raw(SYS_connect, it->ends[0], (long)to, length, 0)
                                       : connect(it->ends[0], to, length)) == 0);
        CHECK(put(w, it->ends[0], 8) == 8);
    }
    int at = is_path ? w->path : w->tcp;
    switch (pick(w, w->is_raw ? 4 : 3)) {
    case 0: it->ends[1] = accept(at, NULL, NULL); break;
    case 1: it->ends[1] = accept4(at, NULL, NULL, SOCK_CLOEXEC); break;
    case 2: it->ends[1] = (int)syscall(SYS_accept4, at, NULL, NULL, 0); break;
    default: it->ends[1] = (int)raw(SYS_accept4, at, 0, 0, 0);
    }
    CHECK(it->ends[1] >= 0);
    if (!is_path)
        setsockopt(it->ends[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    answer(w, it, 8);
}

static void make(worker *w, thing *it) {
    char name[32];
    FILE *stream;
    it->kind = A_FILE + (int)pick(w, KINDS - A_FILE);
    it->ends[1] = -1;
    switch (it->kind) {
    case A_FILE:
        snprintf(name, sizeof name, "file.%d", w->number);
        switch (pick(w, w->is_raw ? 7 : 6)) {
        case 0: it->ends[0] = open(name, O_RDWR | O_CREAT, 0600), w->opens++; break;
        case 1: it->ends[0] = openat(AT_FDCWD, name, O_RDWR | O_CREAT, 0600), w->opens++; break;
        case 2: it->ends[0] = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT, 0600); break;
        case 3: it->ends[0] = memfd_create("memory", 0); break;
        case 4: /* as std::ifstream does */
            CHECK((stream = fopen("/proc/self/exe", "r")) && read(fileno(stream), name, 8) == 8);
            w->reads++;
            CHECK(fclose(stream) == 0);
            CHECK((stream = fopen(name + 16, "r")) == NULL);
            it->ends[0] = eventfd(0, 0);
            it->kind = AN_EVENT;
            break;
        case 5: it->ends[0] = open("/proc/self/exe", O_RDONLY), w->opens++; break;
        default: it->ends[0] = (int)raw(SYS_openat, AT_FDCWD, (long)name, O_RDWR | O_CREAT, 0600);
        }
        break;
    case A_PIPE:
        CHECK((pick(w, 2) ? pipe(it->ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, it->ends)) == 0);
        break;
    case AN_EVENT: it->ends[0] = eventfd(0, 0); break;
    default: connect_one(w, it);
    }
    CHECK(it->ends[0] >= 0);
}

static void use(worker *w, thing *it) {
    char text[64] = {0};
    uint64_t one = 1;
    size_t size = 2 + pick(w, 50);
    switch (it->kind) {
    case A_FILE:
        if ((fcntl(it->ends[0], F_GETFL) & O_ACCMODE) == O_RDWR)
            CHECK(write(it->ends[0], text, size) == (ssize_t)size && ++w->writes);
        CHECK(read(it->ends[0], text, size) >= 0 && ++w->reads);
        CHECK(lseek(it->ends[0], 0, SEEK_SET) == 0);
        break;
    case A_PIPE:
        CHECK(write(it->ends[1], text, size) == (ssize_t)size && read(it->ends[0], text, 64) == (ssize_t)size);
        break;
    case AN_EVENT: CHECK(write(it->ends[0], &one, 8) == 8 && read(it->ends[0], &one, 8) == 8); break;
    default:
        CHECK(put(w, it->ends[0], size) == (ssize_t)size);
        answer(w, it, size);
    }
}

/* A child that has this memory, and other descriptors. */
static void disturb(thing *it) {
    pid_t child = vfork();
    if (child == 0) {
        dup2(0, it->ends[0]);
        fcntl(1, F_DUPFD, 3);
        syscall(SYS_close, it->ends[0]);
        close_range(3, ~0U, 0);
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void *work(void *of) {
    worker *w = of;
    for (int i = 0; i < w->operations; i++) {
        thing *it = &w->things[pick(w, THINGS)];
        unsigned what = pick(w, 100);
        if (it->kind == NONE) {
            make(w, it);
        } else if (what < 70) {
            use(w, it);
        } else if (what < 84) {
            int which = it->ends[1] >= 0 && pick(w, 2);
            it->ends[which] = moved(w, it->ends[which]);
        } else if (what < 99 || pick(w, 8) != 0) {
            for (int end = 0; end < 2; end++)
                if (it->ends[end] >= 0)
                    close_one(w, it->ends[end]);
            it->kind = NONE;
        } else {
            disturb(it);
        }
    }
    return NULL;
}

static void prepare(worker *w) {
    socklen_t length = sizeof w->tcp_address;
    w->tcp_address.sin_family = AF_INET;
    w->tcp_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    w->tcp = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(w->tcp, (struct sockaddr *)&w->tcp_address, length) == 0 && listen(w->tcp, 16) == 0);
    CHECK(getsockname(w->tcp, (struct sockaddr *)&w->tcp_address, &length) == 0);
    w->path_address.sun_family = AF_UNIX;
    snprintf(w->path_address.sun_path, sizeof w->path_address.sun_path, "path.%d", w->number);
    w->path = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(w->path, (struct sockaddr *)&w->path_address, sizeof w->path_address) == 0);
    CHECK(listen(w->path, 16) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, w->pair) == 0);
}

int main(int argc, char **argv) {
    static worker workers[2];
    pthread_t threads[2];
    CHECK(argc == 4);
    for (int i = 0; i < 2; i++) {
        workers[i].number = i;
        workers[i].state = strtoull(argv[1], NULL, 10) * 2 + (unsigned)i;
        workers[i].operations = atoi(argv[2]) / 2;
        workers[i].is_raw = strcmp(argv[3], "raw") == 0;
        prepare(&workers[i]);
    }
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
#define SUM(name) (workers[0].name + workers[1].name)
    printf("served %lu\ncalled %lu\nREAD %lu\nWRITE %lu\nOPEN %lu\n", SUM(served), SUM(called), SUM(reads),
           SUM(writes), SUM(opens));
    return 0;
}
