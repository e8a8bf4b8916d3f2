/* relay_main ROUNDS: each round is a message that is sent, comes in and goes on. */
#include "relay.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    for (int i = 0; i < rounds; i++) {
        char text[32];
        size_t length = (size_t)snprintf(text, sizeof text, "message %d", i);
        PPT_WRITE_SENT(f) {
            f.id = ppt_hash_u64((uint64_t)i);
            f.when = 1000 + i;
        }
        PPT_WRITE_RECEIVED(f) {
            f.id = ppt_hash_u64((uint64_t)i);
            ppt_hash128_to(f.body, text, length);
            f.number = (unsigned)i;
        }
        WRITE_PASSED_TICKET((uint64_t)i);
        WRITE_PASSED_BODY(ppt_hash128(text, length).bytes);
        ppt_write_passed_frame();
    }
    printf("written %d\n", 3 * rounds);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
