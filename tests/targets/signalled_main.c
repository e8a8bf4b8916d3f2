/* signalled HOW: writes five frames, says `ready`, and lives until its stdin ends; the status is 7.
 * HOW is about every signal: `handle` says `signal NUMBER VALUE.` for each one (with `job`, SIGTSTP
 * stops it), `ignore`, `default`. Without frames: `shutdown WAY`, of the socket of `ppt run`, or
 * `burn`, a second of CPU time without any descriptor that it inherited. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void handle(int number, siginfo_t *info, void *context) {
    (void)context;
    char text[64];
    int value = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
    int length = snprintf(text, sizeof text, "signal %d %d.\n", number, value);
    if (write(1, text, (size_t)length) < 0)
        _exit(99);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "default";
    if (strcmp(how, "shutdown") == 0)
        return shutdown(atoi(getenv("PPT_RUN")), atoi(argv[2]));
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    for (int number = 1; number <= SIGRTMAX && strcmp(how, "default") != 0; number++) {
        if (number == SIGCHLD || (number == SIGTSTP && strcmp(how, "job") == 0))
            continue;
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        action.sa_sigaction = handle;
        sigfillset(&action.sa_mask);
        if (strcmp(how, "ignore") == 0)
            action.sa_handler = SIG_IGN;
        sigaction(number, &action, 0);
    }
    if (strcmp(how, "burn") == 0) {
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
        while (clock() < CLOCKS_PER_SEC) {
        }
    }
    for (int i = 0; i < 5; i++) {
        PPT_WRITE_BEAT(f) fill(&f, 0, (uint64_t)i);
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 7;
}
