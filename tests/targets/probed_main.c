/* probed: functions and USDT probes that a test counts. It has no frames of its own.
 *
 *   calls N       the main thread calls `measured` N times
 *   young N       a new thread does
 *   deep N        `descend` calls itself N times
 *   jump N        `leap` is called N times, and left by longjmp each second time
 *   jumps N       `tail` is called N times, and ends in a jump to `measured`
 *   marks N       the USDT probe probed:mark__hit is hit N times, at two places in turn
 *   hot N         `measured` is called N times, timed: `took NS`
 *   open          a new thread calls `measured_later`, which does not return
 *   text          the first bytes of `measured` in memory
 *   semaphore     that of probed:mark__hit
 *
 * Each is answered by `done` and a number: the sum of what the functions returned, or how often they
 * did. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUTLINE __attribute__((noinline, noclone))
/* A function and whoever calls it stay apart. */
#define APART __asm__ volatile("" ::: "memory")

/* What <sys/sdt.h> makes of a probe, if it has a semaphore. */
#define NOTE(name, arguments, ...)                                                                         \
    __asm__ volatile("990: nop\n"                                                                          \
                     ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                         \
                     ".balign 4\n"                                                                         \
                     ".4byte 992f-991f, 994f-993f, 3\n"                                                    \
                     "991: .asciz \"stapsdt\"\n"                                                           \
                     "992: .balign 4\n"                                                                    \
                     "993: .8byte 990b, _.stapsdt.base, mark_semaphore\n"                                  \
                     ".asciz \"probed\"\n"                                                                 \
                     ".asciz \"" name "\"\n"                                                               \
                     ".asciz \"" arguments "\"\n"                                                          \
                     "994: .balign 4\n"                                                                    \
                     ".popsection\n"                                                                       \
                     ".ifndef _.stapsdt.base\n"                                                            \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"               \
                     ".weak _.stapsdt.base\n"                                                              \
                     ".hidden _.stapsdt.base\n"                                                            \
                     "_.stapsdt.base: .space 1\n"                                                          \
                     ".size _.stapsdt.base, 1\n"                                                           \
                     ".popsection\n"                                                                       \
                     ".endif\n" ::__VA_ARGS__)

__attribute__((section(".probes"), used, visibility("hidden"))) volatile unsigned short mark_semaphore;

OUTLINE long measured(long a, long b, long c, long d, long e, long f) {
    APART;
    return a + b + c + d + e + f;
}

OUTLINE long descend(long depth) {
    APART;
    long sum = depth == 0 ? 0 : descend(depth - 1);
    APART;
    return sum + depth;
}

static jmp_buf back;

OUTLINE long leap(long number) {
    APART;
    if (number % 2 == 1)
        longjmp(back, 1);
    return number;
}

OUTLINE long tail(long a) {
    APART;
    return measured(a, 0, 0, 0, 0, 0);
}

OUTLINE static void first_place(int number, long thrice) {
    NOTE("mark__hit", "-4@%k0 8@%1 1@$7 8@(%%rsp)", "r"(number), "r"(thrice));
}

OUTLINE static void second_place(int number, long thrice) {
    NOTE("mark__hit", "-4@%k1 8@%0 1@$7 8@(%%rsp)", "r"(thrice), "r"(number));
}

OUTLINE static void never_hit(void) {
    NOTE("mark__never", "1@$1", "i"(0));
}

OUTLINE long measured_later(long seconds) {
    for (;;)
        sleep(seconds);
}

static void *later(void *arg) {
    measured_later(1000);
    return arg;
}

static long called(long count) {
    long sum = 0;
    for (long n = 0; n < count; n++)
        sum += measured(n, -n, 3, 4, 5, -6);
    return sum;
}

static long count_of_thread, sum_of_thread;

static void *in_a_thread(void *arg) {
    sum_of_thread = called(count_of_thread);
    return arg;
}

static long leapt(long count) {
    static long n, returned;
    returned = 0;
    for (n = 0; n < count; n++)
        if (setjmp(back) == 0)
            returned += leap(n) == n;
    return returned;
}

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    char line[64], word[16];
    long number;
    pthread_t thread;
    puts("ready");
    fflush(stdout);
    if (argc > 100)
        never_hit();
    while (fgets(line, sizeof line, stdin)) {
        number = 0;
        if (sscanf(line, "%15s %ld", word, &number) < 1)
            return 1;
        long done = 0;
        if (strcmp(word, "calls") == 0) {
            done = called(number);
        } else if (strcmp(word, "young") == 0) {
            count_of_thread = number;
            if (pthread_create(&thread, 0, in_a_thread, 0) != 0 || pthread_join(thread, 0) != 0)
                return 1;
            done = sum_of_thread;
        } else if (strcmp(word, "deep") == 0) {
            done = descend(number);
        } else if (strcmp(word, "jump") == 0) {
            done = leapt(number);
        } else if (strcmp(word, "jumps") == 0) {
            for (long n = 0; n < number; n++)
                done += tail(n);
        } else if (strcmp(word, "marks") == 0) {
            for (long n = 0; n < number; n++, done++)
                n % 2 == 0 ? first_place(-n, 3 * n) : second_place(-n, 3 * n);
        } else if (strcmp(word, "hot") == 0) {
            long long begin = now_ns();
            called(number);
            done = now_ns() - begin;
        } else if (strcmp(word, "open") == 0) {
            if (pthread_create(&thread, 0, later, 0) != 0)
                return 1;
        } else if (strcmp(word, "text") == 0) {
            memcpy(&done, (const void *)(uintptr_t)measured, sizeof done);
        } else if (strcmp(word, "semaphore") == 0) {
            done = mark_semaphore;
        }
        printf("done %ld\n", done);
        fflush(stdout);
    }
    (void)argv;
    return 0;
}
