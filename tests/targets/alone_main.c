/* One thread writes some frames every millisecond; at a line it says how many, and stops. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    uint64_t n = 0;
    puts("ready");
    fflush(stdout);
    while (poll(&in, 1, 1) == 0) {
        for (int i = 0; i < 10; i++) {
            PPT_WRITE_BEAT(f) {
                fill(&f, 0, n);
                n++;
            }
        }
    }
    printf("written %lu\n", (unsigned long)n);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
