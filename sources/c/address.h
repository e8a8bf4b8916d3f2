/* A descriptor's connection, and how many bytes have passed, from the kernel. */
#ifndef PPT_ADDRESS_H
#define PPT_ADDRESS_H

#include <stdint.h>

/* Bytes of an address as text; not closed by a NUL if all are used. */
#define PPT_PEER 48

typedef struct ppt_address {
    int connected; /* 0: it has no other end yet */
    int stream;    /* a connection of bytes that connect(2) made, here or there */
    uint16_t port; /* of the end that was asked; 0: there are no ports */
    uint64_t hash; /* of both ends, the same at both; 0: they have no addresses that differ */
    char peer[PPT_PEER];
} ppt_address;

/* Whether this process made the connection decides which end was asked. Leaves errno as it is. */
void ppt_ask_address(int fd, int called, ppt_address *to);

/* How many bytes of the connection this process has read and written since it was made. Returns 0
 * if the kernel has no such count. Leaves errno as it is. */
int ppt_ask_position(int fd, int called, uint64_t *came, uint64_t *went);

#endif
