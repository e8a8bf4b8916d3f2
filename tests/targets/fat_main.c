/* Writes as many frames of 4 KiB as each line says, not faster than they can be drained. */
#define _GNU_SOURCE
#include "fat.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    char line[64];
    uint64_t n = 0;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        long frames = atol(line);
        for (long i = 0; i < frames; i++, n++) {
            PPT_WRITE_PAGE(f) {
                f.n = n;
                memset(f.text, 'a' + (int)(n % 26), sizeof f.text);
            }
            struct timespec wait = {0, 20000};
            nanosleep(&wait, NULL);
        }
        printf("written %ld\n", frames);
        fflush(stdout);
    }
    return 0;
}
