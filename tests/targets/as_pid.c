/* as_pid PID PROGRAM ARGUMENTS…: runs a program as process PID, which must be free, or becomes so
 * within a second. It ends with this one. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    pid_t number = argc > 2 ? (pid_t)atoi(argv[1]) : 0;
    struct clone_args args = {0};
    args.exit_signal = SIGCHLD;
    args.set_tid = (uint64_t)(uintptr_t)&number;
    args.set_tid_size = 1;
    long child = -1;
    for (int tries = 0; tries < 1000; tries++) {
        child = syscall(SYS_clone3, &args, sizeof args);
        if (child >= 0 || errno != EEXIST)
            break;
        usleep(1000);
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(argv[2], argv + 2);
        _exit(127);
    }
    if (child < 0) {
        perror("clone3");
        puts("refused");
        return 1;
    }
    int status = 0;
    waitpid((pid_t)child, &status, 0);
    return status != 0;
}
