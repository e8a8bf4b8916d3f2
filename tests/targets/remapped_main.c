/* remapped: like alone, after it has moved its code into anonymous memory, as programs do that want
 * it in huge pages, and has split the mapping of its data. At each line it writes 1,000 frames. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

extern char __executable_start[], etext[];

#define PAGE ((uintptr_t)4096)
static char data[64 * 4096] = {1};

/* The pages from `from` to `to`, replaced by a copy. */
static int move(uintptr_t from, uintptr_t to) {
    size_t bytes = to - from;
    void *copy = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return -1;
    memcpy(copy, (void *)from, bytes);
    if (mprotect(copy, bytes, PROT_READ | PROT_EXEC) != 0)
        return -1;
    return mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) ==
                   MAP_FAILED
               ? -1
               : 0;
}

int main(int argc, char **argv) {
    uintptr_t start = (uintptr_t)__executable_start, end = ((uintptr_t)etext + PAGE - 1) & -PAGE;
    uintptr_t middle = ((uintptr_t)data + sizeof data / 2) & -PAGE;
    /* `all`: with the headers of the file. */
    if (argc < 2 || strcmp(argv[1], "all") != 0)
        start = (uintptr_t)main & -PAGE;
    if (move(start, end) != 0 || mprotect((void *)middle, PAGE, PROT_READ) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    char line[16];
    uint64_t n = 0;
    while (fgets(line, sizeof line, stdin) != 0) {
        uint64_t written = 0;
        for (int i = 0; i < 1000; i++, n++) {
            PPT_WRITE_BEAT(f) {
                fill(&f, 0, n);
                written++;
            }
        }
        printf("written %lu\n", (unsigned long)written);
        fflush(stdout);
    }
    return data[0] != 1;
}
