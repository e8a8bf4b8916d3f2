/* A pipeline: `pipe sink PORT`, `pipe node PORT NEXT_HOST NEXT_PORT`, and at last
 * `pipe source HOST PORT MESSAGES PER_SECOND BYTES`. A node sends on what it receives. Who is told that its
 * input has ended ends its output, and itself. */
#include <stdint.h>
#include <string.h>

#include "../net.h"
#include "pipe.h"

enum { MOST = 60000 };

/* What a message begins with. */
struct head { uint64_t number; uint32_t hop, bytes; };

static union { struct head head; char bytes[MOST]; } message;

/* What both ends of a connection know: the message, and which connection of its way this is. */
static uint64_t copy(uint32_t hop) {
    uint64_t words[] = {message.head.number, hop};
    return ppt_hash(words, sizeof words);
}

/* `ticks` is what `when` is made of: hosts that are one machine have one counter. */
#define POINT(NAME, f) \
    PPT_WRITE_##NAME(f) { \
        f.copy = copy(message.head.hop); \
        f.number = message.head.number; \
        f.ticks = f.when = ppt_pipe_now(); \
    }

static int receives(int fd) {
    if (!takes(fd, &message, sizeof message.head))
        return 0;
    size_t bytes = message.head.bytes;
    must(bytes >= sizeof message.head && bytes <= MOST, "a message");
    must(bytes == sizeof message.head ||
             takes(fd, message.bytes + sizeof message.head, bytes - sizeof message.head), "recv");
    return 1;
}

static int source(int fd, long messages, long per_second, long bytes) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    message.head = (struct head){first_number(), 1, (uint32_t)bytes};
    for (long i = 0; i < messages; i++) {
        next_at(&time, per_second);
        message.head.number++;
        POINT(CREATED, f)
        gives(fd, &message, (size_t)bytes);
    }
    shutdown(fd, SHUT_WR);
    /* It has all arrived when the next node ends. */
    char end;
    must(!takes(fd, &end, 1), "a message comes back");
    printf("created %ld\n", messages);
    return 0;
}

static int node(int from, int to) {
    while (receives(from)) {
        POINT(RECEIVED, f)
        PPT_WRITE_SENT(f) {
            f.copy = copy(message.head.hop);
            f.next = copy(message.head.hop + 1);
            f.number = message.head.number;
            f.ticks = f.when = ppt_pipe_now();
        }
        message.head.hop++;
        gives(to, &message, message.head.bytes);
    }
    shutdown(to, SHUT_WR);
    char end;
    must(!takes(to, &end, 1), "a message comes back");
    return 0;
}

static int sink(int from) {
    long messages = 0;
    for (; receives(from); messages++)
        POINT(ARRIVED, f)
    printf("arrived %ld\n", messages);
    return 0;
}

int main(int argc, char **argv) {
    const char *role = argc > 1 ? argv[1] : "";
    if (argc == 3 && strcmp(role, "sink") == 0)
        return sink(accepted(argv[2]));
    if (argc == 5 && strcmp(role, "node") == 0) {
        int from = accepted(argv[2]);
        return node(from, connected(argv[3], argv[4]));
    }
    if (argc == 7 && strcmp(role, "source") == 0)
        return source(connected(argv[2], argv[3]), number(argv[4], 1, 1 << 24), number(argv[5], 1, 100000),
                      number(argv[6], sizeof message.head, MOST));
    fputs("usage: pipe sink PORT\n       pipe node PORT NEXT_HOST NEXT_PORT\n"
          "       pipe source HOST PORT MESSAGES PER_SECOND BYTES\n", stderr);
    return 2;
}
