#define _GNU_SOURCE
#include "address.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "hops.h"

/* An end of a connection. */
typedef union end {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
} end;

/* Both ends of a connection, the same at both: IPv4 as IPv6 maps it. */
typedef struct pair {
    uint8_t asking[16], asked[16];
    uint16_t asking_port, asked_port;
} pair;

/* Text that is being written. */
typedef struct text {
    char *to;
    unsigned length;
} text;

static void put(text *t, char c) {
    if (t->length < PPT_PEER)
        t->to[t->length++] = c;
}

static void put_number(text *t, unsigned number, unsigned base) {
    if (number >= base)
        put_number(t, number / base, base);
    put(t, "0123456789abcdef"[number % base]);
}

static int is_mapped(const uint8_t *address) {
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(address, prefix, sizeof prefix) == 0;
}

/* An IPv6 address as in RFC 5952: the longest run of zeros is left out. */
static void put_v6(text *t, const uint8_t *address) {
    unsigned groups[8], longest = 8, most = 1;
    for (unsigned i = 0; i < 8; i++)
        groups[i] = address[2 * i] * 256U + address[2 * i + 1];
    for (unsigned i = 0; i < 8; i++) {
        unsigned zeros = 0;
        while (i + zeros < 8 && groups[i + zeros] == 0)
            zeros++;
        if (zeros > most) {
            most = zeros;
            longest = i;
        }
    }
    for (unsigned i = 0; i < 8;) {
        if (i == longest) {
            put(t, ':');
            put(t, ':');
            i += most;
        } else {
            if (i > 0 && i != longest + most)
                put(t, ':');
            put_number(t, groups[i++], 16);
        }
    }
}

static void put_address(text *t, const uint8_t *address) {
    if (!is_mapped(address)) {
        put_v6(t, address);
        return;
    }
    for (unsigned i = 12; i < 16; i++) {
        if (i > 12)
            put(t, '.');
        put_number(t, address[i], 10);
    }
}

/* A path, or its end if it is too long; `@` stands for the NUL of an abstract name. */
static void put_path(text *t, const char *path, unsigned length) {
    if (length > 0 && path[0] != 0)
        length = (unsigned)strnlen(path, length);
    for (unsigned i = length > PPT_PEER ? length - PPT_PEER : 0; i < length; i++)
        put(t, path[i] != 0 ? path[i] : '@');
}

static uint16_t address_of(const end *e, uint8_t *to) {
    if (e->any.sa_family == AF_INET6) {
        memcpy(to, &e->v6.sin6_addr, 16);
        return e->v6.sin6_port;
    }
    memset(to, 0, 10);
    to[10] = to[11] = 0xff;
    memcpy(to + 12, &e->v4.sin_addr, 4);
    return e->v4.sin_port;
}

static void of_internet(const end *here, const end *there, int called, ppt_address *to) {
    pair both;
    memset(&both, 0, sizeof both);
    both.asking_port = address_of(called ? here : there, both.asking);
    both.asked_port = address_of(called ? there : here, both.asked);
    to->stream = 1;
    to->port = ntohs(both.asked_port);
    to->hash = ppt_hash(&both, sizeof both) | 1;
    text t = {to->peer, 0};
    put_address(&t, called ? both.asked : both.asking);
}

static void of_path(const end *here, socklen_t here_length, const end *there,
                    socklen_t there_length, int called, ppt_address *to) {
    socklen_t head = offsetof(struct sockaddr_un, sun_path);
    const end *asked = called ? there : here;
    socklen_t length = called ? there_length : here_length;
    /* Neither end of a socketpair(2) has a name, and neither is the server. */
    if (length <= head || length > sizeof asked->path)
        return;
    to->stream = 1;
    text t = {to->peer, 0};
    put_path(&t, asked->path.sun_path, length - head);
}

void ppt_ask_address(int fd, int called, ppt_address *to) {
    int saved = errno;
    memset(to, 0, sizeof *to);
    to->connected = 1;
    end here, there;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    int type = 0;
    socklen_t length = sizeof type, here_length = sizeof here, there_length = sizeof there;
    if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
        type == SOCK_STREAM) {
        if (syscall(SYS_getpeername, fd, &there, &there_length) != 0 ||
            syscall(SYS_getsockname, fd, &here, &here_length) != 0)
            to->connected = 0;
        else if (here.any.sa_family == AF_INET || here.any.sa_family == AF_INET6)
            of_internet(&here, &there, called, to);
        else if (here.any.sa_family == AF_UNIX)
            of_path(&here, here_length, &there, there_length, called, to);
    }
    errno = saved;
}

/* Offsets of two counts in the kernel's struct tcp_info (Linux 4.6). Some C libraries lack them. */
#define TCP_INFO_BYTES_ACKED 120
#define TCP_INFO_BYTES_RECEIVED 128
#define TCP_INFO_SIZE 136
/* Options and requests for these counts, from the kernel's headers. */
#define ASK_TCP_INFO 11
#define ASK_UNSENT 0x5411
#define ASK_UNREAD 0x541b

/* The counts of the kernel, each read by a call of its own. */
typedef struct counts {
    uint64_t acknowledged, received;
    int unsent, unread;
} counts;

static int count(int fd, counts *to) {
    _Alignas(8) char info[TCP_INFO_SIZE];
    memset(info, 0, sizeof info);
    socklen_t length = sizeof info;
    if (syscall(SYS_getsockopt, fd, IPPROTO_TCP, ASK_TCP_INFO, info, &length) != 0 ||
        length < sizeof info || syscall(SYS_ioctl, fd, ASK_UNSENT, &to->unsent) != 0 ||
        syscall(SYS_ioctl, fd, ASK_UNREAD, &to->unread) != 0)
        return 0;
    memcpy(&to->acknowledged, info + TCP_INFO_BYTES_ACKED, sizeof to->acknowledged);
    memcpy(&to->received, info + TCP_INFO_BYTES_RECEIVED, sizeof to->received);
    return 1;
}

int ppt_ask_position(int fd, int called, uint64_t *came, uint64_t *went) {
    int saved = errno, known = 0;
    counts before, now;
    known = count(fd, &now);
    /* Bytes that come in between the calls would be counted once or not at all. */
    for (int tries = 0, same = 0; known && !same; tries++) {
        before = now;
        known = tries < 8 && count(fd, &now);
        same = known && before.acknowledged == now.acknowledged && before.received == now.received &&
               before.unsent == now.unsent && before.unread == now.unread;
    }
    errno = saved;
    if (!known)
        return 0;
    /* The end that made the connection counts the acknowledgment of that, too. */
    uint64_t made = called && now.acknowledged > 0;
    *came = now.received - (uint64_t)now.unread;
    *went = now.acknowledged - made + (uint64_t)now.unsent;
    return 1;
}
