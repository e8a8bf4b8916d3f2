/* holes: a target that is hostile to its own segment. `go` writes 1,000 frames, `punch` takes the
 * memory of the slots away (they read as zeros), `truncate` tries to take that of the whole file. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t n, written;

/* Finds the segment. */
static int segment(unsigned long *start, unsigned long *end) {
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != 0 && !found && fgets(line, sizeof line, maps) != 0)
        found = (strstr(line, "/SYSV") != 0 || strstr(line, "/memfd:ppt") != 0) &&
                sscanf(line, "%lx-%lx", start, end) == 2;
    if (maps != 0)
        fclose(maps);
    return found;
}

/* Offset of the slots: the section of that kind, 4, in the header. */
static unsigned long slots(unsigned long start) {
    return ((const unsigned long *)start)[10 + 3 * 4 + 1];
}

static const char *punch(void) {
    unsigned long start, end;
    if (!segment(&start, &end))
        return "no segment";
    unsigned long from = start + slots(start);
    return madvise((void *)from, end - from, MADV_REMOVE) == 0 ? "done" : strerror(errno);
}

static const char *cut(void) {
    unsigned long start, end;
    char path[128];
    if (!segment(&start, &end))
        return "no segment";
    snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", start, end);
    int fd = open(path, O_RDWR);
    if (fd == -1 || ftruncate(fd, 0) != 0)
        return strerror(errno);
    close(fd);
    return "done";
}

int main(void) {
    char line[16];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        if (strcmp(line, "punch\n") == 0)
            printf("punch %s\n", punch());
        else if (strcmp(line, "truncate\n") == 0)
            printf("truncate %s\n", cut());
        else {
            written = 0;
            for (int i = 0; i < 1000; i++) {
                PPT_WRITE_BEAT(f) {
                    fill(&f, 0, n);
                    written++;
                }
                n++;
            }
            printf("written %lu\n", (unsigned long)written);
        }
        fflush(stdout);
    }
    return 0;
}
