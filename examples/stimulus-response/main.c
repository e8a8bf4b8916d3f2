/* One asks, the other one answers: `exchange answer PORT`, and on another host
 * `exchange ask HOST PORT MESSAGES PER_SECOND BYTES`. The next stimulus leaves when it is its time, and not
 * before the response to the last one is there. */
#include <stdint.h>
#include <string.h>

#include "../net.h"
#include "exchange.h"

enum { MOST = 60000 };

/* What a message begins with. */
struct head { uint64_t number; uint32_t bytes, unused; };

static union { struct head head; char bytes[MOST]; } message;

/* `ticks` is what `when` is made of: hosts that are one machine have one counter. */
#define POINT(NAME, f) \
    PPT_WRITE_##NAME(f) { \
        f.id = ppt_hash_u64(message.head.number); \
        f.number = message.head.number; \
        f.ticks = f.when = ppt_exchange_now(); \
    }

static int answers(const char *port) {
    int fd = accepted(port);
    while (takes(fd, &message, sizeof message.head)) {
        size_t rest = message.head.bytes - sizeof message.head;
        must(message.head.bytes >= sizeof message.head && message.head.bytes <= MOST, "a message");
        must(rest == 0 || takes(fd, message.bytes + sizeof message.head, rest), "recv");
        POINT(STIMULUS_RECEIVED, f)
        PPT_WRITE_RESPONSE_SENT(f) {
            f.to = f.id = ppt_hash_u64(message.head.number);
            f.number = message.head.number;
            f.ticks = f.when = ppt_exchange_now();
        }
        gives(fd, &message, message.head.bytes);
    }
    return 0;
}

static int asks(int fd, long messages, long per_second, long bytes) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    message.head.number = first_number();
    message.head.bytes = (uint32_t)bytes;
    for (long i = 0; i < messages; i++) {
        next_at(&time, per_second);
        message.head.number++;
        POINT(STIMULUS_SENT, f)
        gives(fd, &message, (size_t)bytes);
        must(takes(fd, &message, (size_t)bytes), "recv");
        POINT(RESPONSE_RECEIVED, f)
    }
    printf("answered %ld\n", messages);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "answer") == 0)
        return answers(argv[2]);
    if (argc == 7 && strcmp(argv[1], "ask") == 0)
        return asks(connected(argv[2], argv[3]), number(argv[4], 1, 1 << 24), number(argv[5], 1, 100000),
                    number(argv[6], sizeof message.head, MOST));
    fputs("usage: exchange answer PORT\n       exchange ask HOST PORT MESSAGES PER_SECOND BYTES\n", stderr);
    return 2;
}
