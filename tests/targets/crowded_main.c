/* A program that has mapped much, or moved its code. Arguments:
 *   libraries N FOLDER   has loaded FOLDER/0.so to FOLDER/N-1.so
 *   pieces N FILE        has mapped N pieces of FILE
 *   moved                has moved its code to anonymous memory
 *   signals              handles a signal
 * Lines on stdin: "burn MS" computes in calls of the C library, "calls N" calls work N times. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int field_work(int number);

static volatile unsigned sum;
static long end_ns;
static int is_signal;

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

__attribute__((noinline)) static void burn(void) {
    for (int i = 0; i < 2000; i++) {
        sum = sum * 3 + 1;
    }
    sum++;
}

static int compared(const void *a, const void *b) {
    burn();
    return *(const char *)a - *(const char *)b;
}

__attribute__((noinline)) static void handled(int number) {
    for (int i = 0; i < 20; i++) {
        burn();
    }
    sum += (unsigned)number;
}

__attribute__((noinline)) static void outer(void) {
    while (now_ns() < end_ns) {
        char text[] = "gfedcba";
        if (is_signal) {
            raise(SIGUSR1);
        } else {
            qsort(text, 7, 1, compared);
        }
    }
    sum++;
}

__attribute__((noinline)) int work(int number) {
    sum += (unsigned)number;
    return number + 1;
}

static int load(int count, const char *folder) {
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d.so", folder, i);
        if (!dlopen(path, RTLD_NOW)) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }
    return 0;
}

static int map(int count, const char *path) {
    int fd = open(path, O_RDONLY);
    for (int i = 0; i < count; i++) {
        if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, i % 2 * 8192) == MAP_FAILED) {
            perror("mmap");
            return 1;
        }
    }
    return close(fd);
}

static int move(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long from, to;
    char line[8192];
    while (fgets(line, sizeof line, maps) && !strstr(line, " r-xp ")) {
    }
    fclose(maps);
    sscanf(line, "%lx-%lx", &from, &to);
    void *copy = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, (void *)from, to - from);
    mprotect(copy, to - from, PROT_READ | PROT_EXEC);
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    return mremap(copy, to - from, to - from, flags, (void *)from) == MAP_FAILED;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    is_signal = !strcmp(what, "signals");
    signal(SIGUSR1, handled);
    int failed = !strcmp(what, "libraries") ? load(atoi(argv[2]), argv[3])
                 : !strcmp(what, "pieces")  ? map(atoi(argv[2]), argv[3])
                 : !strcmp(what, "moved")   ? move()
                                            : 0;
    if (failed) {
        return 1;
    }
    puts("ready");
    fflush(stdout);
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        long number = 0;
        if (sscanf(line, "burn %ld", &number) == 1) {
            end_ns = now_ns() + number * 1000000;
            outer();
        } else if (sscanf(line, "calls %ld", &number) == 1) {
            for (int i = 0; i < number; i++) {
                sum += (unsigned)(work(i) + field_work(i));
                l64a(i); /* few other programs do */
            }
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
