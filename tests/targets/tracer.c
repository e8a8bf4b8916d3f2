/* tracer PID: traces a process without stopping it, as a debugger does that waits for something. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int main(int argc, char **argv) {
    pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    int status;
    while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
        printf("stopped %d\n", WSTOPSIG(status));
        fflush(stdout);
        ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status));
    }
    return 0;
}
