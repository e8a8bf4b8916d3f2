/* A descriptor's connection, and how many bytes have passed, from the kernel. */
#ifndef PPT_ADDRESS_H
#define PPT_ADDRESS_H

#include <stdint.h>

/* Bytes of an address as text; not closed by a NUL if all are used. */
#define PPT_PEER 48

typedef struct ppt_address {
    uint8_t connected; /* 0: it has no other end yet, or too much happens on it: ask again */
    uint8_t stream;    /* a connection of bytes that connect(2) made, here or there */
    uint8_t called;    /* this process, or another one that passed it on, made it by connect(2) */
    uint8_t located;   /* the counts of bytes are known */
    uint16_t port;     /* of the end that was asked; 0: there are no ports */
    uint64_t hash;     /* of both ends, the same at both; 0: they have no addresses that differ */
    char peer[PPT_PEER];
} ppt_address;

/* Asks the kernel about a socket. Which end was asked is a property of the connection, however the
 * descriptor came here: see address.c. Where the kernel does not know, the next call decides: a client sends
 * first. `*came` and `*went` become how many bytes have been read and written since the connection was made,
 * unless it is new. Leaves errno as it is. */
void ppt_ask_address(int fd, int sends, int is_new, ppt_address *to, uint64_t *came, uint64_t *went);

#endif
