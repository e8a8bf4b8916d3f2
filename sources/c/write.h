/* What is written into the buffers: frames, points and counters. */
#ifndef PPT_WRITE_H
#define PPT_WRITE_H

#include <stdint.h>

#include "address.h"
#include "net.h"

/* PPT_NET_CONTROL is the control page, whose name has the hash of the schema: the build defines it. */

/* Whether ppt is attached: one load and one branch. */
static inline int ppt_is_on(void) { return ppt_net_on(); }

/* The claim of the session, which no other session has. */
static inline uint64_t ppt_session(void) {
    return __atomic_load_n(&PPT_NET_CONTROL.claim[PPT1_CLAIM_NONCE], __ATOMIC_RELAXED);
}

/* The process that ppt is attached to. */
static inline uint32_t ppt_target(void) {
    return __atomic_load_n(&PPT_NET_CONTROL.target_pid, __ATOMIC_RELAXED);
}

/* The current stamp; 0 if ppt has detached. */
static inline uint64_t ppt_stamp(void) { return ppt_net_now(); }

/* A second, in the unit of that stamp; 0 while the length of a tick is unknown. */
uint64_t ppt_second(uint64_t stamp);

struct ppt_request;
void ppt_write_request(uint32_t fd, int called, const struct ppt_request *request,
                       const ppt_address *address);

void ppt_count_unanswered(void);
void ppt_count_unasked(void);
void ppt_count_contended(void);
void ppt_count_beyond(void);
void ppt_count_filtered(void);
void ppt_count_undecided(uint32_t calls);

/* Counts loads of libraries whose calls are not seen, also while ppt is not attached: those before are
 * counted at the next call with 0. */
void ppt_count_apart(uint32_t loads);

/* The key of a request or an answer is its connection and the number of its first byte. `hash` is that of
 * the connection; 0: the other end cannot compute it. Those that begin also count as open. */
void ppt_reach_asked(uint64_t at, uint64_t hash, uint64_t asked);
void ppt_reach_taken(uint64_t at, uint64_t hash, uint64_t asked);
void ppt_reach_answered(uint64_t at, uint64_t hash, uint64_t asked, uint64_t answer);
void ppt_reach_got(uint64_t at, uint64_t hash, uint64_t asked, uint64_t answer);

#endif
