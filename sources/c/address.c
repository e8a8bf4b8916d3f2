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

/* A client's end has no name, unless it took one. Neither end of a socketpair(2) has a name. */
static void of_path(const end *here, socklen_t here_length, const end *there,
                    socklen_t there_length, int sends, ppt_address *to) {
    socklen_t head = offsetof(struct sockaddr_un, sun_path);
    to->called = (uint8_t)(here_length <= head || (there_length > head && sends));
    const end *asked = to->called ? there : here;
    socklen_t length = to->called ? there_length : here_length;
    if (length <= head || length > sizeof asked->path)
        return;
    to->stream = 1;
    text t = {to->peer, 0};
    put_path(&t, asked->path.sun_path, length - head);
}

/* Offsets of some counts in the kernel's struct tcp_info (Linux 4.6; the last two: 4.19). Some C libraries
 * lack them. */
#define TCP_INFO_UNACKED 24
#define TCP_INFO_BYTES_ACKED 120
#define TCP_INFO_BYTES_RECEIVED 128
#define TCP_INFO_NOT_SENT 144
#define TCP_INFO_BYTES_SENT 200
#define TCP_INFO_BYTES_AGAIN 208
#define TCP_INFO_SIZE 216
/* Options and requests for these counts, and states, from the kernel's headers. */
#define ASK_TCP_INFO 11
#define ASK_UNACKNOWLEDGED 0x5411
#define ASK_UNREAD 0x541b
#define IN_STATE(state, set) ((set) >> (state)&1)
#define FIN_WAS_SENT (1 << 5 | 1 << 6)             /* FIN_WAIT2, TIME_WAIT */
#define FIN_IS_LAST (1 << 4 | 1 << 9 | 1 << 11)    /* FIN_WAIT1, LAST_ACK, CLOSING */

/* The counts of the kernel. Those that are not in one struct are read by a call of their own. */
typedef struct counts {
    uint64_t acknowledged, received, sent;
    int unacknowledged, unread, unsent;
    unsigned state, flying, size;
} counts;

static uint64_t word_at(const unsigned char *info, unsigned offset, unsigned size) {
    uint64_t word = 0;
    memcpy(&word, info + offset, size);
    return word;
}

static int count(int fd, counts *to) {
    unsigned char info[TCP_INFO_SIZE] = {0};
    socklen_t size = sizeof info;
    memset(to, 0, sizeof *to);
    if (syscall(SYS_getsockopt, fd, IPPROTO_TCP, ASK_TCP_INFO, info, &size) != 0)
        return 0;
    to->size = size;
    to->state = info[0];
    to->flying = (unsigned)word_at(info, TCP_INFO_UNACKED, 4);
    to->acknowledged = word_at(info, TCP_INFO_BYTES_ACKED, 8);
    to->received = word_at(info, TCP_INFO_BYTES_RECEIVED, 8);
    to->unsent = (int)word_at(info, TCP_INFO_NOT_SENT, 4);
    to->sent = word_at(info, TCP_INFO_BYTES_SENT, 8) - word_at(info, TCP_INFO_BYTES_AGAIN, 8);
    return 1;
}

/* The counts of one moment. 0: the kernel has none, or, if `to->size` is not 0, too much happens at once. */
static int count_all(int fd, int with_unread, counts *to) {
    counts before;
    if (!count(fd, to))
        return 0;
    for (int tries = 0; tries < 8; tries++) {
        if (!with_unread && to->flying == 0 && to->unsent == 0)
            return 1;
        int ended = syscall(SYS_ioctl, fd, ASK_UNACKNOWLEDGED, &to->unacknowledged) != 0 ||
                    syscall(SYS_ioctl, fd, ASK_UNREAD, &to->unread) != 0;
        before = *to;
        if (ended || !count(fd, to)) {
            memset(to, 0, sizeof *to);
            return 0;
        }
        to->unacknowledged = before.unacknowledged;
        to->unread = before.unread;
        if (memcmp(to, &before, sizeof before) == 0)
            return 1;
    }
    return 0;
}

/* Which end made a TCP connection, from its counts. The kernel counts bytes that it sent, and what of its
 * numbering the other end has acknowledged, to which the packet that makes a connection belongs, and the one
 * that ends it. 1: this one; 0: the other one; else unknown. */
static int64_t made_here(const counts *c) {
    if (c->size < TCP_INFO_SIZE)
        return -1;
    int ends = IN_STATE(c->state, FIN_WAS_SENT) || (IN_STATE(c->state, FIN_IS_LAST) && c->unsent == 0);
    return (int64_t)(c->acknowledged + (uint64_t)c->unacknowledged - (uint64_t)c->unsent - c->sent) - ends;
}

static void of_internet(const end *here, const end *there, int sends, const counts *tcp,
                        ppt_address *to) {
    int64_t made = made_here(tcp);
    to->called = (uint8_t)(made == 0 || made == 1 ? made : sends);
    pair both;
    memset(&both, 0, sizeof both);
    both.asking_port = address_of(to->called ? here : there, both.asking);
    both.asked_port = address_of(to->called ? there : here, both.asked);
    to->stream = 1;
    to->port = ntohs(both.asked_port);
    to->hash = ppt_hash(&both, sizeof both) | 1;
    text t = {to->peer, 0};
    put_address(&t, to->called ? both.asked : both.asking);
}

void ppt_ask_address(int fd, int sends, int is_new, ppt_address *to, uint64_t *came, uint64_t *went) {
    int saved = errno;
    memset(to, 0, sizeof *to);
    end here, there;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    int type = 0;
    socklen_t length = sizeof type, here_length = sizeof here, there_length = sizeof there;
    counts tcp;
    int counted = count_all(fd, !is_new, &tcp);
    int stream = tcp.size != 0 || (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
                                   type == SOCK_STREAM);
    if (!stream) {
        to->connected = 1;
    } else if (syscall(SYS_getpeername, fd, &there, &there_length) == 0 &&
               syscall(SYS_getsockname, fd, &here, &here_length) == 0) {
        to->connected = tcp.size == 0 || counted;
        if (here.any.sa_family == AF_UNIX)
            of_path(&here, here_length, &there, there_length, sends, to);
        else if (here.any.sa_family == AF_INET || here.any.sa_family == AF_INET6)
            of_internet(&here, &there, sends, &tcp, to);
    }
    to->located = (uint8_t)(counted && tcp.size >= TCP_INFO_NOT_SENT);
    uint64_t made = to->called && tcp.acknowledged > 0;
    *came = is_new ? 0 : tcp.received - (uint64_t)tcp.unread;
    *went = is_new ? 0 : tcp.acknowledged - made + (uint64_t)tcp.unacknowledged;
    errno = saved;
}
