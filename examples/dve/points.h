// points.h: writes frames of messages.frame. Included by server.c and users.c in `make points`.
#ifndef DVE_POINTS_H
#define DVE_POINTS_H

#include "messages.h"

// What both sides know of a message: the number that the user chose by chance when it logged in, its
// session, and the number of the update or of the simulation's step.
static inline uint64_t identity(uint32_t nonce, uint32_t session, uint32_t number) {
    uint32_t words[] = {nonce, session, number};
    return ppt_hash(words, sizeof words);
}

#define OF(it, number) identity((it)->nonce, (it)->session, number)

#define UPDATE_SENT(it, number) \
    PPT_WRITE_UPDATE_SENT(f) { f.update = OF(it, number); f.user = (it)->id; }
#define UPDATE_TAKEN(it, of, number) \
    PPT_WRITE_UPDATE_TAKEN(f) { f.update = OF(it, number); f.user = of; }
#define STATE_SENT(it, of, step) \
    PPT_WRITE_STATE_SENT(f) { \
        f.update = OF(it, (it)->last_update); \
        f.state = OF(it, step); \
        f.user = of; \
    }
#define STATE_RECEIVED(it, step) \
    PPT_WRITE_STATE_RECEIVED(f) { f.state = OF(it, step); f.user = (it)->id; }
#define ENDED(all, of_updates, of_states) \
    PPT_WRITE_ENDED(f) { \
        f.passes = (uint64_t)(all); \
        f.updates = (uint64_t)(of_updates); \
        f.states = (uint64_t)(of_states); \
        f.when = ppt_messages_now(); \
    }

#endif
