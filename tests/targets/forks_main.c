/* `fork` starts a child that writes frames until stdin is closed; `write` writes 1,000 frames here;
 * `quit` ends this process, and not its children. A frame's `thread` is the pid. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t n, written;

static void one(void) {
    PPT_WRITE_BEAT(f) {
        fill(&f, (uint64_t)getpid(), n);
        n++;
        written++;
    }
}

static void child(void) {
    struct pollfd in = {STDIN_FILENO, 0, 0};
    while (poll(&in, 1, 1) == 0)
        for (int i = 0; i < 10; i++)
            one();
    _exit(0);
}

int main(void) {
    char line[16];
    setvbuf(stdin, 0, _IONBF, 0);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0 && strcmp(line, "quit\n") != 0) {
        if (strcmp(line, "fork\n") == 0) {
            pid_t pid = fork();
            if (pid == 0)
                child();
            printf("forked %d\n", (int)pid);
        } else {
            written = 0;
            for (int i = 0; i < 1000; i++)
                one();
            printf("written %lu\n", (unsigned long)written);
        }
        fflush(stdout);
    }
    return 0;
}
