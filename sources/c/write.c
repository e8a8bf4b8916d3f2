#include "write.h"

#include <string.h>

#include "connection.h"
#include "files.h"
#include "hops.h"

uint64_t ppt_second(uint64_t stamp) {
    if (stamp >> 63 != 0)
        return 1000000000; /* of the monotonic clock */
    uint64_t scale = __atomic_load_n(&PPT_NET_CONTROL.tick_scale, __ATOMIC_RELAXED);
    if (scale == 0)
        scale = __atomic_load_n(&PPT_FILES_CONTROL.tick_scale, __ATOMIC_RELAXED);
    return scale == 0 ? 0 : (uint64_t)(((__uint128_t)1000000000 << 32) / scale);
}

void ppt_write_request(uint32_t fd, int called, const ppt_request *request,
                       const ppt_address *address) {
    PPT_ADD_OPEN(-1);
    if (called) {
        PPT_WRITE_CALLED(f) {
            f.call_start = request->start;
            f.call_end = request->end;
            f.first = request->first;
            f.bytes_in = request->bytes_in;
            f.bytes_out = request->bytes_out;
            f.reads = request->reads;
            f.writes = request->writes;
            f.thread = request->thread;
            f.fd = fd;
            f.port = address->port;
            memcpy(f.peer, address->peer, sizeof f.peer);
        }
    } else {
        PPT_WRITE_SERVED(f) {
            f.request_start = request->start;
            f.request_end = request->end;
            f.first = request->first;
            f.bytes_in = request->bytes_in;
            f.bytes_out = request->bytes_out;
            f.reads = request->reads;
            f.writes = request->writes;
            f.thread = request->thread;
            f.fd = fd;
            f.port = address->port;
            memcpy(f.peer, address->peer, sizeof f.peer);
        }
    }
}

void ppt_count_unanswered(void) {
    PPT_ADD_OPEN(-1);
    PPT_ADD_UNANSWERED(1);
}

void ppt_count_unasked(void) { PPT_ADD_UNASKED(1); }

void ppt_count_contended(void) { PPT_ADD_CONTENDED(1); }

void ppt_count_beyond(void) { PPT_ADD_BEYOND(1); }

void ppt_count_filtered(void) { PPT_ADD_FILTERED(1); }

void ppt_count_undecided(uint32_t calls) { PPT_ADD_UNDECIDED(calls); }

void ppt_count_apart(uint32_t loads) {
    static uint32_t all, told;
    static uint64_t told_in;
    uint32_t now = __atomic_add_fetch(&all, loads, __ATOMIC_RELAXED);
    if (!ppt_is_on())
        return;
    uint32_t before = __atomic_exchange_n(&told, now, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&told_in, ppt_session(), __ATOMIC_RELAXED) != ppt_session())
        before = 0;
    if (now != before)
        PPT_ADD_APART(now - before);
}

/* A key that is the same at both ends, of the connection, the direction, and the number of the first byte. */
static uint64_t identity(uint64_t hash, uint64_t byte, uint64_t is_answer) {
    const uint64_t words[2] = {hash, byte << 1 | is_answer};
    return ppt_hash(words, sizeof words);
}

void ppt_reach_asked(uint64_t at, uint64_t hash, uint64_t asked) {
    PPT_ADD_OPEN(1);
    if (hash != 0)
        PPT_WRITE_ASKED(f) {
            f.sent = at;
            f.question = identity(hash, asked, 0);
        }
}

void ppt_reach_taken(uint64_t at, uint64_t hash, uint64_t asked) {
    PPT_ADD_OPEN(1);
    if (hash != 0)
        PPT_WRITE_TAKEN(f) {
            f.came = at;
            f.question = identity(hash, asked, 0);
        }
}

void ppt_reach_answered(uint64_t at, uint64_t hash, uint64_t asked, uint64_t answer) {
    if (hash != 0)
        PPT_WRITE_ANSWERED(f) {
            f.sent = at;
            f.question = identity(hash, asked, 0);
            f.answer = identity(hash, answer, 1);
        }
}

void ppt_reach_got(uint64_t at, uint64_t hash, uint64_t asked, uint64_t answer) {
    if (hash != 0)
        PPT_WRITE_GOT(f) {
            f.came = at;
            f.question = identity(hash, asked, 0);
            f.answer = identity(hash, answer, 1);
        }
}
