/* musl-gcc -static -Os -s forks_main.c frozen.c -o abi1-forks-x86_64
 *
 * Prints `ready`. `fork` makes a child, which says `child PID ON`; at each SIGUSR2 it writes 100
 * frames and says `round PID WRITTEN ON`. `write N` writes N frames here, and says `written`. */
#include "frozen.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long n, written;

static void one(void) {
    PPT_WRITE_TICK(f) {
        f.count = (uint32_t)n++;
        f.when = ppt_frozen_now();
        written++;
    }
}

static void say(const char *what, long value) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s %ld %d\n", what, value, ppt_frozen_on());
    if (write(1, line, (size_t)length) != length)
        _exit(9);
}

static void measured(int signal) {
    char round[32];
    unsigned long before = written;
    (void)signal;
    for (int i = 0; i < 100; i++)
        one();
    snprintf(round, sizeof round, "round %ld", (long)getpid());
    say(round, (long)(written - before));
}

static void child(void) {
    struct pollfd closed = {0, 0, 0};
    signal(SIGUSR2, measured);
    say("child", getpid());
    while (poll(&closed, 1, -1) < 0) {
    }
    _exit(0);
}

int main(void) {
    char line[64];
    setvbuf(stdin, 0, _IONBF, 0);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        if (strcmp(line, "fork\n") == 0) {
            if (fork() == 0)
                child();
        } else {
            written = 0;
            for (int i = atoi(line + 6); i > 0; i--)
                one();
            printf("written %lu\n", written);
        }
        fflush(stdout);
    }
    return 0;
}
