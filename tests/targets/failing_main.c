/* failing FRAMES: a target that cannot map a segment. `seccomp`, `seccomp both`, `seccomp kill`,
 * `user`, `memory`, `descriptors` and `files` are the reasons; `close` closes every descriptor;
 * `go` writes FRAMES frames during some work, `retry` writes until shmat(2) is called once more. It
 * counts the calls of shmat(2). */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t calls, written, n;

/* In place of that of libc, by which the generated code calls shmat(2). */
long syscall(long number, ...) {
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    calls += number == SYS_shmat;
    long (*libc)(long, ...) = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
    return libc(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Of shmat(2), and of memfd_create(2) if `both`, this is the answer. */
static int filter(uint32_t answer, int both) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_shmat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, both ? SYS_memfd_create : SYS_shmat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

static int limit(int resource, rlim_t value) {
    struct rlimit limit = {value, value};
    return setrlimit(resource, &limit);
}

static int other_user(void) { return setgid(65534) != 0 || setuid(65534) != 0; }

/* No room for anything larger than 1 MiB. */
static int little_memory(void) {
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm == 0 || fscanf(statm, "%lu", &pages) != 1)
        return 1;
    fclose(statm);
    struct rlimit limit;
    limit.rlim_cur = limit.rlim_max = pages * (unsigned long)sysconf(_SC_PAGESIZE) + (1 << 20);
    return setrlimit(RLIMIT_AS, &limit);
}

static uint64_t work(uint64_t x) {
    for (int i = 0; i < 64; i++)
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
    return x;
}

static void one(void) {
    errno = 12345;
    PPT_WRITE_BEAT(f) {
        fill(&f, 0, n);
        written++;
    }
    n += 1 + (work(n) == 0); /* which it never is */
    if (errno != 12345) {
        puts("errno was changed");
        exit(1);
    }
}

static long cpu(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec +
           used.ru_stime.tv_usec;
}

int main(int argc, char **argv) {
    long frames = argc > 1 ? atol(argv[1]) : 1000;
    char line[32];
    if (argc > 2) { /* under the filter: FRAMES PROGRAM ARGUMENTS… */
        if (filter(SECCOMP_RET_ERRNO | EPERM, 0) == 0)
            execv(argv[2], argv + 2);
        return 1;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        uint64_t before = calls;
        int refused = 0;
        long start = cpu();
        written = 0;
        if (strcmp(line, "seccomp\n") == 0)
            refused = filter(SECCOMP_RET_ERRNO | EPERM, 0);
        else if (strcmp(line, "seccomp both\n") == 0)
            refused = filter(SECCOMP_RET_ERRNO | EPERM, 1);
        else if (strcmp(line, "seccomp kill\n") == 0)
            refused = filter(SECCOMP_RET_KILL_PROCESS, 0);
        else if (strcmp(line, "descriptors\n") == 0)
            refused = limit(RLIMIT_NOFILE, 3);
        else if (strcmp(line, "files\n") == 0)
            refused = limit(RLIMIT_FSIZE, 1 << 20);
        else if (strcmp(line, "close\n") == 0)
            for (int fd = 3; fd < 1024; fd++)
                close(fd);
        else if (strcmp(line, "quit\n") == 0)
            return 0;
        else if (strcmp(line, "user\n") == 0)
            refused = other_user();
        else if (strcmp(line, "memory\n") == 0)
            refused = little_memory();
        else if (strcmp(line, "go\n") == 0)
            for (long i = 0; i < frames; i++)
                one();
        else
            while (calls == before) {
                usleep(1000);
                one();
            }
        if (refused)
            return 1;
        printf("written %lu\ncpu %ld\ncalls %lu\n", (unsigned long)written, cpu() - start,
               (unsigned long)calls);
        fflush(stdout);
    }
    return 0;
}
