/* A server and its client in one process, which count what they do: exchange_main CASE [NUMBER].
 *
 * It says what was asked and answered, in lines `NAME VALUE`. Nothing here knows of ppt. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__ /* musl's compiler does not find the kernel's headers */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#endif
#include <sys/sendfile.h>
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

#ifndef __GLIBC__ /* musl has no such function */
#define close_range(first, last, flags) syscall(SYS_close_range, first, last, flags)
#endif

static unsigned long served, called, unanswered, unasked, bytes_in, bytes_out;

/* Both ends of a connection. */
typedef struct both {
    int client, server;
} both;

static int listener(struct sockaddr_in *address) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof *address;
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(fd, (struct sockaddr *)address, length) == 0);
    CHECK(listen(fd, 100) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)address, &length) == 0);
    return fd;
}

static both connected(void) {
    struct sockaddr_in address;
    int at = listener(&address);
    both b = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
    CHECK(connect(b.client, (struct sockaddr *)&address, sizeof address) == 0);
    b.server = accept(at, NULL, NULL);
    CHECK(b.server >= 0);
    int on = 1;
    setsockopt(b.client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(b.server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    CHECK(close(at) == 0);
    return b;
}

static void close_both(both b) {
    CHECK(close(b.client) == 0);
    CHECK(close(b.server) == 0);
}

static void receive(int fd, size_t size) {
    char bytes[65536];
    while (size > 0) {
        ssize_t got = read(fd, bytes, size < sizeof bytes ? size : sizeof bytes);
        CHECK(got > 0);
        size -= (size_t)got;
    }
}

static void transmit(int fd, size_t size) {
    char bytes[4096] = {0};
    while (size > 0) {
        ssize_t sent = write(fd, bytes, size < sizeof bytes ? size : sizeof bytes);
        CHECK(sent > 0);
        size -= (size_t)sent;
    }
}

/* A request and its answer. */
static void exchange(both b, size_t question, size_t answer) {
    transmit(b.client, question);
    receive(b.server, question);
    transmit(b.server, answer);
    receive(b.client, answer);
    served++, called++;
    bytes_in += question;
    bytes_out += answer;
}

static void plain(int number) {
    both one = connected(), two = connected();
    for (int i = 0; i < number; i++)
        exchange(i % 3 ? one : two, 20 + i % 50, 1 + i % 3000);
    close_both(one);
    close_both(two);
}

/* Every function that sends or receives. */
static void functions(int number) {
    both b = connected();
    char text[64], other[64];
    struct iovec parts[2] = {{text, 3}, {other, 5}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int ends[2];
    CHECK(file >= 0 && pipe2(ends, O_CLOEXEC) == 0);
    for (int i = 0; i < number; i++) {
        CHECK(send(b.client, "request.", 8, 0) == 8);
        switch (i % 7) {
        case 0: CHECK(read(b.server, text, 8) == 8); break;
        case 1: CHECK(recv(b.server, text, 8, 0) == 8); break;
        case 2: CHECK(recvfrom(b.server, text, 8, 0, NULL, NULL) == 8); break;
        case 3: CHECK(recvmsg(b.server, &message, 0) == 8); break;
        case 4: CHECK(readv(b.server, parts, 2) == 8); break;
        case 5: CHECK(recv(b.server, text, 4, 0) == 4 && read(b.server, text, 4) == 4); break;
        case 6: CHECK(splice(b.server, NULL, ends[1], NULL, 8, 0) == 8 && read(ends[0], text, 8) == 8);
        }
        off_t from = 0;
        switch (i / 7 % 7) {
        case 0: CHECK(write(b.server, "answer..", 8) == 8); break;
        case 1: CHECK(send(b.server, "answer..", 8, MSG_NOSIGNAL) == 8); break;
        case 2: CHECK(sendto(b.server, "answer..", 8, 0, NULL, 0) == 8); break;
        case 3: CHECK(sendmsg(b.server, &message, 0) == 8); break;
        case 4: CHECK(writev(b.server, parts, 2) == 8); break;
        case 5: CHECK(sendfile(b.server, file, &from, 8) == 8); break;
        case 6: CHECK(write(ends[1], text, 8) == 8 && splice(ends[0], NULL, b.server, NULL, 8, 0) == 8);
        }
        CHECK(recv(b.client, text, 8, MSG_WAITALL) == 8);
        served++, called++;
        bytes_in += 8, bytes_out += 8;
    }
    close_both(b);
    close(file), close(ends[0]), close(ends[1]);
}

/* A look at bytes that stay there is the begin of a request, and no byte of it. */
static void peek(int number) {
    both b = connected();
    char text[16];
    for (int i = 0; i < number; i++) {
        transmit(b.client, 10);
        CHECK(recv(b.server, text, 10, MSG_PEEK) == 10);
        CHECK(recv(b.server, text, 1, MSG_PEEK) == 1);
        receive(b.server, 10);
        transmit(b.server, 5);
        CHECK(recv(b.client, text, 5, MSG_PEEK) > 0);
        receive(b.client, 5);
        served++, called++;
        bytes_in += 10, bytes_out += 5;
    }
    close_both(b);
}

/* The client sends no more, and still gets its answer. */
static void half_closed(int number) {
    for (int i = 0; i < number; i++) {
        both b = connected();
        char text[16];
        transmit(b.client, 10);
        CHECK(shutdown(b.client, SHUT_WR) == 0);
        receive(b.server, 10);
        CHECK(read(b.server, text, sizeof text) == 0);
        transmit(b.server, 7);
        CHECK(shutdown(b.server, SHUT_WR) == 0);
        receive(b.client, 7);
        CHECK(read(b.client, text, sizeof text) == 0);
        served++, called++;
        bytes_in += 10, bytes_out += 7;
        close_both(b);
    }
}

/* The client goes away: by a reset, or before it is answered. */
static void reset(int number) {
    for (int i = 0; i < number; i++) {
        both b = connected();
        exchange(b, 10, 20);
        transmit(b.client, 10);
        receive(b.server, 10);
        struct linger now = {1, 0};
        CHECK(setsockopt(b.client, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
        CHECK(close(b.client) == 0);
        char text[16];
        struct pollfd p = {b.server, POLLIN, 0};
        CHECK(poll(&p, 1, 10000) == 1);
        CHECK(read(b.server, text, sizeof text) == -1 && errno == ECONNRESET);
        CHECK(close(b.server) == 0);
        unanswered += 2; /* of both ends */
    }
}

/* Answers that do not fit into the socket at once. */
static void partial(int number) {
    both b = connected();
    static char bytes[1 << 20];
    int small = 65536, again = 0;
    CHECK(setsockopt(b.server, SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    CHECK(fcntl(b.server, F_SETFL, O_NONBLOCK) == 0);
    for (int i = 0; i < number; i++) {
        transmit(b.client, 10);
        struct pollfd p = {b.server, POLLIN, 0};
        CHECK(poll(&p, 1, 10000) == 1);
        receive(b.server, 10);
        size_t left = sizeof bytes * 8, to_read = left;
        while (left > 0) {
            errno = 0;
            ssize_t sent = write(b.server, bytes, left < sizeof bytes ? left : sizeof bytes);
            if (sent < 0) {
                CHECK(errno == EAGAIN);
                again = 1;
                receive(b.client, 4096);
                to_read -= 4096;
            } else {
                left -= (size_t)sent;
            }
        }
        receive(b.client, to_read);
        served++, called++;
        bytes_in += 10, bytes_out += sizeof bytes * 8;
    }
    CHECK(again);
    close_both(b);
}

/* A server that speaks first: its greeting answers nothing. */
static void greeting(int number) {
    for (int i = 0; i < number; i++) {
        both b = connected();
        transmit(b.server, 30);
        receive(b.client, 30);
        unasked += 2;
        exchange(b, 10, 20);
        close_both(b);
    }
}

/* Connections that have paths instead of addresses, and pairs that have neither. */
static void paths(int number) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int at = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(at, (struct sockaddr *)&address, sizeof address) == 0 && listen(at, 10) == 0);
    both b = {socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
    CHECK(connect(b.client, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK((b.server = accept4(at, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    for (int i = 0; i < number; i++) {
        exchange(b, 10, 20);
        transmit(pair[0], 5);
        receive(pair[1], 5);
        transmit(pair[1], 5);
        receive(pair[0], 5);
    }
    close_both(b);
    close(at), close(pair[0]), close(pair[1]);
}

/* Descriptors end in other ways than by close(2), and others get their numbers. */
static void numbers(int number) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char text[16];
    for (int i = 0; i < number; i++) {
        both b = connected();
        exchange(b, 10, 20);
        switch (i % 4) {
        case 0: CHECK(dup2(null, b.server) == b.server); break;
        case 1: CHECK(dup3(null, b.server, O_CLOEXEC) == b.server); break;
        case 2: /* without the C library */
            CHECK(syscall(SYS_close, b.server) == 0);
            break;
        case 3:
            CHECK(close_range((unsigned)b.server, (unsigned)b.server, 0) == 0);
            CHECK(dup2(null, b.server) == b.server);
        }
        if (i % 4 == 2) {
            both next = connected(); /* one of its ends has that number */
            CHECK(next.client == b.server || next.server == b.server);
            exchange(next, 12, 22);
            close_both(next);
        } else {
            /* It is a file now. */
            CHECK(read(b.server, text, 5) == 0);
            CHECK(write(b.server, "12345", 5) == 5);
            CHECK(close(b.server) == 0);
        }
        CHECK(close(b.client) == 0);
        /* A copy of a descriptor is the same connection. */
        both c = connected();
        int copy = fcntl(c.server, F_DUPFD_CLOEXEC, 100), client = dup(c.client);
        CHECK(copy >= 100 && client >= 0 && close(c.client) == 0 && close(c.server) == 0);
        both d = {client, copy};
        exchange(d, 11, 21);
        close_both(d);
    }
    close(null);
}

/* Above the table: nothing is looked at, and nothing breaks. `number` is the end of the table. */
static void above(int number) {
    both b = connected();
    both c = {dup2(b.client, number), dup2(b.server, number + 1)};
    CHECK(c.client == number && c.server == number + 1);
    close_both(b);
    for (int i = 0; i < 100; i++)
        exchange(c, 10, 20);
    served = called = bytes_in = bytes_out = 0;
    printf("beyond %d\n", 4 * 100);
    close_both(c);
}

/* One thread reads requests, another one answers; two more are at the other end. */
static both of_threads;
static int numbers_of_threads;
static pthread_barrier_t turn;

static void *reader(void *unused) {
    for (int i = 0; i < numbers_of_threads; i++) {
        receive(of_threads.server, 10);
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
    }
    return unused;
}

static void *answerer(void *unused) {
    for (int i = 0; i < numbers_of_threads; i++) {
        pthread_barrier_wait(&turn);
        transmit(of_threads.server, 20);
        pthread_barrier_wait(&turn);
    }
    return unused;
}

static void threads(int number) {
    of_threads = connected();
    numbers_of_threads = number;
    pthread_t one, two;
    CHECK(pthread_barrier_init(&turn, NULL, 2) == 0);
    CHECK(pthread_create(&one, NULL, reader, NULL) == 0);
    CHECK(pthread_create(&two, NULL, answerer, NULL) == 0);
    for (int i = 0; i < number; i++) {
        transmit(of_threads.client, 10);
        receive(of_threads.client, 20);
        served++, called++;
        bytes_in += 10, bytes_out += 20;
    }
    pthread_join(one, NULL), pthread_join(two, NULL);
    close_both(of_threads);
}

/* Threads that share connections, one after the other: which of them sent and took each request, by its
 * size, which no other request has. */
#define POOL 3
#define MOST_IN_POOL 4000
static struct {
    pthread_mutex_t lock;
    pthread_cond_t given_back;
    pthread_mutex_t serving[POOL];
    both all[POOL];
    int free[POOL], free_count, next, last;
    long asked[MOST_IN_POOL], taken[MOST_IN_POOL];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .given_back = PTHREAD_COND_INITIALIZER};

static void *asks(void *nothing) {
    char bytes[MOST_IN_POOL];
    (void)nothing;
    pthread_mutex_lock(&pool.lock);
    while (pool.next < pool.last) {
        int size = pool.next++;
        while (pool.free_count == 0)
            pthread_cond_wait(&pool.given_back, &pool.lock);
        int which = pool.free[--pool.free_count];
        pthread_mutex_unlock(&pool.lock);
        memset(bytes, 0, sizeof bytes);
        memcpy(bytes, &size, sizeof size);
        pool.asked[size] = syscall(SYS_gettid);
        CHECK(write(pool.all[which].client, bytes, (size_t)size) == size);
        receive(pool.all[which].client, 20);
        pthread_mutex_lock(&pool.lock);
        served++, called++;
        bytes_in += (unsigned long)size;
        bytes_out += 20;
        pool.free[pool.free_count++] = which;
        pthread_cond_signal(&pool.given_back);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Takes a request, and answers it; 0: there are no more. */
static int serves(int which) {
    struct pollfd ready = {.fd = pool.all[which].server, .events = POLLIN};
    int size, more = 1;
    if (pthread_mutex_trylock(&pool.serving[which]) != 0)
        return 1;
    if (poll(&ready, 1, 0) == 1) {
        ssize_t got = read(ready.fd, &size, sizeof size);
        CHECK(got == 0 || got == sizeof size);
        more = got > 0;
        if (more) {
            pool.taken[size] = syscall(SYS_gettid);
            receive(ready.fd, (size_t)size - sizeof size);
            transmit(ready.fd, 20);
        }
    }
    pthread_mutex_unlock(&pool.serving[which]);
    return more;
}

static void *takes(void *nothing) {
    struct pollfd ready[POOL];
    (void)nothing;
    for (;;) {
        for (int i = 0; i < POOL; i++)
            ready[i] = (struct pollfd){.fd = pool.all[i].server, .events = POLLIN};
        CHECK(poll(ready, POOL, -1) > 0);
        for (int i = 0; i < POOL; i++)
            if (ready[i].revents && !serves(i))
                return NULL;
    }
}

static void shared(int number) {
    pthread_t asking[4], taking[4];
    const int least = sizeof(int);
    CHECK(least + number <= MOST_IN_POOL);
    pool.next = least, pool.last = least + number;
    for (int i = 0; i < POOL; i++) {
        pthread_mutex_init(&pool.serving[i], NULL);
        pool.all[i] = connected();
        pool.free[pool.free_count++] = i;
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&taking[i], NULL, takes, NULL) == 0);
        CHECK(pthread_create(&asking[i], NULL, asks, NULL) == 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(asking[i], NULL);
    for (int i = 0; i < POOL; i++)
        CHECK(shutdown(pool.all[i].client, SHUT_WR) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(taking[i], NULL);
    for (int i = 0; i < POOL; i++)
        close_both(pool.all[i]);
    for (int i = least; i < pool.last; i++)
        printf("asked.%d %ld\ntaken.%d %ld\n", i, pool.asked[i], i, pool.taken[i]);
}

/* Four threads at both ends of one connection, at once. What comes of it is no request; nothing is to
 * break, and no byte is to be lost. */
static void *shoveling(void *unused) {
    for (int i = 0; i < numbers_of_threads; i++) {
        transmit(of_threads.client, 1);
        receive(of_threads.server, 1);
        transmit(of_threads.server, 1);
        receive(of_threads.client, 1);
    }
    return unused;
}

static void crowd(int number) {
    of_threads = connected();
    numbers_of_threads = number;
    pthread_t all[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&all[i], NULL, shoveling, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    close_both(of_threads);
    bytes_in = bytes_out = 4 * (unsigned long)number;
}

/* A child that runs no fork handlers. */
static pid_t cloned(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

/* Children that close everything they inherit: by fork(2) and clone(2), which copy memory, and by vfork(2),
 * which does not. */
static void children(int number) {
    both b = connected();
    for (int i = 0; i < number; i++) {
        transmit(b.client, 10);
        receive(b.server, 10);
        transmit(b.server, 10);
        pid_t child = i % 2 ? vfork() : i % 3 ? cloned() : fork();
        if (child == 0) {
            if (i % 4 < 2) {
                close(b.server), close(b.client);
                dup2(1, b.server);
            } else {
                close_range(3, ~0U, 0);
            }
            if (i % 8 < 4)
                _exit(0);
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        CHECK(child > 0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        /* Still the same answer. */
        transmit(b.server, 10);
        receive(b.client, 20);
        served++, called++;
        bytes_in += 10, bytes_out += 20;
    }
    close_both(b);
}

/* Children of vfork(2) put something else in the place of a connection that was not used yet, as programs that
 * start others do. */
static void replaced(int number) {
    for (volatile int i = 0; i < number; i++) {
        both b = connected();
        pid_t child = vfork();
        if (child == 0) {
            dup2(1, i % 2 ? b.client : b.server);
            if (i % 3 == 0)
                syscall(SYS_close, b.client);
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        CHECK(child > 0 && waitpid(child, NULL, 0) == child);
        exchange(b, 10, 20);
        close_both(b);
    }
}

/* A signal handler that uses the connection that it interrupts, and a thread that is cancelled in a read. */
static both of_handler;
static volatile sig_atomic_t handled;

static void handler(int signal) {
    (void)signal;
    int saved = errno;
    char byte = 0;
    if (send(of_handler.client, &byte, 1, MSG_DONTWAIT) == 1)
        handled++;
    errno = saved;
}

static void *waiting(void *fd) {
    char text[16];
    CHECK(read(*(int *)fd, text, sizeof text) < 0);
    return NULL;
}

static void interrupted(int number) {
    of_handler = connected();
    CHECK(fcntl(of_handler.server, F_SETFL, O_NONBLOCK) == 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
    timer_t timer;
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    struct itimerspec often = {{0, 50000}, {0, 50000}};
    CHECK(timer_create(CLOCK_MONOTONIC, &how, &timer) == 0);
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
    long sent = 0, got = 0;
    char text[4096] = {0};
    while (handled < number) {
        errno = 7;
        if (send(of_handler.client, text, 1, MSG_DONTWAIT) == 1) {
            CHECK(errno == 7);
            sent++;
        }
        ssize_t more = read(of_handler.server, text, sizeof text);
        got += more > 0 ? more : 0;
    }
    CHECK(timer_delete(timer) == 0);
    while (got < sent + handled) {
        ssize_t more = read(of_handler.server, text, sizeof text);
        got += more > 0 ? more : 0;
    }
    close_both(of_handler);
    unanswered += 2;
    for (int i = 0; i < 20; i++) {
        both b = connected();
        pthread_t thread;
        void *how_it_ended;
        CHECK(pthread_create(&thread, NULL, waiting, &b.server) == 0);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &how_it_ended) == 0 && how_it_ended == PTHREAD_CANCELED);
        exchange(b, 10, 20);
        close_both(b);
    }
    printf("handled %d\n", (int)handled);
}

/* An answer that nothing follows is written once a second has passed and another connection is used. */
static void silent(int number) {
    (void)number;
    both quiet = connected(), busy = connected();
    exchange(quiet, 10, 20);
    puts("answered");
    fflush(stdout);
    char line[16];
    while (poll(&(struct pollfd){0, POLLIN, 0}, 1, 100) == 0)
        exchange(busy, 10, 20);
    CHECK(read(0, line, sizeof line) >= 0);
    /* Without a word: nothing runs any more at the end. */
    printf("served %lu\ncalled %lu\n", served, called);
    fflush(stdout);
    _exit(0);
}

#ifdef __GLIBC__
/* A filter ends this program if anything asks for the other end of a connection. Root installs it by
 * syscall(2), if the number is odd. */
static void filtered(int number) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpeername, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    both before = connected();
    exchange(before, 10, 20);
    if (number % 2 == 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    }
    unsigned long seen = served;
    both after = connected();
    for (int i = 0; i < number; i++)
        exchange(after, 10, 20);
    served = called = seen;
    for (int i = 0; i < number; i++)
        exchange(before, 10, 20);
    bytes_in = served * 10, bytes_out = served * 20;
    close_both(before);
    close_both(after);
    printf("filtered %d\n", 4 * number);
}
#else
static void filtered(int number) { (void)number; }
#endif

static void nothing(int number) { (void)number; }

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(int);
    } cases[] = {{"plain", plain},       {"functions", functions}, {"peek", peek},
                 {"half", half_closed},  {"reset", reset},         {"partial", partial},
                 {"greeting", greeting}, {"paths", paths},         {"numbers", numbers},
                 {"above", above},       {"threads", threads},     {"crowd", crowd},
                 {"shared", shared},
                 {"children", children}, {"vfork", replaced},      {"interrupted", interrupted},
                 {"filtered", filtered}, {"silent", silent},     {"nothing", nothing}};
    int number = argc > 2 ? atoi(argv[2]) : 10;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run(number);
            printf("served %lu\ncalled %lu\nunanswered %lu\nunasked %lu\nbytes_in %lu\nbytes_out %lu\n",
                   served, called, unanswered, unasked, bytes_in, bytes_out);
            return 0;
        }
    return 2;
}
