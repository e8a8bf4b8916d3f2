/* What the examples over several hosts share: TCP connections that carry whole messages at once. A program
 * that cannot go on says why, and ends. */
#ifndef EXAMPLES_NET_H
#define EXAMPLES_NET_H

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline void must(int holds, const char *what) {
    if (!holds) {
        perror(what);
        exit(1);
    }
}

/* A number within bounds. */
static inline long number(const char *text, long least, long most) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < least || value > most) {
        fprintf(stderr, "expected a number from %ld to %ld, not `%s`\n", least, most, text);
        exit(2);
    }
    return value;
}

static inline struct addrinfo *address(const char *host, const char *port, int type) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = type}, *found;
    hints.ai_flags = host ? 0 : AI_PASSIVE;
    int error = getaddrinfo(host, port, &hints, &found);
    if (error) {
        fprintf(stderr, "%s port %s: %s\n", host ? host : "any address,", port, gai_strerror(error));
        exit(1);
    }
    return found;
}

/* Small messages leave at once. */
static inline int at_once(int fd) {
    int on = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
    return fd;
}

/* The first connection to a port. */
static inline int accepted(const char *port) {
    struct addrinfo *own = address(NULL, port, SOCK_STREAM);
    int fd = socket(own->ai_family, own->ai_socktype, 0), on = 1;
    must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "socket");
    must(bind(fd, own->ai_addr, own->ai_addrlen) == 0 && listen(fd, 1) == 0, "listen");
    freeaddrinfo(own);
    int other = accept(fd, NULL, NULL);
    must(other >= 0, "accept");
    close(fd);
    return at_once(other);
}

static inline int connected(const char *host, const char *port) {
    struct addrinfo *to = address(host, port, SOCK_STREAM);
    int fd = socket(to->ai_family, to->ai_socktype, 0);
    must(fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0, "connect");
    freeaddrinfo(to);
    return at_once(fd);
}

static inline void gives(int fd, const void *message, size_t bytes) {
    must(send(fd, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes, "send");
}

/* Takes so many bytes; 0 at the end of the connection. */
static inline int takes(int fd, void *message, size_t bytes) {
    ssize_t taken = recv(fd, message, bytes, MSG_WAITALL);
    must(taken == (ssize_t)bytes || taken == 0, "recv");
    return taken > 0;
}

/* Numbers of messages begin at a random one: those of two runs are never equal. */
static inline uint64_t first_number(void) {
    uint64_t first;
    must(getrandom(&first, sizeof first, 0) == sizeof first, "getrandom");
    return first >> 1 & ~UINT64_C(0xffffff);
}

/* So often a second. Who is late does not wait until it has caught up. */
static inline void next_at(struct timespec *time, long per_second) {
    time->tv_nsec += 1000000000L / per_second;
    if (time->tv_nsec >= 1000000000L) {
        time->tv_nsec -= 1000000000L;
        time->tv_sec++;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, NULL) == EINTR) {
    }
}

#endif
