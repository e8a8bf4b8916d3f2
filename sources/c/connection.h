/* What is known of each descriptor, and the requests on those that are connections.
 *
 * All of this is only called while ppt is attached, except ppt_made. The table is 9 MiB of zeros,
 * whose pages exist once they are used. An entry is valid for one session: the next session starts over, and
 * so does a forked child, which is not in its parent's session. */
#ifndef PPT_CONNECTION_H
#define PPT_CONNECTION_H

#include <stdint.h>
#include <sys/types.h>

#include "address.h"

#ifndef PPT_DESCRIPTORS
#define PPT_DESCRIPTORS 65536
#endif

/* What a descriptor is. */
enum ppt_role { PPT_UNKNOWN, PPT_OTHER, PPT_SERVED, PPT_CALLED };

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
    uint32_t session; /* the session for which the other fields are valid */
    uint8_t role, phase;
    uint8_t seen;    /* the connection was made in this session */
    uint8_t located; /* `came` and `went` are known */
    uint64_t came, went; /* bytes since the connection was made */
    uint64_t asked;      /* the number of the request's first byte */
    ppt_request request;
    ppt_address address;
} ppt_connection;

/* What made a descriptor, also while nobody is attached. */
enum ppt_origin { PPT_ELSEWHERE, PPT_BY_CONNECT, PPT_BY_ACCEPT };

/* Notes what made a descriptor. */
void ppt_made(int fd, enum ppt_origin origin);

/* The program may filter its system calls from now on. One that the filter does not expect would end it, so
 * the kernel is asked nothing more. */
void ppt_may_be_filtered(void);
int ppt_is_filtered(void);

/* A new descriptor is the same file as another one. */
void ppt_copied(int from, int to);

/* The connection that a descriptor is, or 0. Asks the kernel once for each descriptor. */
ppt_connection *ppt_connection_at(int fd);

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
