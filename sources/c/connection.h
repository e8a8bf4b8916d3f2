/* The requests on those descriptors that are connections.
 *
 * All of this is only called while ppt is attached. The table is 11 MiB of zeros, whose pages exist once
 * they are used. An entry is valid for one session, and for one meaning of its number. */
#ifndef PPT_CONNECTION_H
#define PPT_CONNECTION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "address.h"
#include "descriptor.h"

/* What a socket is; the first: also before that is asked. */
enum ppt_role { PPT_UNCONNECTED, PPT_NO_STREAM, PPT_SERVED, PPT_CALLED };

/* The progress of the request on a connection. */
enum ppt_phase { PPT_IDLE, PPT_ASKED, PPT_ANSWERED };

/* A request: on a served connection from its first byte in to the last byte out, on a called one
 * from its first byte out to the last byte in. */
typedef struct ppt_request {
    uint64_t start, first, end;
    uint64_t bytes_in, bytes_out;
    uint32_t reads, writes;
    uint32_t thread; /* the thread that began the request; 0: unknown */
} ppt_request;

typedef struct ppt_connection {
    uint64_t lock;    /* session << 32 | thread; 0: free */
    uint64_t meaning; /* what the number meant when the kernel was asked */
    uint32_t session; /* the session for which the other fields are valid */
    uint8_t role, phase;
    uint8_t seen;    /* the connection was made in this session */
    uint8_t located; /* `came` and `went` are known */
    uint64_t came, went; /* bytes since the connection was made */
    uint64_t asked;      /* the number of the request's first byte */
    ppt_request request;
    ppt_address address;
} ppt_connection;

extern ppt_connection ppt_connections[] __attribute__((visibility("hidden")));

/* A connection has been made in this session. */
void ppt_made(int fd);

static inline enum ppt_role ppt_role_of(const ppt_connection *c) {
    return (enum ppt_role)__atomic_load_n(&c->role, __ATOMIC_RELAXED);
}

static inline int ppt_is_connection(const ppt_connection *c) { return ppt_role_of(c) >= PPT_SERVED; }

/* Whether the kernel has been asked what this connection is, and its number means the same. */
static inline int ppt_is_asked(const ppt_connection *c, uint64_t meaning) {
    return __atomic_load_n(&c->meaning, __ATOMIC_RELAXED) == meaning &&
           ppt_role_of(c) != PPT_UNCONNECTED;
}

/* The connection that a number meant when it was last used, or 0. */
static inline ppt_connection *ppt_known_connection(int fd) {
    if (__builtin_expect(!ppt_is_in_table(fd), 0))
        return NULL;
    uint64_t meaning = __atomic_load_n(&ppt_descriptors[fd].meaning, __ATOMIC_RELAXED);
    ppt_connection *c = &ppt_connections[fd];
    return meaning >> 32 == (uint32_t)ppt_session() && ppt_is_asked(c, meaning) &&
                   ppt_is_connection(c)
               ? c
               : NULL;
}

/* The same of a number that means a socket now, whose call will send or receive; asks the kernel once. Before
 * a socket is connected, its role is unknown, and each call asks. */
ppt_connection *ppt_connection_of(int fd, uint64_t meaning, int sends);

/* A call has brought `count` bytes in, or the end (0). If it only looked at them (MSG_PEEK), they will
 * come again. */
void ppt_came(ppt_connection *c, uint64_t count, int looked);

/* A call that began at `before` has sent `count` bytes. */
void ppt_went(ppt_connection *c, uint64_t before, uint64_t count);

/* This process sends no more on it. */
void ppt_done_sending(ppt_connection *c);

/* A descriptor is about to be closed, or to become another file. */
void ppt_ending(int fd);

/* So are all from `first` to `last`. */
void ppt_ending_all(unsigned first, unsigned last);

#endif
