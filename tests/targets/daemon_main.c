/* daemon FRAMES HOW: becomes a daemon by two forks, as servers do. Each of the three processes writes
 * FRAMES frames and says how many. By HOW, a parent `waits` for its child or `leaves` at once; by
 * `alone`, there is no child at all. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t n;

static void some(int frames) {
    uint64_t written = 0;
    for (int i = 0; i < frames; i++) {
        PPT_WRITE_BEAT(f) {
            fill(&f, 0, n++);
            written++;
        }
    }
    char line[64];
    int length = snprintf(line, sizeof line, "written %lu\n", (unsigned long)written);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(9);
}

static void leave(pid_t child, const char *how) {
    if (child < 0)
        _exit(8);
    if (strcmp(how, "waits") == 0)
        while (waitpid(child, 0, 0) != child) {
        }
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 7;
    int frames = atoi(argv[1]);
    some(frames);
    if (strcmp(argv[2], "alone") == 0)
        return 0;
    pid_t child = fork();
    if (child != 0)
        leave(child, argv[2]);
    setsid();
    some(frames);
    child = fork();
    if (child != 0)
        leave(child, "leaves");
    some(frames);
    return 0;
}
